"""The command `topology`: its JSON document, its words, and bad input."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import sim.disk_cache
from sim.cli import command_status
from sim.disk_cache import JsonFolder
from topology.ranking import JOB_MIXES


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sim.disk_cache, "routes_cache", lambda: JsonFolder(tmp_path / "routes"))


def document(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> dict[str, object]:
    assert command_status(["topology", *arguments, "--json"]) == 0
    printed = capsys.readouterr()
    assert printed.err == ""
    found = json.loads(printed.out)
    assert isinstance(found, dict)
    return found


def test_a_twisted_slice(capsys: pytest.CaptureFixture[str]) -> None:
    """Goal: the keys that programs read. Method: 4x4x8_twisted against the reference table."""
    found = document(["4x4x8_twisted"], capsys)
    assert found["shape"] == "4x4x8_twisted"
    assert found["chips"] == 128
    assert found["wraparound"] == [True, True, True]
    assert found["diameter"] == 6
    assert found["mean_hops"] == pytest.approx(3.4646, abs=5e-5)
    assert found["bisection_links"] == 64
    assert found["all_to_all_bytes_per_s_per_chip"] == pytest.approx(87.3e9, abs=5e7)
    assert found["ring_all_reduce_bytes_per_s_per_chip"] == pytest.approx(150e9 * 128 / 127)
    assert found["twist_gain"] == pytest.approx(1.745, abs=5e-4)
    assert "faults" not in found
    assert "methods" not in found


def test_a_mesh_and_a_single_chip(capsys: pytest.CaptureFixture[str]) -> None:
    """Goal: less than a cube has no rings; one chip no rates. Method: both documents."""
    assert document(["2x2x2"], capsys)["wraparound"] == [False, False, False]
    alone = document(["1x1x1"], capsys)
    assert alone["all_to_all_bytes_per_s_per_chip"] is None
    assert (alone["diameter"], alone["bisection_links"]) == (0, 0)


def test_a_later_pod_has_faster_links(capsys: pytest.CaptureFixture[str]) -> None:
    """Goal: `--pod` sets links. Method: TPU7x doubles the v4 rate."""
    v4, later = document(["8x8x8"], capsys), document(["8x8x8", "--pod", "tpu7x"], capsys)
    assert v4["all_to_all_bytes_per_s_per_chip"] == 50e9
    assert later["all_to_all_bytes_per_s_per_chip"] == 100e9


def test_a_dead_switch_by_some_methods(capsys: pytest.CaptureFixture[str]) -> None:
    """Goal: faults and methods are objects by name. Method: one switch on 4x4x4, two methods, twice (cached)."""
    arguments = ["4x4x4", "--fail", "ocs:x:0", "--method", "even_split", "--method", "dimension_order"]
    found, again = document(arguments, capsys), document(arguments, capsys)
    assert found == again
    assert found["faults"] == ["ocs:x:0"]
    methods = found["methods"]
    assert isinstance(methods, dict)
    assert list(methods) == ["even_split", "dimension_order"]
    for left in methods.values():
        assert 0.5 <= left["all_to_all_kept"] <= 1.05
        assert set(left["ring_kept"]) == set("xyz")
        assert left["ring_kept"]["x"] < 1.0
        assert left["routed"]
        assert all(slowdown > 0 for slowdown in left["step_slowdown"].values())
    assert methods["dimension_order"]["ring_kept"] == {"x": 0.5, "y": 1.0, "z": 1.0}


def test_what_people_read(capsys: pytest.CaptureFixture[str]) -> None:
    """Goal: bound beside measurement, kept shares in percent. Method: words of three commands."""
    assert command_status(["topology", "4x4x8_twisted"]) == 0
    text = capsys.readouterr().out
    assert "1.745 times the all-to-all of 4x4x8" in text
    assert "Measured: 1.63 times, 0.93 of the ideal gain" in text
    assert command_status(["topology", "4x4x4", "--pod", "v4"]) == 0
    assert "Measured: 75.9 GB/s, 0.76 of the bound" in capsys.readouterr().out
    assert command_status(["topology", "4x4x4", "--fail", "ocs:x:0", "--method", "even_split"]) == 0
    assert "With ocs:x:0 dead, kept of the best healthy routes" in capsys.readouterr().out
    assert command_status(["topology", "1x1x1"]) == 0
    assert "no rings" in capsys.readouterr().out


def test_each_method_tells_its_virtual_channels_and_proof(capsys: pytest.CaptureFixture[str]) -> None:
    """Goal: rings half for dimension order and wild-first, at least 0.83 with split detours; proofs and channels
    are printed; where dimension order has no route it is said in words. Method: all methods on 4x4x4 and 4x4x8."""
    methods = document(["4x4x4", "--fail", "ocs:x:0"], capsys)["methods"]
    assert isinstance(methods, dict)
    assert list(methods) == ["dimension_order", "even_split", "wild_first", "optimal"]
    assert all(left["deadlock_free"] for left in methods.values())
    assert methods["dimension_order"]["virtual_channels"] == 2
    assert methods["wild_first"]["virtual_channels"] == 3
    assert methods["dimension_order"]["ring_kept"]["x"] == methods["wild_first"]["ring_kept"]["x"] == 0.5
    assert min(methods["optimal"]["ring_kept"].values()) == pytest.approx(5 / 6)
    assert methods["optimal"]["all_to_all_kept"] == pytest.approx(31 / 32, abs=1e-6)
    assert command_status(["topology", "4x4x8", "--fail", "ocs:z:5"]) == 0
    text = capsys.readouterr().out
    assert "dimension_order: 512 pairs of chips have no route of its form. A dead switch cuts a ring" in text
    assert "proved free" in text
    assert "Recommended: wild_first, which needs 3 virtual channels" in text
    assert "92.2 to 101.7 %" in text


def test_the_gains_of_a_twist_are_explained(capsys: pytest.CaptureFixture[str]) -> None:
    """Goal: 1.745 and 1.39 beside 1.63 and 1.31, the difference as an efficiency. Method: words and JSON."""
    for text, gain, measured, share in (("4x4x8", 1.745, 1.63, 0.93), ("4x8x8", 1.391, 1.31, 0.94)):
        found = document([f"{text}_twisted"], capsys)
        assert found["twist_gain"] == pytest.approx(gain, abs=6e-4)
        seen = found["measured"]
        assert isinstance(seen, dict)
        assert seen["twist_gain"] == measured
        assert seen["share_of_bound"] == pytest.approx(share, abs=0.005)
        assert command_status(["topology", f"{text}_twisted"]) == 0
        printed = capsys.readouterr().out
        assert f"{gain:.3f} times" in printed
        assert f"Measured: {measured} times, {share} of the ideal gain" in printed
        assert "The difference is one of efficiency" in printed


def test_which_shape_to_ask_for(capsys: pytest.CaptureFixture[str]) -> None:
    """Goal: shapes of a size ranked for a mix, from a name or from bytes. Method: 512 chips want 8x8x8 for all-to-all;
    a number of chips is read as its most cubic shape."""
    found = document(["512", "--mix", "all_to_all=64 MB,all_reduce=16 MB"], capsys)
    assert found["best"] == "8x8x8"
    assert found["mix_bytes"] == {"all_to_all": 64e6, "all_reduce": 16e6}
    shapes = found["shapes"]
    assert isinstance(shapes, list)
    assert [each["step_s"] for each in shapes] == sorted(each["step_s"] for each in shapes)
    for name in JOB_MIXES:
        assert command_status(["topology", "4x4x8", "--mix", name]) == 0
        assert "Ask for 4x4x8" in capsys.readouterr().out


def test_static_boxes_that_wrap_on_some_axes(capsys: pytest.CaptureFixture[str]) -> None:
    """Goal: boxes of static wiring. Method: 4x16x16 closed along y and z against the sums of its axes; a dead link."""
    found = document(["4x16x16", "--wrap", "yz"], capsys)
    assert found["wraparound"] == [False, True, True]
    assert found["diameter"] == 3 + 8 + 8
    assert "shapes_of_this_size" not in found
    assert document(["4x4x8", "--wrap", "none"], capsys)["bisection_links"] == 16
    assert document(["4x4x8", "--wrap", "xyz"], capsys)["diameter"] == document(["4x4x8"], capsys)["diameter"]
    faulty = document(["4x4x8", "--wrap", "z", "--fail", "link:0,0,3:z", "--method", "wild_first"], capsys)["methods"]
    assert isinstance(faulty, dict)
    assert 0.5 < faulty["wild_first"]["all_to_all_kept"] < 1.0


def test_a_fault_said_twice_counts_once(capsys: pytest.CaptureFixture[str]) -> None:
    """Goal: `--fail` doubled is one fault. Method: the document of one."""
    once = document(["4x4x4", "--fail", "ocs:x:0", "--method", "wild_first"], capsys)
    twice = ["4x4x4", "--fail", "ocs:x:0", "--fail", " ocs:x:0", "--method", "wild_first", "--method", "wild_first"]
    assert document(twice, capsys) == once


def test_a_slice_cut_in_two_is_said_to_be_so(capsys: pytest.CaptureFixture[str]) -> None:
    """Goal: no number where there is no slice. Method: cut the only link of two chips."""
    arguments = ["topology", "1x1x2", "--fail", "link:0,0,0:z", "--method", "even_split"]
    assert command_status(arguments) == 0
    assert "cut in two" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["4x4"], "`4x4`|'4x4' is no shape"),
        (["4x4x9"], "not made of whole cubes"),
        (["8x4x4"], "not in rising order; write 4x4x8"),
        (["4x4x12_twisted"], "can not be twisted"),
        (["8x8x8_twisted"], "can not be twisted"),
        (["16x16x24", "--pod", "v4"], "more than the 4096 of pod v4"),
        (["999996x999996x999996"], "no pod comes near"),
        (["4x4x4", "--pod", "v9"], "unknown pod generation"),
        (["4x4x4", "--fail", "ocs:x:16"], "there is no switch x:16"),
        (["4x4x4", "--fail", "ocs:a:1"], "there is no switch a:1"),
        (["4x4x4", "--fail", "link:9,9,9:x"], "no link from chip 9,9,9 up x"),
        (["4x4x4", "--fail", "port:x:1:1:+"], "no cube 1"),
        (["2x2x2", "--fail", "ocs:x:0"], "has no light"),
        (["4x4x4", "--fail", "nonsense"], "is no fault"),
        (["4x4x4", "--fail", "ocs:x:0", "--method", "optimum"], "is no method of routing; write `optimal`"),
        (["4x4x4", "--method", "optimal"], "add --fail"),
        (["32x32x32", "--fail", "ocs:x:0"], "up to 10,240 chips"),
        (["4x4x4", "--fail", ""], "`` is no fault"),
        (["4x4x4", "--fail", "o" * 5000], f"`{'o' * 60}...` is no fault"),
        (["1x1x1", "--mix", "experts"], "a single chip has no network"),
        (["4x4x4", "--fail", "öcs:x:0"], "is no fault"),
        (["4x4x4", "--fail", "ocs:x:-1"], "there is no switch x:-1"),
        (["4x4x4", "--fail", "host:3"], "takes its cube out of the slice"),
        (["4x4x4", "--wrap", "xx"], "names no axes"),
        (["4x4x4", "--wrap", ""], "names no axes"),
        (["4x4x8_twisted", "--wrap", "z"], "all its axes close to rings"),
        (["2x2x2", "--wrap", "x"], "a mesh without rings"),
        (["4x4x8", "--wrap", "z", "--fail", "ocs:x:0"], "static wiring has no switches"),
        (["4x4x8", "--wrap", "z", "--fail", "link:0,0,7:z", "--fail", "link:3,0,0:x"], "no link from chip 3,0,0 up x"),
        (["4x4x4", "--mix", "everything"], "is no mix"),
        (["4x4x4", "--mix", ""], "is no mix"),
        (["4x4x4", "--mix", "all_to_al=1 MB"], "write `all_to_all`"),
        (["4x4x4", "--mix", "all_to_all=64"], "all_to_all: "),
        (["4x4x4", "--mix", "all_to_all=-64 MB"], "all_to_all: "),
        (["4x4x4", "--mix", "all_to_all=1 MB,all_to_all=1 MB"], "is there twice"),
        (["4x4x4", "--mix", "all_to_all=0 B"], "at least one collective"),
        (["4x4x4", "--mix", "experts", "--fail", "ocs:x:0"], "leave out one of"),
        (["100"], "no whole number of cubes"),
        (["0"], "no whole number of cubes"),
        ([""], "is no shape"),
        (["４x４x４"], "is no shape"),
    ],
)
def test_bad_input(arguments: list[str], says: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Goal: exit 2 and one line that says what to write. Method: one slip each, with and without --json."""
    for ending in ([], ["--json"]):
        assert command_status(["topology", *arguments, *ending]) == 2
        printed = capsys.readouterr()
        assert printed.out == ""
        (line,) = printed.err.splitlines()
        assert any(part in line for part in says.split("|"))


def test_a_switch_too_small_for_the_pod(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Goal: a pod that does not fit its switches is refused, exit 2. Method: 100 cubes on switches of 136 ports."""
    path = tmp_path / "small.yaml"
    path.write_text("name: small\npod: {cubes: 100, ports: 136}\n", encoding="utf-8")
    assert command_status(["validate", str(path)]) == 2
    printed = capsys.readouterr().err
    assert "pod.ports: 100 cubes need 200 ports on each switch, which has 136; write at most 68 cubes" in printed


def test_the_cache_on_disk(tmp_path: Path) -> None:
    """Goal: values come back, broken files do not. Method: write, read anew, spoil, delete; a folder that is none."""
    folder = JsonFolder(tmp_path / "a" / "b")
    assert len(folder) == 0
    folder["one"] = {"kept": [0.5, 1.0]}
    folder["two"] = {}
    assert JsonFolder(tmp_path / "a" / "b")["one"] == {"kept": [0.5, 1.0]}
    assert sorted(folder) == ["one", "two"]
    for path in (tmp_path / "a" / "b").glob("*.json"):
        path.write_text("{", encoding="utf-8")
    assert "one" not in folder
    assert list(folder) == []
    folder["one"] = {}
    del folder["one"]
    with pytest.raises(KeyError):
        del folder["one"]
    (tmp_path / "file").write_text("", encoding="utf-8")
    nowhere = JsonFolder(tmp_path / "file" / "x")
    nowhere["one"] = {}
    assert "one" not in nowhere
