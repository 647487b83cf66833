"""Readers of job logs: check values of the real files, quirks, faults by line."""

from __future__ import annotations

import gzip
from collections import Counter
from collections.abc import Callable
from datetime import date
from pathlib import Path

import numpy as np
import pytest

from tests.shared_data import shared_file
from topology.errors import InputError
from topology.fabric import Fabric
from topology.pod import POD_GENERATIONS, FlatPod, Pod
from topology.policies import FirstFit
from workloads.file_text import MAX_FAULTS
from workloads.jobs.gpu_clusters import read_helios, read_helios_quotas, read_philly
from workloads.jobs.job_log import JobLog
from workloads.jobs.job_plan import JobPlan, plan_from_log
from workloads.jobs.slice_rules import Exact, RoundUp, ShareOfMachine
from workloads.jobs.swf import read_swf

SWF = "    1        0     -1   1451  128  31.25    -1   -1     -1    -1 -1   1   1  -1 -1 -1 -1 -1"
PHILLY = "timestamp,duration,num_gpus,gpu_time,cluster"
HELIOS = "date,vcA,vcB,total"


def written(folder: Path, text: str, name: str = "log.txt") -> Path:
    """A file with exactly these characters."""
    path = folder / name
    path.write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
    return path


def cv_of_gaps(log: JobLog) -> float:
    """Standard deviation of the gaps between submissions over their mean."""
    gaps = np.diff(log.submit_s)
    return float(gaps.std(ddof=1) / gaps.mean())


def test_check_values_of_the_nasa_log() -> None:
    """Goal: the reader gives what the data's README states. Method: every check value."""
    swf = read_swf(shared_file("swf/nasa_ipsc_1993.swf.gz"))
    log = swf.jobs()
    assert (log.count, log.submit_s[0], log.submit_s[-1]) == (18239, 0, 7948936)
    assert (log.number.min(), log.number.max()) == (1, 42264)
    assert (log.count - 1) / log.submit_s[-1] * 3600 == pytest.approx(8.260, abs=5e-4)
    assert cv_of_gaps(log) == pytest.approx(9.465, abs=5e-4)
    assert np.count_nonzero(np.diff(log.submit_s) == 0) == 5
    for name, missing in (("wait_s", 18239), ("run_s", 0), ("processors", 0), ("requested_processors", 18239),
                          ("requested_s", 18239), ("memory_kb", 18239), ("status", 18239)):  # fmt: skip
        assert np.count_nonzero(swf.field(name) == -1) == missing, name
    assert np.count_nonzero(log.run_s == 0) == 173
    assert np.isnan(log.wait_s).all()
    assert len(Counter(log.owner)) == 69
    assert log.work_processor_s / 3600 == pytest.approx(131732.8, abs=0.05)
    assert dict(sorted(Counter(log.processors.tolist()).items())) == {
        1: 4935, 2: 1763, 4: 2683, 8: 1793, 16: 1780, 32: 3662, 64: 1203, 128: 420,
    }  # fmt: skip
    quantiles = np.quantile(log.run_s, [0, 0.01, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 1]).round()
    assert quantiles.tolist() == [0, 1, 14, 27, 86, 284, 1479, 3723, 10932, 62643]
    assert log.run_s.mean() == pytest.approx(764.89, abs=5e-3)
    assert log.processors.mean() == pytest.approx(16.99, abs=5e-3)
    assert swf.machine_processors == log.machine_processors == 128
    assert swf.header["TimeZone"] == "-28800"


def test_check_values_of_the_accasim_log() -> None:
    """Goal: the same for a file without header and last line end, with waits. Method: every check value."""
    swf = read_swf(shared_file("swf/accasim_test_25_jobs.swf"))
    log = swf.jobs()
    assert (log.count, swf.header, swf.machine_processors) == (25, {}, None)
    assert swf.field("submit_s")[[0, -1]].tolist() == [561553, 3891447]
    assert (log.count - 1) / log.submit_s[-1] * 3600 == pytest.approx(0.026, abs=5e-4)
    assert cv_of_gaps(log) == pytest.approx(4.761, abs=5e-4)
    assert np.count_nonzero(np.diff(log.submit_s) == 0) == 1
    missing = [int(np.count_nonzero(swf.field(name) == -1)) for name in ("wait_s", "requested_s", "memory_kb")]
    assert missing == [0, 0, 1]
    assert (swf.field("status") == 1).all()
    assert len(Counter(log.owner)) == 5
    assert log.work_processor_s / 3600 == pytest.approx(1903.1, abs=0.05)
    assert dict(sorted(Counter(log.processors.tolist()).items())) == {1: 4, 8: 5, 16: 1, 20: 2, 24: 9, 36: 4}
    assert np.quantile(log.wait_s, [0, 0.25, 0.5, 0.75, 0.9, 1]).round().tolist() == [0, 2, 9915, 46916, 164550, 221748]
    assert log.wait_s.mean() == pytest.approx(42910.52, abs=5e-3)
    assert log.run_s.mean() == pytest.approx(10126.44, abs=5e-3)


def test_check_values_of_the_philly_log() -> None:
    """Goal: the same for Philly, whose rows are in no order. Method: every check value."""
    log = read_philly(shared_file("cluster_jobs/philly_2017_11.csv"))
    assert (log.count, len(Counter(log.submit_s.tolist()))) == (21318, 20181)
    assert (log.count - 1) / log.submit_s[-1] * 3600 == pytest.approx(29.614, abs=5e-4)
    assert cv_of_gaps(log) == pytest.approx(1.702, abs=5e-4)
    assert np.count_nonzero(np.diff(log.submit_s) == 0) == 1137
    assert log.number.tolist() != sorted(log.number.tolist())
    assert log.work_processor_s / 3600 == pytest.approx(252558.7, abs=0.05)
    per_day = np.bincount(((log.submit_s + 132) // 86400).astype(int))  # the first comes 132 s after midnight
    assert (per_day.min(), per_day.max(), len(per_day)) == (158, 2040, 30)
    assert Counter(log.owner).most_common(4) == [
        ("6214e9", 10711), ("11cb48", 5763), ("6c71a0", 1537), ("103959", 885),
    ]  # fmt: skip
    assert len(Counter(log.owner)) == 14
    assert dict(sorted(Counter(log.processors.tolist()).items())) == {
        1: 19106, 2: 626, 4: 742, 8: 731, 16: 97, 24: 2, 32: 14,
    }  # fmt: skip
    jobs = Counter(zip(log.submit_s.tolist(), log.run_s.tolist(), log.processors.tolist(), log.owner, strict=True))
    assert sum(count - 1 for count in jobs.values()) == 20, "two equal rows are two jobs"
    assert log.run_s.mean() == pytest.approx(11717.81, abs=5e-3)


def test_check_values_of_the_helios_quotas() -> None:
    """Goal: the same for quotas by day. Method: every check value, and the shares of a day."""
    quotas = read_helios_quotas(shared_file("cluster_jobs/helios_earth_gpu_per_day.csv"))
    assert (len(quotas.days), len(quotas.owners)) == (181, 25)
    assert (quotas.days[0], quotas.days[-1]) == (date(2020, 4, 1), date(2020, 9, 28))
    assert (quotas.total.min(), quotas.total.max()) == (784, 1232)
    assert quotas.total.mean() == pytest.approx(997.7, abs=0.05)
    assert (np.count_nonzero(quotas.changes), quotas.changes.sum()) == (20, 63)
    assert (quotas.gpus % 8 == 0).all()
    shares = quotas.shares(date(2020, 4, 1))
    assert shares["vchbv"] == 112 / 784
    assert sum(shares.values()) == pytest.approx(1)
    assert quotas.shares(date(2019, 1, 1)) == shares
    assert quotas.shares(date(2030, 1, 1)) == quotas.shares(date(2020, 9, 28))


HELIOS_JOBS = (
    "job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,duration,queue\n"
    "1425511,uXBbc,vcJkd,1,1,1,COMPLETED,2020-06-09 18:41:01,2020-06-09 18:41:01,2020-06-10 04:55:09,36848,0\n"
    "1425512,uVMrF,vchbv,4,16,1,FAILED,2020-06-09 18:41:27,2020-06-09 18:41:27,2020-06-09 18:45:36,249,0\n"
    "1425513,uzqls,vcpDC,1,1,1,CANCELLED,2020-06-09 18:41:28,2020-06-09 18:41:28,2020-06-17 14:15:21,675233,0\n"
)
"""The three rows that the publisher prints."""
HELIOS_ROW = "7,u,vcA,8,8,1,COMPLETED,2020-06-09 00:00:00,2020-06-09 00:01:00,2020-06-09 00:03:00,120,60"


def test_jobs_of_helios(tmp_path: Path) -> None:
    """Goal: the jobs of a Helios cluster, quirks and all. Method: the rows of the publisher's page; then rows out of
    order, a job without GPUs, one that still runs (without an end), one that timed out, one whose start is not known;
    on a pod those without GPUs or run time are reported."""
    log = read_helios(written(tmp_path, HELIOS_JOBS))
    assert log.number.tolist() == [1425511, 1425512, 1425513]
    assert (log.submit_s.tolist(), log.run_s.tolist()) == ([0, 26, 27], [36848, 249, 675233])
    assert (log.processors.tolist(), log.wait_s.tolist()) == ([1, 4, 1], [0, 0, 0])
    assert log.owner == ("vcJkd", "vchbv", "vcpDC")
    rows = [
        HELIOS_ROW,
        "5,u,vcA,0,64,1,COMPLETED,2020-06-08 23:59:00,2020-06-08 23:59:00,2020-06-08 23:59:30,30,0",
        "9,u,vcB,16,64,2,RUNNING,2020-06-09 01:00:00,2020-06-09 01:00:00,,,0",
        "8,u,vcB,16,64,2,TIMEOUT,2020-06-09 00:30:00,,,100,",
    ]
    log = read_helios(written(tmp_path, HELIOS_JOBS.splitlines()[0] + "\n" + "\n".join(rows)))
    assert (log.number.tolist(), log.submit_s.tolist()) == ([5, 7, 8, 9], [0, 60, 1860, 3660])
    assert np.isnan(log.run_s).tolist() == [False, False, False, True]
    assert np.isnan(log.wait_s).tolist() == [False, False, True, False]
    plan = plan_from_log(log, Fabric.RECONFIGURABLE, Pod(cubes=8), RoundUp(), FirstFit())
    assert [(one.reason, one.count, one.first) for one in plan.rejected] == [("no_size", 1, 5), ("no_run_time", 1, 9)]
    assert [job.owner for job in plan.jobs] == ["vcA", "vcB"]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("COMPLETED", "DONE"), ":2: state of 'DONE': not one of COMPLETED, CANCELLED"),
        (("2020-06-09 00:00:00", "1591660800"), "submit_time of '1591660800' is no time"),
        (("00:03:00", "00:03:00+08:00"), "end_time of '2020-06-09 00:03:00+08:00' names a zone"),
        ((",8,8,", ",-8,8,"), "gpu_num of '-8' is below zero"),
        ((",8,8,", ",1.5,8,"), "gpu_num of '1.5' is not whole"),
        ((",120,60", ",125,60"), "duration of 125 is not what lies between its times, 120"),
        ((",120,60", ",120,6"), "queue of 6 is not what lies between its times, 60"),
        ((",120,60", ",-120,60"), "duration is below zero"),
        ((",120,60", ",120"), "11 fields, and the header has 12"),
        (("7,u", "seven,u"), "job_id of 'seven' is no number"),
        (("7,u", f"{HELIOS_ROW}\n7,u"), ":3: job_id 7 is given twice"),
        (("vc,", "cluster,"), "missing column vc"),
    ],
)
def test_bad_helios_is_refused_by_line(tmp_path: Path, change: tuple[str, str], said: str) -> None:
    """Goal: nothing wrong is played. Method: one fault at a time."""
    text = (HELIOS_JOBS.splitlines()[0] + "\n" + HELIOS_ROW).replace(*change, 1)
    with pytest.raises(InputError) as refused:
        read_helios(written(tmp_path, text))
    assert said in str(refused.value)


def test_quirks_of_swf(tmp_path: Path) -> None:
    """Goal: what archives hold is read. Method: CR LF, repeated header fields, empty lines, decimals, jobs out of
    order, processors that are only requested, packed."""
    text = "; Note: one\r\n;  Note: two\r\n; MaxProcs: 64 (not all used)\r\n\r\n"
    text += "7 900 -1 5 -1 316.04 -1 8 60 -1 1 3 -1 -1 -1 -1 -1 -1\r\n2 100 4 0 4 -1 -1 -1 -1 -1 1 -1 1 -1 -1 -1 -1 -1"
    swf = read_swf(written(tmp_path, text, "x.swf.gz"))
    log = swf.jobs()
    assert swf.header == {"Note": "one; two", "MaxProcs": "64 (not all used)"}
    assert swf.machine_processors == 64
    assert log.number.tolist() == [2, 7]
    assert log.submit_s.tolist() == [0, 800]
    assert log.processors.tolist() == [4, 8]
    assert log.owner == ("", "user3")
    assert log.requested_s[1] == 60
    assert read_swf(written(tmp_path, "; MaxNodes: many\n" + SWF)).machine_processors is None


def test_quirks_of_csv(tmp_path: Path) -> None:
    """Goal: CSV as spreadsheets write it. Method: byte-order mark, empty lines, columns in another order."""
    text = "\ufeffcluster,gpu_time,num_gpus,duration,timestamp\r\n\r\na,20.0,2,10.0,2017-11-02 00:00:00\r\n,,,,\r\n"
    log = read_philly(written(tmp_path, text))
    assert (log.count, log.owner, log.run_s.tolist()) == (1, ("a",), [10.0])
    assert read_helios_quotas(written(tmp_path, f"{HELIOS}\n2020-04-01,8,0,8\n\n")).owners == ("vcA", "vcB")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("; only comments\n", "no jobs in it"),
        (SWF + " 7", ":1: 19 fields, and a job has 18"),
        (SWF + "\n1 2 3", ":2: 3 fields"),
        (SWF.replace("128", "many"), "processors of 'many' is no number"),
        (SWF.replace("128", "1.5"), "processors of '1.5' is not whole"),
        (SWF.replace("1451", "-7"), "run_s of '-7' is below zero"),
        (SWF.replace("   0  ", "  -1  "), "submit_s of '-1' is below zero"),
        (SWF.replace("1451", "nan"), "no number"),
        (SWF.replace("1451", "1e400"), "no number"),
        (SWF.replace("1451", "9e20"), "out of range"),
        (SWF.replace("1451", "1_0"), "no number"),
        ("\n".join(["x"] * (MAX_FAULTS + 5)), "5 more faulty lines"),
    ],
)
def test_bad_swf_is_refused_by_line(tmp_path: Path, text: str, said: str) -> None:
    """Goal: nothing wrong is played. Method: one fault at a time; the message names file, line and fault."""
    path = written(tmp_path, text)
    with pytest.raises(InputError) as refused:
        read_swf(path)
    assert said in str(refused.value)
    assert str(path) in str(refused.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "the file is empty"),
        ("timestamp,duration\n", "missing column num_gpus, gpu_time, cluster"),
        (PHILLY, "no jobs in it"),
        (f"{PHILLY}\n2017-11-01 00:00:00,5,1,5", ":2: 4 fields, and the header has 5"),
        (f"{PHILLY}\nyesterday,5,1,5,a", "timestamp of 'yesterday' is no time"),
        (f"{PHILLY}\n2017-11-01T00:00:00+01:00,5,1,5,a", "names a zone"),
        (f"{PHILLY}\n2017-11-01 00:00:00,-5,1,5,a", "duration of '-5' is below zero"),
        (f"{PHILLY}\n2017-11-01 00:00:00,5,0,0,a", "num_gpus of '0'"),
        (f"{PHILLY}\n2017-11-01 00:00:00,5,1.5,7.5,a", "num_gpus of '1.5' is not whole"),
        (f"{PHILLY}\n2017-11-01 00:00:00,5,2,5,a", "gpu_time of 5 is not duration times num_gpus, 10"),
        (f'{PHILLY}\n"2017-11-01 00:00:00,5,2,10,a', "fields"),
    ],
)
def test_bad_philly_is_refused_by_line(tmp_path: Path, text: str, said: str) -> None:
    """Goal: nothing wrong is played. Method: one fault at a time."""
    with pytest.raises(InputError) as refused:
        read_philly(written(tmp_path, text))
    assert said in str(refused.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("day,vcA,total\n", "not the header"),
        ("date,vcA,vcA,total\n", "not the header"),
        (HELIOS, "no days below the header"),
        (f"{HELIOS}\n2020-04-01,8,8,17", "add up to 16, not to the total of 17"),
        (f"{HELIOS}\n2020-04-01,-8,8,0", "a quota is below zero"),
        (f"{HELIOS}\n2020-04-31,8,8,16", "day is out of range"),
        (f"{HELIOS}\n2020-04-02,8,8,16\n2020-04-01,8,8,16", ":3: 2020-04-01 does not come after 2020-04-02"),
    ],
)
def test_bad_quotas_are_refused_by_line(tmp_path: Path, text: str, said: str) -> None:
    """Goal: nothing wrong is used. Method: one fault at a time."""
    with pytest.raises(InputError) as refused:
        read_helios_quotas(written(tmp_path, text))
    assert said in str(refused.value)


def test_files_that_are_none_are_refused(tmp_path: Path) -> None:
    """Goal: no traceback. Method: no file, a folder, half a packed file, bytes that are no text."""
    packed = written(tmp_path, SWF * 50, "x.swf.gz")
    packed.write_bytes(packed.read_bytes()[:60])
    (tmp_path / "y.gz").write_bytes(b"not packed")
    (tmp_path / "z.swf").write_bytes(b"\xff\xfe\x00")
    for path, said in (
        (tmp_path / "none.swf", "no such file; the log is published at https"),
        (tmp_path, "can not be read"),
        (packed, "not a complete gzip file"),
        (tmp_path / "y.gz", "not a complete gzip file"),
        (tmp_path / "z.swf", "not a UTF-8 text"),
    ):
        with pytest.raises(InputError, match=said):
            read_swf(path)


def planned(log: JobLog, rule: RoundUp | Exact | ShareOfMachine, pod_name: str = "v4", **more: float) -> JobPlan:
    """The plan of a log on a pod with circuits."""
    return plan_from_log(log, Fabric.RECONFIGURABLE, POD_GENERATIONS[pod_name], rule, FirstFit(), **more)


def test_processors_become_slices_by_a_stated_rule(tmp_path: Path) -> None:
    """Goal: the mapping is chosen and what does not fit is reported. Method: a log of jobs of 1, 3, 24, 100 and 0
    processors and one without a run time, under each rule."""
    rows = [f"{n} {n * 10} -1 {run} {p} -1 -1 -1 60 -1 1 1 1 -1 -1 -1 -1 -1" for n, (p, run) in
            enumerate([(1, 5), (3, 5), (24, 5), (100, 5), (-1, 5), (8, -1)])]  # fmt: skip
    log = read_swf(written(tmp_path, "; MaxProcs: 100\n" + "\n".join(rows))).jobs()
    by_processor = planned(log, RoundUp())
    assert [job.chips for job in by_processor.jobs] == [1, 4, 32, 128]
    assert [(one.reason, one.count, one.first) for one in by_processor.rejected] == [
        ("no_size", 1, 4), ("no_run_time", 1, 5),
    ]  # fmt: skip
    assert [job.chips for job in planned(log, RoundUp(chips_per_processor=4)).jobs] == [4, 16, 128, 448]
    power = RoundUp(chips_per_processor=4, powers_of_two=True)
    assert [job.chips for job in planned(log, power).jobs] == [4, 16, 128, 512]
    exact = planned(log, Exact())
    assert [job.chips for job in exact.jobs] == [1]
    assert exact.rejected[0].reason == "no_slice"
    assert exact.rejected[0].count == 3
    assert [job.chips for job in planned(log, ShareOfMachine()).jobs] == [64, 128, 1024, 4096]
    assert planned(log, ShareOfMachine(machine_processors=200)).jobs[-1].chips == 2048
    too_large = planned(log, RoundUp(chips_per_processor=64))
    assert (too_large.jobs[-1].chips, too_large.rejected[0].reason) == (1536, "resource")
    slow = planned(log, RoundUp(), time_scale=2.0)
    assert [job.arrival_us for job in slow.jobs] == [0, 20_000_000, 40_000_000, 60_000_000]
    assert {job.work_us for job in slow.jobs} == {5_000_000}
    assert {job.requested_us for job in slow.jobs} == {60_000_000}
    with pytest.raises(InputError, match="can not stretch time"):
        planned(log, RoundUp(), time_scale=0.0)


def test_a_shape_that_no_box_holds_is_rejected_for_its_shape(tmp_path: Path) -> None:
    """Goal: reject reasons. Method: 4x4x28 (7 cubes in a row) has chips enough in a static pod, and no box."""
    log = read_swf(written(tmp_path, SWF.replace("128", "112"))).jobs()
    rule, v4 = RoundUp(chips_per_processor=4), POD_GENERATIONS["v4"]
    plan = plan_from_log(log, Fabric.STATIC_CONTIGUOUS, v4, rule, FirstFit())
    assert [(one.reason, one.count) for one in plan.rejected] == [("shape", 1)]
    assert plan.rejected_count == 1
    assert plan_from_log(log, Fabric.ANY_HOST, FlatPod(hosts=300), rule, FirstFit()).jobs[0].hosts == 112


@pytest.mark.parametrize(
    "make",
    [lambda: RoundUp(chips_per_processor=0), lambda: Exact(chips_per_processor=-1),
     lambda: ShareOfMachine(machine_processors=-1)],
)  # fmt: skip
def test_impossible_rules_are_refused(make: Callable[[], object]) -> None:
    """Goal: nonsense stops early. Method: one bad value at a time."""
    with pytest.raises(ValueError, match="at least 1"):
        make()
