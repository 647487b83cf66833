"""The command `light`: figures of a pod's optics, what a failing part takes, and bad input."""

from __future__ import annotations

import json
from typing import Any

import pytest

from sim.cli import command_status


def document(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    assert command_status(["light", *arguments, "--json"]) == 0
    printed = capsys.readouterr()
    assert printed.err == ""
    found: dict[str, Any] = json.loads(printed.out)
    return found


def test_the_light_of_the_pods(capsys: pytest.CaptureFixture[str]) -> None:
    """Goal: counts and shares as published. Method: v4 has 3,072 circuits on 136 ports; optics below 5 and 3 % on every
    pod; circuits per day near those seen; about ten seconds to make a slice."""
    found = document([], capsys)
    assert (found["cubes"], found["switches"], found["ports_per_switch"]) == (64, 48, 136)
    assert found["circuits_when_full"] == 3072
    assert found["circuits_per_day"]["made"] == pytest.approx(found["circuits_per_day"]["published_mean"], rel=0.02)
    assert found["circuits_per_day"]["of_one_replaced_cube"] == 96
    assert found["repatch_s"] == 4 * 3600
    assert 0 < found["connections_refused_share"] < 0.001
    waits = [each["all_median_s"] for each in found["reconfiguration"]]
    assert waits == sorted(waits)
    assert 9 < waits[0] < waits[-1] < 12
    for pod in ("v4", "v5p", "tpu7x"):
        other = document(["--pod", pod], capsys)
        assert 0 < other["cost_share"] < other["cost_share_published_max"] == 0.05
        assert 0 < other["power_share"] < other["power_share_published_max"] == 0.03


def test_every_figure_says_where_it_comes_from(capsys: pytest.CaptureFixture[str]) -> None:
    """Goal: each figure is published, reported, derived or an assumption. Method: the marks; words of the command."""
    figures = document([], capsys)["figures"]
    assert {each["mark"] for each in figures} <= {"published", "reported", "derived", "assumption"}
    assert all(each["source"] for each in figures)
    assert command_status(["light"]) == 0
    text = capsys.readouterr().out
    for words in ("cost", "< 5 %", "< 3 %", "out of budget and refused", "slowest link", "circuits a day", "spare one"):
        assert words in text


def test_what_a_failing_part_takes(capsys: pytest.CaptureFixture[str]) -> None:
    """Goal: blast radius from the command line. Method: a switch takes one link of every cube of every slice, a rack
    its own slice only, a spare port nothing."""
    switch = document(["--fail", "ocs:x:3"], capsys)
    assert (switch["circuits"], switch["chips_down"], len(switch["slices"])) == (64, 0, 8)
    assert all(len(hit["links"]) == 8 and {link["axis"] for link in hit["links"]} == {"x"} for hit in switch["slices"])
    rack = document(["--fail", "rack:9", "--slices", "8x8x8:2"], capsys)
    assert [hit["slice"] for hit in rack["slices"]] == [1]
    assert rack["chips_down"] == 64
    assert document(["--fail", "port:135"], capsys)["slices"] == []
    assert command_status(["light", "--fail", "host:17", "--slices", "4x4x8_twisted:3,8x8x16:2"]) == 0
    assert "4 chips go down" in capsys.readouterr().out
    assert command_status(["light", "--fail", "port:3", "--slices", "4x4x4:1"]) == 0
    assert "0 circuits go dark, 1 cube loses a part or a circuit, 0 chips go down" in capsys.readouterr().out
    assert command_status(["light", "--fail", "port:135"]) == 0
    assert "No slice is hit." in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--pod", "v9"], "unknown pod generation"),
        (["--fail", ""], "is no part of a pod"),
        (["--fail", "hots:1"], "write `host`"),
        (["--fail", "host"], "names no host; write for example host:0"),
        (["--fail", "host:1024"], "pod v4 has no host 1024; write a number from 0 to 1,023"),
        (["--fail", "host:-1"], "names no host"),
        (["--fail", "host:٣"], "names no host"),
        (["--fail", "ocs:x:16"], "names no ocs; write for example ocs:x:0"),
        (["--fail", "ocs:3"], "names no ocs"),
        (["--fail", "rack:" + "9" * 40], "names no rack"),
        (["--fail", "rack:1", "--slices", "8x8x8:9"], "need 72 cubes, pod v4 has 64"),
        (["--fail", "rack:1", "--slices", "2x2x2:1"], "less than a cube"),
        (["--fail", "rack:1", "--slices", "8x8x8"], "is no SHAPE:NUMBER"),
        (["--slices", "8x8x8:1"], "add --fail"),
        (["--slices", "8x8x8:x"], "is no SHAPE:NUMBER"),
        (["--slices", "8x8x8:9"], "need 72 cubes, pod v4 has 64"),
    ],
)
def test_bad_input(arguments: list[str], says: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Goal: exit 2 and one line that says what to write. Method: one slip each, with and without --json."""
    for ending in ([], ["--json"]):
        assert command_status(["light", *arguments, *ending]) == 2
        printed = capsys.readouterr()
        assert printed.out == ""
        (line,) = printed.err.splitlines()
        assert says in line
