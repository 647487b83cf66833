"""`opticube export`: what a run recorded, in the formats of vLLM, Vidur and Mooncake, and back through the readers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from sim import run
from sim.cli import command_status
from sim.load_tables import REQUESTS
from sim.report.context import ServiceLimits
from sim.request_files import export_text
from sim.result import Result
from tests.run.cases import SERVED, loaded
from topology.errors import InputError
from workloads.traces.reading import format_of, read_trace
from workloads.traces.trace import Trace

ALONE = (
    "sweep=null",
    "serving.weights=healthy",
    "study.delivered=null",
    "serving.load_curve=null",
)
"""The service alone, without the rest of the run."""


@pytest.fixture(scope="module")
def sessions() -> Result:
    """A run of users who come back, with prefixes."""
    text = SERVED.replace(
        "kind: poisson",
        "sessions: {turns: 3, return_mean: 20 s, return_after: answer, max_context: 16384, system_prompt: 600}",
    )
    return run(loaded(text, *ALONE), workers=1)


@pytest.fixture(scope="module")
def stormy(tmp_path_factory: pytest.TempPathFactory) -> Result:
    """A run, in a folder, whose users lose patience, come back, cancel, and find doors shut."""
    text = SERVED.replace(
        "load: 0.6",
        "load: 1.4\n      max_batch: 32\n      priorities: [0.3, 0.7]\n      admission: {max_queue: 6}\n      clients: "
        "{patience: 0.12 s, attempts: 3, backoff: 0.4 s, cancel_share: 20 %, cancel_after: 2 s}",
    )
    return run(loaded(text, *ALONE, "run.pictures=[]"), out=tmp_path_factory.mktemp("stormy") / "run", workers=1)


def read_back(text: str, folder: Path) -> Trace:
    """What the reader of traces makes of an exported text; the format is told by its content."""
    path = folder / "exported"
    path.write_text(text, encoding="utf-8")
    return read_trace(path)


def since_first(values: Any) -> np.ndarray[Any, Any]:
    """Times counted from the first arrival."""
    times = values.to_numpy(dtype=np.int64)
    return np.asarray(times - times[0])


@pytest.mark.parametrize(("form", "off_ns"), [("vllm", 1), ("vidur", 1), ("mooncake", 1_000_000)])
def test_requests_come_back_from_every_format(served: Result, form: str, off_ns: int, tmp_path: Path) -> None:
    """Goal: nothing is lost on the way out. Method: read the exported file by the reader of its format: arrivals to the
    nanosecond (Mooncake's are in ms), lengths the same."""
    table = served.tables["requests"]
    requests = read_back(served.export(form), tmp_path).requests
    assert format_of(tmp_path / "exported") == form
    assert len(table) == requests.count == 150
    assert requests.arrival_ns == pytest.approx(since_first(table["arrival_ns"]), abs=off_ns)
    assert np.array_equal(requests.input_tokens, table["input_tokens"])
    assert np.array_equal(requests.output_tokens, table["output_tokens"])


@pytest.mark.parametrize("form", ["vllm", "vidur"])
def test_measured_times_come_back(served: Result, form: str, tmp_path: Path) -> None:
    """Goal: first and last token as the run had them. Method: to the nanosecond."""
    table = served.tables["requests"]
    measured = read_back(served.export(form), tmp_path).measured
    assert measured is not None
    for times, column in ((measured.ttft_ns, "first_token_ns"), (measured.end_to_end_ns, "last_token_ns")):
        assert times == pytest.approx((table[column] - table["arrival_ns"]).to_numpy(dtype=np.int64), abs=1)


def test_the_statistics_are_those_of_the_benchmark(served: Result) -> None:
    """Goal: vLLM's names mean what they mean there. Method: computed again from the lists, as its source does."""
    result = json.loads(served.export("vllm"))
    ttfts, latencies = np.array(result["ttfts"]), np.array(result["latencies"])
    outputs = np.array(result["output_lens"])
    tpots = ((latencies - ttfts) / (outputs - 1))[outputs > 1]
    for name, values in (("ttft", ttfts), ("tpot", tpots), ("e2el", latencies)):
        assert result[f"mean_{name}_ms"] == pytest.approx(values.mean() * 1e3, rel=1e-6)
        assert result[f"median_{name}_ms"] == pytest.approx(np.median(values) * 1e3, rel=1e-6)
        assert result[f"std_{name}_ms"] == pytest.approx(values.std() * 1e3, rel=1e-6)
        assert result[f"p99_{name}_ms"] == pytest.approx(np.percentile(values, 99) * 1e3, rel=1e-6)
    good = np.count_nonzero((ttfts <= 2) & (np.where(outputs > 1, (latencies - ttfts) / (outputs - 1), 0) <= 0.060))
    assert (result["completed"], result["failed"]) == (150, 0)
    assert result["request_goodput"] == pytest.approx(good / result["duration"], rel=1e-6)
    assert result["output_throughput"] == pytest.approx(outputs.sum() / result["duration"])
    assert result["mean_itl_ms"] == pytest.approx((latencies - ttfts).sum() / (outputs - 1).sum() * 1e3, rel=1e-6)
    gaps = np.concatenate(result["itls"])
    assert [len(each) for each in result["itls"]] == (outputs - 1).tolist()
    assert np.array([sum(each) for each in result["itls"]]) == pytest.approx(latencies - ttfts, rel=1e-9)
    assert result["median_itl_ms"] == pytest.approx(np.median(gaps) * 1e3, rel=1e-9)
    assert result["p99_itl_ms"] == pytest.approx(np.percentile(gaps, 99) * 1e3, rel=1e-9)


def test_gaps_that_were_not_kept_are_left_out(served: Result) -> None:
    """Goal: no list of gaps that holds only some. Method: the gaps of one request blank."""
    table = served.tables["requests"].copy()
    table.loc[7, "gaps_ns"] = pd.NA
    result = json.loads(export_text({"requests": table}, "vllm"))
    assert "itls" not in result
    assert "p99_itl_ms" not in result
    assert result["mean_itl_ms"] > 0


def test_prefixes_come_back(sessions: Result, tmp_path: Path) -> None:
    """Goal: prompts share what they shared. Method: longest common prefix of every pair of 150 requests, by the run's
    blocks and by those of the exported file, in blocks of 512 tokens."""
    table = sessions.tables["requests"]
    own = [[] if text is None or str(text) == "<NA>" else str(text).split() for text in table["prefix_blocks"]]
    requests = read_back(sessions.export("mooncake"), tmp_path).requests
    assert requests.hash_ids is not None
    assert requests.hash_offsets is not None
    cuts = requests.hash_offsets
    back = [requests.hash_ids[cuts[n] : cuts[n + 1]].tolist() for n in range(requests.count)]
    assert [len(each) for each in back] == (-(-table["input_tokens"] // 512)).tolist()

    def shared(one: list[Any], other: list[Any]) -> int:
        return next((k for k, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))

    pairs = [(n, m) for n in range(150) for m in range(n)]
    lengths = [shared(own[n], own[m]) for n, m in pairs]
    assert lengths == [shared(back[n], back[m]) for n, m in pairs]
    assert min(lengths) == 1 < max(lengths)


@pytest.mark.parametrize(("size", "shared"), [(128, 2), (2048, 4), (300, 0)])
def test_blocks_of_other_sizes_become_blocks_of_512(size: int, shared: int) -> None:
    """Goal: a shared prefix stays one where its end can be told. Method: two prompts of 3,000 tokens that share 9
    blocks of 128 (2 of 512), one of 2,048 (4 of 512), or ones of 300, whose ends never meet."""
    common = {128: 9, 2048: 1, 300: 5}[size]
    blocks = 3000 // size
    texts = [" ".join(map(str, [*range(common), *range(own, own + blocks - common)])) for own in (100, 200)]
    row = {"service": "x", "arrival_ns": 0, "input_tokens": 3000, "output_tokens": 2, "first_token_ns": None,
           "last_token_ns": None, "tokens": 0, "status": "refused", "replica": -1, "attempts": 1, "evictions": 0,
           "prefix_block_tokens": size, "gaps_ns": None}  # fmt: skip
    table = REQUESTS.make([row | {"request": n, "prefix_blocks": text} for n, text in enumerate(texts)])
    first, second = (json.loads(line)["hash_ids"] for line in export_text({"requests": table}, "mooncake").splitlines())
    assert [a == b for a, b in zip(first, second, strict=True)] == [True] * shared + [False] * (6 - shared)


def test_requests_that_failed_are_told(tmp_path: Path) -> None:
    """Goal: refused and unfinished requests are failures for vLLM, and are no times. Method: one of each."""
    base = {"service": "x", "input_tokens": 7, "output_tokens": 3, "replica": 0, "attempts": 1, "evictions": 0,
            "prefix_blocks": None, "prefix_block_tokens": None, "gaps_ns": ""}  # fmt: skip
    rows = [
        base | {"request": 0, "arrival_ns": 0, "first_token_ns": 5 * 10**8, "last_token_ns": 10**9, "tokens": 3,
                "status": "completed"},
        base | {"request": 1, "arrival_ns": 10**9, "first_token_ns": 2 * 10**9, "last_token_ns": None, "tokens": 1,
                "status": "unfinished"},
        base | {"request": 2, "arrival_ns": 2 * 10**9, "first_token_ns": None, "last_token_ns": None, "tokens": 0,
                "status": "refused"},
    ]  # fmt: skip
    table = {"requests": REQUESTS.make(rows)}
    limits = {"x": ServiceLimits(ttft_s=1.0, tpot_s=0.1, attainment=0.9)}
    result = json.loads(export_text(table, "vllm", limits=limits))
    assert (result["completed"], result["failed"], result["errors"]) == (1, 2, ["", "unfinished", "refused"])
    assert result["request_goodput"] == 0.0
    assert read_back(json.dumps(result), tmp_path).failed_rows == 2
    vidur = export_text(table, "vidur").splitlines()
    assert vidur[2:] == ["1.000000000,7,3,1.000000000,", "2.000000000,7,3,,"]
    assert read_back(export_text(table, "mooncake"), tmp_path).requests.count == 3


@pytest.mark.parametrize("form", ["vllm", "vidur", "mooncake"])
def test_a_stormy_run_comes_back(stormy: Result, form: str, tmp_path: Path) -> None:
    """Goal: who timed out, was rejected, cancelled, or came again is exported as the format can, and what it can not
    tell is said. Method: read back: vLLM's file has the answered ones and counts the others as failed, the others have
    all as they were asked for; times are those of the table, from the first arrival; gaps add up."""
    table = stormy.tables["requests"]
    done = (table["status"] == "completed").to_numpy(dtype=bool)
    short = table.loc[~done, "status"].value_counts()
    again = int((table["attempts"] > 1).sum())
    assert min(short["timed_out"], short["cancelled"], short["rejected"], again) > 0
    assert ((table["attempts"] > 1).to_numpy(dtype=bool) & done).any()
    note = stormy.export_note(form)
    assert note.startswith(f"{short.sum()} of 150 requests have no whole answer ({short['cancelled']} cancelled, ")
    assert f"; {again} were sent more than once" in note
    text = stormy.export(form)
    trace = read_back(text, tmp_path)
    kept = table[done].reset_index(drop=True) if form == "vllm" else table
    assert (trace.requests.count, trace.failed_rows) == (len(kept), 150 - len(kept))
    assert np.array_equal(trace.requests.input_tokens, kept["input_tokens"])
    assert np.array_equal(trace.requests.output_tokens, kept["output_tokens"])
    assert trace.requests.arrival_ns == pytest.approx(since_first(kept["arrival_ns"]), abs=1_000_000)
    if form == "mooncake":
        return
    assert trace.measured is not None
    for times, column in ((trace.measured.ttft_ns, "first_token_ns"), (trace.measured.end_to_end_ns, "last_token_ns")):
        expected = (kept[column] - kept["arrival_ns"]).fillna(-1).to_numpy(dtype=np.int64)
        assert times == pytest.approx(expected, abs=1)
    if form == "vllm":
        result = json.loads(text)
        assert result["errors"] == ["" if status == "completed" else status for status in table["status"]]
        assert [len(gaps) for gaps in result["itls"]] == np.where(done, table["output_tokens"] - 1, 0).tolist()


def test_the_command_says_what_a_file_leaves_out(stormy: Result, capsys: pytest.CaptureFixture[str]) -> None:
    """Goal: nothing is dropped silently. Method: the note goes to standard error, the file alone to standard output."""
    assert stormy.folder is not None
    assert command_status(["export", str(stormy.folder), "--format", "vllm", "--out", "-"]) == 0
    out, err = capsys.readouterr()
    assert err == f"{stormy.export_note('vllm')}\n"
    assert out == stormy.export("vllm")


def test_the_command_writes_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Goal: the command line says where it wrote, or prints. Method: a run folder; all ways to choose, and refusals."""
    folder = tmp_path / "run"
    run(loaded(SERVED, *ALONE, "run.pictures=[]"), out=folder, workers=1)
    assert command_status(["export", str(folder), "--format", "vidur"]) == 0
    written = Path(capsys.readouterr().out.strip())
    assert written == folder / "export" / "vidur.csv"
    assert command_status(["export", str(folder), "--format", "vidur", "--service", "chat", "--out", "-"]) == 0
    assert capsys.readouterr().out == written.read_text(encoding="utf-8")
    for wrong, says in (
        (["--format", "csv"], "`csv` is no format; write one of vllm, vidur, mooncake, gke, openmetrics"),
        (["--format", "vllm", "--service", "chit"], "`chit` has no recorded requests; write one of chat"),
        (["--format", "vllm", "--point", "3"], "the run has points 0 to 0; write one of them"),
    ):
        assert command_status(["export", str(folder), *wrong]) == 2
        assert says in capsys.readouterr().err


def test_runs_without_records_say_how_to_get_them(machine: Result, served: Result) -> None:
    """Goal: a way out. Method: a run without a service; points that differ are asked for."""
    with pytest.raises(InputError, match=r"write `serving\.windows\.record: 1000`"):
        machine.export("vllm")
    twice = {"requests": served.tables["requests"].assign(**{"serving.services.0.replicas": "1"})}
    table = twice["requests"]
    other = table.assign(**{"serving.services.0.replicas": "2"})
    both = {"requests": pd.concat([table, other])}
    with pytest.raises(InputError, match=r"sweeps serving\.services\.0\.replicas; name one sweep point"):
        export_text(both, "vllm")
    levels = {"requests": pd.concat([served.tables["requests"].assign(clients=level) for level in ("once", "again")])}
    with pytest.raises(InputError, match=r"sweeps clients; name one sweep point"):
        export_text(levels, "vllm")
    assert export_text(both, "vllm", settings={"serving.services.0.replicas": "2"}) == export_text(twice, "vllm")
    with pytest.raises(InputError, match="the run has no point 7"):
        served.export("vllm", point=7)
