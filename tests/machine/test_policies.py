"""Policies of health, repair and recovery as values and as sections of a scenario."""

from __future__ import annotations

import pytest
from pydantic import TypeAdapter, ValidationError

from sim.policies import DetectionOf, HealthPolicy, RecoveryPolicy, RepairPolicy, Response


def test_detection_is_by_component() -> None:
    """Goal: one number for all, others by name. Method: switches are watched more closely."""
    health = HealthPolicy(detection=60.0, detection_of=DetectionOf(ocs=5.0), diagnosis=10.0, burn_in=20.0)
    assert (health.detection_s("host"), health.detection_s("ocs")) == (60.0, 5.0)
    assert (health.rest_s("host"), health.rest_s("ocs")) == (90.0, 35.0)


@pytest.mark.parametrize(
    ("hardware", "switch", "opted_in", "can_replace", "response"),
    [
        (True, False, True, True, Response.REPLACE),
        (True, False, False, False, Response.WAIT),
        (True, True, True, True, Response.REPLACE),
        (True, True, False, True, Response.WAIT),
        (False, True, True, True, Response.REROUTE),
        (False, True, False, True, Response.WAIT),
        (False, False, True, False, Response.REROUTE),
        (False, False, False, True, Response.REPLACE),
        (False, False, False, False, Response.WAIT),
    ],
)
def test_what_a_job_does_after_a_loss(
    hardware: bool, switch: bool, opted_in: bool, can_replace: bool, response: Response
) -> None:
    """Goal: the table of recovery. Method: its rows; and `move_all` where cubes would be replaced."""
    question = {"hardware": hardware, "switch": switch, "opted_in": opted_in, "can_replace": can_replace}
    assert RecoveryPolicy().respond(**question) is response
    moved = Response.MOVE if response is Response.REPLACE else response
    assert RecoveryPolicy(replace="move_all").respond(**question) is moved


@pytest.mark.parametrize(
    ("policy", "values", "said"),
    [
        (HealthPolicy, {"detection": -1.0}, "at least 0"),
        (HealthPolicy, {"diagnosis": float("nan")}, "finite"),
        (DetectionOf, {"ocs": -2.0}, "ocs must be"),
        (RepairPolicy, {"crews": 0}, "at least 1"),
        (RepairPolicy, {"crews": True}, "whole number"),
        (RecoveryPolicy, {"restore": float("inf")}, "restore"),
        (RecoveryPolicy, {"replace": "none"}, "replace_one or move_all"),
        (RecoveryPolicy, {"reroute_opt_in": 1.5}, "reroute_opt_in"),
        (RecoveryPolicy, {"rerouted_speed": 0.0}, "rerouted_speed"),
    ],
)
def test_impossible_policies_are_refused(policy: type, values: dict[str, object], said: str) -> None:
    """Goal: nonsense stops early. Method: one bad value at a time, from Python and through pydantic."""
    with pytest.raises(ValueError, match=said):
        policy(**values)
    with pytest.raises(ValidationError):
        TypeAdapter(policy).validate_python(values) if values != {"crews": True} else TypeAdapter(policy).validate_json(
            '{"crews": -1}'
        )


def test_crews_go_to_switches_first() -> None:
    """Goal: the queue is by kind. Method: ranks in order."""
    kinds = ["host", "optical_end", "ocs", "in_rack_link", "rack"]
    assert sorted(kinds, key=RepairPolicy().rank) == ["ocs", "rack", "optical_end", "in_rack_link", "host"]
