"""Circuits made per day: what admissions of jobs and replaced cubes ask of the switches, beside what was seen."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ocs.circuits import ReconfigurationPlan, circuits_of, plan_reconfiguration
from topology.placement import joined
from topology.pod import SWITCHES_PER_POD
from topology.provenance import Mark, Source
from topology.shape import Shape


@dataclass(frozen=True, kw_only=True, slots=True)
class SeenPerDay:
    """A published daily count of one machine over 60 days: least, mean, most."""

    least: float
    mean: float
    most: float
    source: Source


_DIGITISED = "NSDI 2024, Figure 13, as digitised by a third-party simulator (approximate)"
ADMISSIONS_SEEN = SeenPerDay(least=58, mean=139, most=248, source=Source("jobs", Mark.SECONDARY, _DIGITISED))
CIRCUITS_SEEN = SeenPerDay(least=9_400, mean=24_200, most=70_400, source=Source("circuits", Mark.SECONDARY, _DIGITISED))
"""The median is 21,100. A mean of 24,200 for 139 jobs is 3.6 cubes per admitted job (D)."""


def circuits_made(plans: Iterable[ReconfigurationPlan]) -> int:
    """Circuits that these plans make."""
    return sum(len(plan.make) for plan in plans)


def circuits_of_replacement(shape: Shape) -> int:
    """Circuits made when one cube of a slice of whole cubes is replaced by a cube from outside it.

    Two on every switch, to the neighbour on each side, but one where the cube closed its dimension on itself.
    """
    old = joined(shape, range(shape.cubes))
    new = joined(shape, [shape.cubes, *range(1, shape.cubes)])
    return len(plan_reconfiguration(circuits_of(old), circuits_of(new)).make)


def circuits_per_day(
    admissions_per_day: float, cubes_per_job: float, replacements_per_day: float = 0.0, per_replacement: float = 96.0
) -> float:
    """Circuits made per day: 48 per cube of an admitted job, and those of replaced cubes (96 each at most)."""
    return SWITCHES_PER_POD * admissions_per_day * cubes_per_job + replacements_per_day * per_replacement
