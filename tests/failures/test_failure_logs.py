"""Readers of failure logs: real files against their published check values, and every kind of bad input."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from sim.failure_logs import FailureLog, placed_by_number, placed_by_shuffle, read_failure_logs
from sim.histories import ComponentKind
from sim.log_analysis import analysis_of, random_groups_all_up
from sim.metrics.availability import expected_share, guaranteed_share, time_at_capacity
from sim.metrics.segments import segments_of
from tests.shared_data import shared_file
from topology.errors import InputError
from topology.fabric import Fabric
from topology.pod import POD_GENERATIONS, Pod

SIZES = (64, 128, 256, 512, 1024, 2048, 3072, 4096)
US_PER_H = 3_600_000_000
LANL_HEAD = (
    "System,nodes,nodenumz,Prob Started,Prob Fixed,Facilities,Hardware,Human Error,Network,Undetermined,Software\n"
)
GENERIC = "component,id,start,end,cause\nhost,0,0,3600,gpu\nhost,3,1800,1800,fan\nhost,0,900,7200,gpu\nhost,1,86400,,\n"


def lanl() -> FailureLog:
    (log,) = read_failure_logs(shared_file("failures/lanl_system_18.csv.gz"))
    return log


def gpu(**options: object) -> FailureLog:
    path = shared_file("failures/gpu_fault_trace_day_000_180.json")
    (log,) = read_failure_logs(path, components=400, **options)  # type: ignore[arg-type]
    return log


def written(folder: Path, text: str | bytes, name: str = "log.csv") -> Path:
    path = folder / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


# ---------------------------------------------------------------- real files


def test_lanl_replay() -> None:
    """Goal: the numbers of issue 2 for LANL 18. Method: nodes by number on a v4 pod, window first to last start."""
    log, pod = lanl(), POD_GENERATIONS["v4"]
    assert (log.components, log.components_known, len(log)) == (1024, True, 3997)
    assert log.window_us / US_PER_H == pytest.approx(29310.4)
    segments = segments_of(pod, [log.outages(placed_by_number(log, 1024), 1024)], log.window_us)
    up = float((segments.hosts_up * segments.duration_us).sum()) / 1024 / segments.total_us
    assert up == pytest.approx(0.999604, abs=5e-7)
    ocs = [time_at_capacity(segments, pod, Fabric.RECONFIGURABLE, chips) for chips in SIZES]
    static = [time_at_capacity(segments, pod, Fabric.STATIC_ALIGNED, chips) for chips in SIZES]
    for index, expected_ocs, expected_static in ((4, 0.9245, 0.9091), (6, 0.7500, 0.5591), (7, 0.6979, 0.6979)):
        assert expected_share(ocs[index]).value == pytest.approx(expected_ocs, abs=5e-5)
        assert expected_share(static[index]).value == pytest.approx(expected_static, abs=5e-5)
    held = [guaranteed_share(times, 0.97).value for times in ocs]
    assert held == [0.96875, 0.96875, 0.9375, 0.875, 0.75, 0.5, 0.75, 0.0]


def test_lanl_analysis() -> None:
    """Goal: the check values of the data's README. Method: `analysis_of` on dates (Down Time differs in 6 rows)."""
    found = analysis_of(lanl())
    assert (found.outages, found.components_with_outages, found.most_outages_on_one) == (3997, 964, 116)
    assert found.window_from == "2002-05-06 08:45:00"
    assert found.window_to == "2005-09-08 15:09:00"
    assert found.mtbf_h == pytest.approx(7509, abs=0.5)
    assert found.gap_mean_h == pytest.approx(7.335, abs=5e-4)
    assert found.gap_median_h == pytest.approx(4.050)
    assert found.gap_cv == pytest.approx(1.735, abs=5e-4)
    assert found.simultaneous_starts == 79
    assert dict(list(found.causes.items())[:3]) == {"Hardware": 2977, "Software": 687, "Undetermined": 284}
    minutes = {key: 60.0 * value for key, value in found.repair_quantiles_h.items()}
    for key, value in {"min": 1, "p1": 5, "p10": 17, "p25": 28, "p50": 58, "p75": 142, "p90": 302, "p99": 1925}.items():
        assert minutes[key] == pytest.approx(value, abs=0.5)
    assert found.offenders[0].name == "0"
    assert found.life_fits[-1].aic > found.life_fits[0].aic
    assert all(burst.consecutive_all_up is not None for burst in found.bursts)


def test_gpu_trace_by_cause() -> None:
    """Goal: README values of the GPU trace, all faults and hardware only. Method: window of days 0 to 180."""
    found = analysis_of(gpu(window=("0 d", "180 d")))
    assert (found.window_h, found.outages, found.open_outages, found.zero_length_outages) == (4320.0, 315, 2, 14)
    assert found.mtbf_h == pytest.approx(5485.7, abs=0.05)
    assert found.system_mtbf_h == pytest.approx(13.714, abs=5e-4)
    assert (found.gap_mean_h, found.gap_median_h) == (pytest.approx(13.424, abs=5e-4), pytest.approx(3.902, abs=5e-4))
    assert found.gap_cv == pytest.approx(2.148, abs=5e-4)
    assert found.simultaneous_starts == 50
    assert found.components_with_outages == 161
    assert found.repair_mean_h == pytest.approx(153.27, abs=0.005)
    for key, value in {"p25": 2.66, "p50": 31.58, "p75": 108.63, "p90": 407.34, "p99": 1883.07, "max": 2124.07}.items():
        assert found.repair_quantiles_h[key] == pytest.approx(value, abs=0.005)
    assert found.causes == {"Other Failure": 169, "Hardware Failure": 141, "Software Failure": 5}
    hardware = analysis_of(gpu(window=("0", "180"), causes=("hardware",)))
    assert (hardware.outages, hardware.mtbf_h) == (141, pytest.approx(12255.3, abs=0.05))
    assert analysis_of(gpu(window=("0", "180"), causes=("Fan", "NIC"))).outages == 28


def test_gpu_trace_unavailability() -> None:
    """Goal: results_to_reproduce 3: 2.91 % from first to last event, 2.78 % by paired outages over days 0 to 180.

    Method: open outages end with the window, or are left out.
    """
    assert 1.0 - analysis_of(gpu(window=("3.8955", "179.9823"))).availability == pytest.approx(0.0291, abs=5e-5)
    log = gpu(window=("0", "180"))
    paired = (log.end_us - log.start_us)[~log.open_end].sum() / log.window_us
    assert paired == pytest.approx(11.105, abs=5e-4)
    assert paired / 400 == pytest.approx(0.0278, abs=5e-5)
    bursts = {burst.size: burst for burst in analysis_of(log).bursts}
    assert bursts[16].random_all_up > bursts[16].independent_all_up + 0.03


def test_gpu_trace_on_25_cubes_by_shuffles() -> None:
    """Goal: names are dealt to hosts by seeded shuffles, and places matter. Method: five shuffles on 5x5x1 cubes."""
    log, pod = gpu(), Pod(cubes=25)
    values: dict[tuple[Fabric, int], list[float]] = {}
    for shuffle in range(5):
        places = placed_by_shuffle(log, 400, 1, shuffle)
        assert len(np.unique(places)) == len(log.names) == 161
        segments = segments_of(pod, [log.outages(places, 400)], log.window_us)
        for fabric in Fabric:
            for chips in (64, 128, 256, 512, 1024):
                value = expected_share(time_at_capacity(segments, pod, fabric, chips)).value
                values.setdefault((fabric, chips), []).append(value)
    for (fabric, _), spread in values.items():
        # only the number of hosts counts on an ideal fabric: no spread there
        assert (max(spread) > min(spread)) == (fabric is not Fabric.ANY_HOST)
    assert np.mean(values[Fabric.RECONFIGURABLE, 1024]) > 5 * np.mean(values[Fabric.STATIC_ALIGNED, 1024])
    assert np.array_equal(placed_by_shuffle(log, 400, 1, 2), placed_by_shuffle(log, 400, 1, 2))
    assert not np.array_equal(placed_by_shuffle(log, 400, 1, 2), placed_by_shuffle(log, 400, 1, 3))


# ---------------------------------------------------------------- what is odd but allowed


def test_generic_log(tmp_path: Path) -> None:
    """Goal: the generic format. Method: rows out of order, an overlap, a zero length and an open outage."""
    (log,) = read_failure_logs(written(tmp_path, GENERIC), components=16, window=("0", "2 d"))
    assert (log.kind, log.components, log.names) == (ComponentKind.HOST, 16, ("0", "1", "3"))
    found = analysis_of(log)
    # host 0 is down from 0 to 7,200 s, host 1 from day 1 to the end of the window
    assert found.availability == pytest.approx(1.0 - (7200 + 86400) / (16 * 2 * 86400))
    assert (found.overlapping_outages, found.open_outages, found.zero_length_outages) == (1, 1, 1)
    outages = log.outages(placed_by_number(log, 16), 16)
    assert outages.component.tolist() == [0, 0, 3, 1]
    assert outages.end_us.max() == log.window_us


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text.replace("\n", "\r\n"),
        lambda text: text.rstrip("\n"),
        lambda text: "\ufeff" + text,
        lambda text: text + "\n\n",
        lambda text: "\n".join([text.split("\n")[0], *sorted(text.split("\n")[1:-1], reverse=True)]),
    ],
    ids=["CR LF", "no final line end", "byte order mark", "empty lines", "unsorted"],
)
def test_line_ends_and_order_do_not_matter(tmp_path: Path, change: object) -> None:
    """Goal: files as people have them. Method: the same log written in another way is the same log."""
    (plain,) = read_failure_logs(written(tmp_path, GENERIC))
    (other,) = read_failure_logs(written(tmp_path, change(GENERIC), "other.csv"))  # type: ignore[operator]
    assert analysis_of(other).as_dict() | {"path": ""} == analysis_of(plain).as_dict() | {"path": ""}
    (packed,) = read_failure_logs(written(tmp_path, gzip.compress(GENERIC.encode()), "log.csv.gz"))
    assert np.array_equal(packed.start_us, plain.start_us)


def test_dates_zones_and_kinds(tmp_path: Path) -> None:
    """Goal: ISO 8601 with and without zone, several kinds in one file. Method: racks and hosts, one window for both."""
    text = (
        "component,id,start,end\nrack,1,2024-03-01T12:00:00+01:00,2024-03-01T12:00:00Z\n"
        "host,a7,2024-03-02,2024-03-02 06:30\nhost,a10,2024-03-03,\n"
    )
    hosts, racks = read_failure_logs(written(tmp_path, text), components=20)
    assert (hosts.kind, racks.kind) == (ComponentKind.HOST, ComponentKind.RACK)
    assert hosts.window_us == racks.window_us == 37 * US_PER_H
    assert (racks.end_us - racks.start_us).tolist() == [US_PER_H]
    assert hosts.instant_text(0) == "2024-03-01 11:00:00"
    # names that are no numbers are placed by rank
    assert placed_by_number(hosts, 16 * 64).tolist() == [0, 1]
    assert placed_by_number(racks, 64).tolist() == [1]
    with pytest.raises(InputError, match="20 components of kind host, and the machine has 16"):
        placed_by_number(hosts, 16)


def test_cubes_decide_where_named(tmp_path: Path) -> None:
    """Goal: the column `cube` places a host in its cube. Method: three names, two cubes."""
    text = "component,id,start,end,cube\nhost,b,0,1,3\nhost,a,0,1,3\nhost,c,5,6,0\n"
    (log,) = read_failure_logs(written(tmp_path, text))
    assert dict(zip(log.names, placed_by_number(log, 64).tolist(), strict=True)) == {"a": 48, "b": 49, "c": 0}
    with pytest.raises(InputError, match=r"log.csv: line 3: cube 3, and the machine has 2"):
        placed_by_number(log, 32)


def test_gpu_pairs_first_in_first_out(tmp_path: Path) -> None:
    """Goal: two faults open at once are paired in order. Method: one server, by hand; down until all have ended."""
    kinds = ["fault_start", "fault_start", "fault_end", "fault_end"]
    events = [
        {"node_id": "n", "event_time": day, "event_type": kind, "fault_type": {"Level": "L"}}
        for day, kind in zip((1, 2, 3, 4), kinds, strict=True)
    ]
    path = written(tmp_path, json.dumps(events), "faults.json")
    (log,) = read_failure_logs(path, window=("0", "10"))
    assert (log.start_us / (24 * US_PER_H)).tolist() == [1, 2]
    assert (log.end_us / (24 * US_PER_H)).tolist() == [3, 4]
    assert analysis_of(log).availability == pytest.approx(0.7)
    assert not log.components_known


# ---------------------------------------------------------------- what is refused

BAD_GENERIC = {
    "empty": ("", "empty"),
    "no rows": ("component,id,start,end\n", "no outage"),
    "missing columns": ("component,id,start\nhost,1,2\n", "line 1: no column end"),
    "column twice": ("component,id,start,end,end\nhost,1,2,3,4\n", "named twice"),
    "unknown component": ("component,id,start,end\nhost,1,1,2\ngpu,1,2,3\n", "line 3: unknown component `gpu`"),
    "fields missing": ("component,id,start,end\nhost,1,1,2\nhost,1\n", "line 3: 2 fields"),
    "no time": ("component,id,start,end\nhost,1,soon,2\n", "line 2: `soon` is no time"),
    "not finite": ("component,id,start,end\nhost,1,nan,2\n", "line 2: `nan` is no time"),
    "too large": ("component,id,start,end\nhost,1,1e300,2\n", "line 2: `1e300` is too large"),
    "no start": ("component,id,start,end\nhost,1,,2\n", "line 2: `` is no time"),
    "negative length": ("component,id,start,end\nhost,1,0,1\nhost,2,9,8\n", "line 3: the outage of 2 ends before it"),
    "dates and seconds": ("component,id,start,end\nhost,1,0,1\nhost,2,2024-01-01,2024-01-02\n", "line 3: dates and"),
    "no id": ("component,id,start,end\nhost, ,0,1\n", "line 2: no id"),
    "no cube": ("component,id,start,end,cube\nhost,1,0,1,x\n", "line 2: `x` is no whole"),
    "two cubes": ("component,id,start,end,cube\nhost,1,0,1,2\nhost,1,5,6,3\n", "line 3: host 1 is in cube 3"),
    "one instant": ("component,id,start,end\nhost,1,5,6\n", "no window"),
    "open quote": ('component,id,start,end\nhost,"1,5,6\n', "no CSV"),
    "NUL": ("component,id,start,end\nhost,\0,5,6\nhost,1,7,8\n", "line 2: a NUL character"),
}
BAD_LANL = {
    "time": (LANL_HEAD + "18,4,0,2002-05-06,5/7/2002 1:00,,CPU,,,,\n", "line 2: `2002-05-06` is no time"),
    "node": (LANL_HEAD + "18,4,4,5/6/2002 1:00,5/7/2002 1:00,,CPU,,,,\n", "line 2: node 4 of a system of 4"),
    "number": (LANL_HEAD + "18,4,x,5/6/2002 1:00,5/7/2002 1:00,,CPU,,,,\n", "line 2: `x` is no whole"),
    "length": (LANL_HEAD + "18,4,1,5/6/2002 1:00,5/5/2002 1:00,,CPU,,,,\n", "line 2: the outage of 1 ends before"),
    "systems": (LANL_HEAD + "1,4,1,5/6/2002 1:00,,,,,,,\n2,4,1,5/6/2002 1:00,,,,,,,\n", "line 3: systems 1 and 2"),
    "columns": ("System,Prob Started\n18,5/6/2002 1:00\n", "line 1: no column nodes"),
}


def fault(day: object, kind: str = "fault_start", **more: object) -> dict[str, object]:
    return {"node_id": "n", "event_time": day, "event_type": kind, "fault_type": {"Level": "L"}} | more


BAD_GPU = {
    "no array": ("{}", "no JSON array"),
    "empty array": ("[]", "no JSON array"),
    "cut off": ('[\n{"node_id": "n",', "line 2: no JSON"),
    "deep": ("[" * 100_000, "JSON"),
    "no mapping": ("[3]", "event 1: no mapping"),
    "no time": (json.dumps([{"node_id": "n", "event_type": "fault_start"}]), "event 1: no event_time"),
    "text as time": (json.dumps([fault("3")]), "event 1: event_time '3'"),
    "NaN": ('[{"node_id": "n", "event_time": NaN, "event_type": "fault_start"}]', "event 1: event_time nan"),
    "endless time": ('[{"node_id": "n", "event_time": 1' + "0" * 400 + ', "event_type": "x"}]', "is no number of days"),
    "unknown type": (json.dumps([fault(1), fault(2, "fault_middle")]), "event 2: event_type 'fault_middle'"),
    "end before start": (json.dumps([fault(2, "fault_end"), fault(3)]), "event 1: server n ends a fault that never"),
    "long number": ("[" + "9" * 5000 + "]", "JSON"),
    "cause of text": (json.dumps([fault(1, fault_type="GPU"), fault(2)]), "event 1"),
}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        pytest.param(*case, id=f"{name}: {key}")
        for name, cases in (("generic", BAD_GENERIC), ("lanl", BAD_LANL), ("gpu", BAD_GPU))
        for key, case in cases.items()
    ],
)
def test_bad_logs_are_refused(tmp_path: Path, text: str, said: str) -> None:
    """Goal: file, line, what is wrong, what to write; never a traceback. Method: one file per kind of fault."""
    path = written(tmp_path, text)
    with pytest.raises(InputError) as caught:
        read_failure_logs(path)
    assert said in str(caught.value)
    assert str(path) in str(caught.value)


def test_unreadable_files_are_refused(tmp_path: Path) -> None:
    """Goal: files that are none. Method: absent, a folder, cut-off gzip, not UTF-8."""
    packed = gzip.compress(GENERIC.encode())
    for path, said in (
        (tmp_path / "absent.csv", "no such file"),
        (tmp_path, "can not be read"),
        (written(tmp_path, packed[:-12], "cut.csv.gz"), "damaged"),
        (written(tmp_path, packed[:12] + b"????" + packed[16:], "hurt.csv.gz"), "damaged"),
        (written(tmp_path, b"component,id\xff", "latin.csv"), "not UTF-8"),
    ):
        with pytest.raises(InputError, match=said):
            read_failure_logs(path)


def test_populations_windows_and_causes_are_checked(tmp_path: Path) -> None:
    """Goal: options that do not fit the file. Method: one of each."""
    path = written(tmp_path, GENERIC)
    (log,) = read_failure_logs(path)
    with pytest.raises(InputError, match=r"log.csv: line 3: node 3, and the machine has 3"):
        placed_by_number(log, 3)
    with pytest.raises(InputError, match="3 components of kind host, and the machine has 2"):
        placed_by_shuffle(log, 2, 1, 0)
    for options, said in (
        ({"components": 10**12}, "1000000 or fewer"),
        ({"components": 2}, r"log.csv: line 3: 3 components are named, more than the population of 2"),
        ({"window": ("2 d", "1 d")}, "ends .* before it begins"),
        ({"window": ("2024-01-01", "2024-02-01")}, "does not match the log"),
        ({"window": ("soon", "later")}, "no time"),
        ({"causes": ("coffee",)}, "no outage has the cause coffee.*fan, gpu"),
    ):
        with pytest.raises(InputError, match=said):
            read_failure_logs(path, **options)  # type: ignore[arg-type]


spans = st.lists(
    st.tuples(st.integers(0, 5), st.integers(0, 40), st.integers(0, 30) | st.none()), min_size=2, max_size=25
)


@given(spans=spans, extra=st.integers(0, 3), window=st.none() | st.just(("5", "30")))
@settings(deadline=None, max_examples=80)
def test_any_log_is_analysed(
    tmp_path_factory: pytest.TempPathFactory,
    spans: list[tuple[int, int, int | None]],
    extra: int,
    window: tuple[str, str] | None,
) -> None:
    """Goal: no log, however thin, ends in a traceback. Method: random small logs; shares are shares, JSON is JSON."""
    lines = [f"host,{c},{a},{'' if length is None else a + length}" for c, a, length in spans]
    path = written(tmp_path_factory.mktemp("logs"), "component,id,start,end\n" + "\n".join(lines))
    assume(window is not None or len({start for _, start, _ in spans}) > 1)
    (log,) = read_failure_logs(path, components=6 + extra, window=window)
    found = analysis_of(log)
    assert 0.0 <= found.availability <= 1.0
    assert json.loads(json.dumps(found.as_dict(), allow_nan=False))["components"] == 6 + extra
    assert found.failures_yaml.startswith("failures:")


def test_random_groups_by_hand() -> None:
    """Goal: groups all up, exactly. Method: 4 components, two of them down half of the time: pairs all up 7 in 12."""
    assert random_groups_all_up(np.array([1, 0, 1, 0, 0]), 2) == pytest.approx((1 + 1 / 6) / 2)
    assert random_groups_all_up(np.array([0, 0, 0, 0, 1]), 2) == 0.0
