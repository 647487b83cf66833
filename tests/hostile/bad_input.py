"""Bad input of every other kind than scenarios, as data: what is typed, what is in the files, what the lines must say.

`{run}` in an argument is a copy of a finished run, in which `change` may change something; `files` stand in the working
folder. The line of the fault begins with `place`.
"""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from sim.load_tables import REQUESTS

Change = Callable[[Path], object]


class Bad(NamedTuple):
    """One bad input: its kind, the command line, files, a change of the run, and the line that must be printed."""

    kind: str
    line: tuple[str, ...]
    place: str
    says: str
    files: Mapping[str, bytes] = {}
    change: Change | None = None


def typed(kind: str, line: str, place: str, says: str) -> Bad:
    """A command line alone, words apart by blanks (`~` in a word stands for one)."""
    return Bad(kind, tuple(word.replace("~", " ") for word in line.split()), place, says)


COST = ("cost", "llama2_70b", "a100_80gb", "8", "--phase", "decode", "--batch", "1", "--context", "10")


def option(line: str, place: str, says: str) -> Bad:
    """Options and arguments."""
    return typed("option", line, place, says)


def own(text: str, place: str, says: str) -> Bad:
    """A file with chips and models of one's own."""
    return Bad("own catalogue", (*COST, "--own", "own.yaml"), f"own.yaml:{place}", says, {"own.yaml": text.encode()})


def log(text: str | bytes, place: str, says: str, name: str = "log.csv", *more: str) -> Bad:
    """A failure log."""
    data = text if isinstance(text, bytes) else text.encode()
    return Bad("failure log", ("log", name, *more), f"{name}{place}", says, {name: data})


SERVICE = """\
name: traced
pod: {cubes: 8, grid: 2x2x2}
serving:
  weights: healthy
  services:
    - name: chat
      model: llama3_70b
      slice: 4x4x4
      load: 0.5
      requests: {kind: trace, path: FILE}
      slo: {ttft: 2 s, tpot: 60 ms}
"""


def trace(text: str | bytes, says: str, name: str = "trace.csv") -> Bad:
    """A request trace, of a scenario; faults of the file are those of the key on line 10 that names it."""
    data = text if isinstance(text, bytes) else text.encode()
    files = {"traced.yaml": SERVICE.replace("FILE", name).encode(), name: data}
    return Bad("request trace", ("validate", "traced.yaml"), "traced.yaml:10: serving.services.0.requests", says, files)


def manifest(key: str, value: Any, says: str) -> Bad:
    """A finished run whose manifest says something else."""

    def change(run: Path) -> None:
        file = run / "manifest.json"
        text = json.dumps(json.loads(file.read_text()) | {key: value})
        file.unlink()
        file.write_text(text)

    return Bad("run folder", ("report", "{run}"), "{run}/manifest.json: is damaged: ", says, {}, change)


def spoiled(line: str, name: str, content: bytes | None, place: str, says: str) -> Bad:
    """A finished run with another content of a file (None: none)."""

    def change(run: Path) -> None:
        (run / name).unlink()
        if content is not None:
            (run / name).write_bytes(content)

    return Bad("run folder", tuple(line.split()), place, says, {}, change)


def retabled(line: str, name: str, change_of: Callable[[pd.DataFrame], pd.DataFrame], place: str, says: str) -> Bad:
    """A finished run with a changed table."""

    def change(run: Path) -> None:
        file = run / "tables" / f"{name}.parquet"
        changed = change_of(pd.read_parquet(file))
        file.unlink()
        changed.to_parquet(file)

    return Bad("run folder", tuple(line.split()), place, says, {}, change)


def request_rows() -> pd.DataFrame:
    """Two requests, as a run records them."""
    row = {
        "service": "chat", "request": [0, 1], "arrival_ns": [0, 5], "input_tokens": 600, "output_tokens": 2,
        "first_token_ns": 10, "last_token_ns": 20, "tokens": 2, "gaps_ns": "10", "status": "completed", "replica": 0,
        "attempts": 1, "evictions": 0, "prefix_blocks": "0 1", "prefix_block_tokens": 512,
    }  # fmt: skip
    return REQUESTS.make({name: row[name] for name in REQUESTS.names})


def with_gaps(requests: pd.DataFrame) -> pd.DataFrame:
    """Gaps that are no numbers."""
    return requests.assign(gaps_ns=pd.array(["a b"] * len(requests), dtype="string"))


def with_blocks(requests: pd.DataFrame) -> pd.DataFrame:
    """Blocks of no tokens."""
    return requests.assign(prefix_block_tokens=pd.array([0] * len(requests), dtype="Int64"))


def baseline(text: str, says: str) -> Bad:
    """A baseline that is none."""
    line = ("check", "closed_form", "--baseline", "base.json")
    return Bad("baseline", line, "base.json", says, {"base.json": text.encode()})


def piped(line: str, place: str, says: str) -> Bad:
    """A pipe, into which nobody writes, in place of a file."""
    return Bad("no file", tuple(line.split()), place, says, {}, lambda run: os.mkfifo(run.parent / "pipe"))


HEAD = "component,id,start,end\n"
ROWS = "arrival_s,input_tokens,output_tokens\n"
LONG = "x" * 5_000
STEP = "--phase decode --batch 1 --context 1"
PALM = "cost palm_540b tpu_v4 4x4x4 --phase decode"
CHIP, MODEL = "chips: {a: {like: tpu_v4, %s}}", "models: {m: {like: llama2_70b, %s}}"

OPTIONS = [
    option(f"{PALM} --batch 999999999999 --context 1", "--batch: ", "write 1"),
    option(f"{PALM} --batch -1 --context 1", "--batch: ", "-1 sequences"),
    option(f"{PALM} --batch 1 --context 9999999999", "--context: ", "tokens"),
    option(f"{PALM} --batch nan --context 1", "opticube cost: ", "'--batch'"),
    option("cost palm_540b tpu_v4 4x4x4 --phase thinking --batch 1 --context 1", "--phase: ", "not known"),
    option(f"cost palm_54 tpu_v4 4x4x4 {STEP}", "MODEL: ", "write `palm_540b`"),
    option(f"cost palm_540b tpu_v44 4x4x4 {STEP}", "CHIP: ", "write `tpu_v4`"),
    option(f"cost palm_540b tpu_v4 4x4x99999999999 {STEP}", "SHAPE: ", "is no shape"),
    option(f"cost llama2_70b a100_80gb 8x0 {STEP}", "SHAPE: ", "is no shape"),
    option(f"cost llama2_70b a100_80gb 8x81 {STEP}", "SHAPE: ", "fewer stages"),
    option(f"cost llama2_70b a100_80gb 8 {STEP} --picture a.gif", "--picture: ", "no picture"),
    option(f"cost llama2_70b a100_80gb 8 {STEP} --picture dir.png", "--picture: ", "is a folder"),
    option("plan llama2_70b a100_80gb --input 0 --output 1", "--input: ", "0 tokens; write 1 to 10,000,000"),
    option("plan llama2_70b a100_80gb --input 1 --output 1 --limit-token 40", "--limit-token: ", "has no unit"),
    option("plan llama2_70b a100_80gb --input 1 --output 1 --limit-chips 0", "--limit-chips: ", "at least 1"),
    option("plan llama2_70b a100_80gb --input 1 --output 1 --picture x", "--picture: ", "is no picture"),
    option("size --slices 8x8x16:0 --host-availability 99~%", "--slices: ", "is no SHAPE:NUMBER"),
    option("size --slices , --host-availability 99~%", "--slices: ", "is no SHAPE:NUMBER"),
    option("size --slices 4x4x4:1 --host-availability 100~%", "--host-availability: ", "strictly between 0 and 1"),
    option("size --slices 4x4x4:1 --host-availability 99~% --time-share nan", "--time-share: ", "is not a share"),
    option("size --slices 4x4x4:1 --scenario smoke --horizon 0~d", "horizon: ", "is zero"),
    option("size --slices 4x4x4:1 --scenario smok", "smok: ", "write `smoke`"),
    option("topology 99999x99999x99999", "SHAPE: ", "is not made of whole cubes"),
    option("topology 0", "SHAPE: ", "0 chips are no whole number of cubes"),
    option("topology 4x4x4 --fail ocs:x:99999999999", "--fail: ", "there is no switch"),
    option("topology 4x4x4 --pod v9", "--pod: ", "write one of v4"),
    option("topology 512 --mix all_to_all=1e400~MB", "--mix: ", "is not a finite number"),
    option("topology 4x16x16 --wrap xx", "--wrap: ", "names no axes"),
    option("light --fail host:-1", "--fail: ", "names no host"),
    option("light --slices 8x8x16:9999999", "--slices: ", "is no SHAPE:NUMBER"),
    option("list chip", "opticube list: ", "write `chips`"),
    option("report nowhere", "nowhere: ", "not the folder of a run"),
    option("report {run} --format pdf2", "--format: ", "is no format of a report"),
    option("export {run} --format xml", "--format: ", "write one of vllm, vidur, mooncake, gke, openmetrics"),
    option("export {run} --format vllm --point 99", "--point: ", "write one of them"),
    option("export {run} --format vllm --service x", "--service: ", "has no recorded requests"),
    option("replay {run} --replication 99", "--replication: ", "has no replication 99"),
    option("replay {run} --request 0", "--request: ", "the run has no services"),
    option("compare {run} {run} --fail-if nonsense", "--fail-if", "write"),
    option("run closed_form --workers 1000000", "--workers: ", "worker processes on"),
    option("run closed_form --dask nowhere --workers 2", "opticube run: ", "leave out --workers"),
    option("run closed_form --out taken", "taken: ", "exists already"),
    option("run closed_form --out taken/thesis.tex", "taken/thesis.tex: ", "is a file"),
    option("run closed_form --out astray", "astray: ", "is a link that leads nowhere"),
    option(f"run closed_form --out {LONG}", "xxxx", "the name is too long; write a shorter one"),
    option(f"validate {LONG}", "", "the name is too long; write a shorter one"),
    option(f"report {LONG}", "xxxx", "the name is too long; write a shorter one"),
    Bad("option", ("validate", "a\0b"), "a", "there is no such file"),
    Bad("option", ("run", "closed_form", "--out", "a\0b"), "opticube run: ", "embedded null byte"),
    Bad("option", ("validate", "smoke", "--set", "name=a\0b"), "--set ", "character U+0000 is not allowed"),
    Bad("option", ("validate", "smoke", "--set", "name=../../x"), "--set ", "can not name a folder"),
    Bad("option", ("validate", "smoke", "--set", "name=/etc/x"), "--set ", "can not name a folder"),
    Bad("option", ("validate", "smoke", "--set", 'name="a\\nb"'), "--set ", "can not name a folder"),
    Bad("option", ("validate", "smoke", "--set", 'description="\\e[2J"'), "--set ", "character U+001B is not allowed"),
    Bad("option", ("validate", "smoke", "--set", 'description="\\ud800"'), "--set ", "character U+D800 is not allowed"),
]  # fmt: skip

SWARM = [
    typed("swarm", "swarm --runs 0", "opticube swarm: ", "'--runs'"),
    typed("swarm", "swarm --runs 99999999999", "opticube swarm: ", "'--runs'"),
    typed("swarm", "swarm --seed -1", "opticube swarm: ", "'--seed'"),
    typed("swarm", "swarm --seed 9007199254740993", "opticube swarm: ", "'--seed'"),
    typed("swarm", "swarm --seed x", "opticube swarm: ", "'--seed'"),
    typed("swarm", "swarm --workers 0", "opticube swarm: ", "'--workers'"),
]

KNOBS = [
    typed("knob", "worth smoke", "smoke: ", "no knob is named"),
    typed("knob", "worth smoke --knob =", "--knob =: ", "this turns nothing"),
    typed("knob", "worth smoke --knob repair.crews", "--knob repair.crews: ", "this turns nothing"),
    typed("knob", "worth smoke --knob nosuch=1", "--knob nosuch=1: ", "unknown key `nosuch`"),
    typed("knob", "worth smoke --knob repair.crews=x2", "--knob ", "no value at `repair.crews` to start from"),
    typed("knob", "worth smoke --knob repair.crews=xnan", "--knob ", "is text, not a whole number"),
    typed("knob", "worth smoke --knob health.detection=-5000", "--knob ", "is negative"),
    typed("knob", "worth smoke --knob health.detection=x1e9999", "--knob ", "is not a number with a unit"),
    typed("knob", "worth smoke --knob health.detection=x0.1;health.detection=x2", "--knob ", "is turned twice"),
    typed("knob", "worth smoke --knob health.detection=x2 --knob health.detection=x2", "--knob ", "is there twice"),
    typed("knob", "worth smoke --knob run.seed=2", "--knob ", "would be another luck"),
    typed("knob", "worth smoke --knob sweep.pod.fabric=[any_host]", "--knob ", "is no part of the machine"),
    typed("knob", "worth smoke --knob name=../../x", "--knob ", "is no part of the machine"),
    typed("knob", "worth smoke --knob health.detection=[[[", "--knob ", "this is not YAML"),
    typed("knob", "worth smoke --knob health.detection=*x", "--knob ", "alias `*x` is not allowed"),
    typed("knob", "break-even closed_form", "closed_form: ", "add `study.delivered`"),
]

CATALOGUE = [
    own("", "1: ", "the file is empty"),
    own("chips: []", "1: ", "is a list, not a mapping"),
    own("run: {seed: 1}", "", "neither `chips` nor `models`"),
    own("chips: {a: {}}", "1: ", "or `like:` with a key of the catalogue"),
    own("chips: {a: {like: b}, b: {like: tpu_v4}}", "1: ", "`b` is not in the catalogue"),
    own("chips: {tpu_v4: {like: tpu_v4}}", "1: ", "write another key"),
    own("chips: {'../../x': {like: tpu_v4}}", "1: ", "`../../x` is no key; write small letters"),
    own(CHIP % "hbm_bytes: 64", "1: ", "64 has no unit"),
    own(CHIP % "hbm_bytes: -1 GiB", "1: ", "`-1 GiB` is negative"),
    own(CHIP % "hbm_bytes: 1e400 GiB", "1: ", "is not a finite number"),
    own(CHIP % "peak_flops_per_s: 1e-300 FLOP/s", "1: ", "a.peak_flops_per_s: `1e-300 FLOP/s` is not at least 1e+06"),
    own(CHIP % "link_bytes_per_s: 1e300 B/s", "1: ", "`1e300 B/s` is too much"),
    own(CHIP % "hop_s: 1e9 s", "1: ", "`1e9 s` is too much"),
    own(CHIP % "ring_chips: 100000000000000000000000", "1: ", "is out of bounds"),
    own(CHIP % "family: gpu", "1: ", "no stack is known for family `gpu`"),
    own(CHIP % 'name: "a\\nb"', "1: ", "is no name on one line"),
    own(CHIP % 'name: "\\e[2J"', "1: ", "character U+001B is not allowed"),
    own(MODEL % "layers: 0", "1: ", "write at least 1"),
    own(MODEL % "layers: 1e15", "1: ", "write at most 1e+09"),
    own(MODEL % "kv_heads: 65", "1: ", "heads must be a multiple of kv_heads"),
    own(MODEL % "latent: {rank: 1}", "1: ", "key `rope_dim` is missing"),
    own(MODEL % "window: {tokens: 10, layers: 100}", "1: ", "on at most all layers"),
    own(MODEL % "parameters: 5", "1: ", "unknown key `parameters`"),
    own("models: {m: &m {like: llama2_70b}, n: *m}", "1: ", "alias `*m` is not allowed"),
    own("models: !!python/object/apply:os.system [touch pwned]", "1: ", "write plain values"),
    own("models: " + "{a: " * 60 + "}" * 60, "1: ", "nested deeper than 50 levels"),
]

LOGS = [
    log("", "", "empty"),
    log(HEAD, "", "no outage"),
    log(HEAD + "host,1,1,2\ngpu,1,2,3\n", ": line 3", "unknown component `gpu`"),
    log(HEAD + "host,1,soon,2\n", ": line 2", "`soon` is no time"),
    log(HEAD + "host,1,9,8\nhost,2,1,2\n", ": line 2", "ends before it"),
    log(HEAD + "host,1,nan,2\n", ": line 2", "`nan` is no time"),
    log(HEAD + 'host,"1,5,6\n', "", "no CSV"),
    log(b"component,id\xff", "", "not UTF-8"),
    log(gzip.compress(HEAD.encode())[:-9], "", "damaged or cut off", "log.csv.gz"),
    Bad(
        "failure log",
        ("log", "log.csv", "--window", "soon", "later"),
        "window: ",
        "`soon` is no time",
        {"log.csv": (HEAD + "host,1,1,2\nhost,1,3,4\n").encode()},
    ),
    log(HEAD + "host,1,1,2\nhost,1,3,4\n", "", "no outage has the cause coffee", "log.csv", "--cause", "coffee"),
    log("[" * 100_000, "", "JSON", "log.json"),
]

TRACES = [
    trace(ROWS, "trace.csv: no requests below the header"),
    trace(ROWS + "0,1,1\n", "all requests of the trace arrive at one instant"),
    trace(ROWS + "0,1,0\n1,1,0\n", "no requests below the header, 2 failed"),
    trace(ROWS + "0,1,1\nnan,1,1\n", "trace.csv:3: arrival_s of 'nan' is no number"),
    trace(ROWS + "0,1,1\ninf,1,1\n", "trace.csv:3: arrival_s of 'inf' is no number"),
    trace(ROWS + "0,1,1\n1,-5,1\n", "trace.csv:3: input_tokens: -5 tokens are out of range"),
    trace(ROWS + "0,1,1\n1,1\n", "trace.csv:3: no value for column 'output_tokens'"),
    trace(ROWS + "0,1,1\n1," + "9" * 200_000 + ",1\n", "trace.csv:3: no CSV (field larger than field limit"),
    trace(ROWS + "0,1,1\n\0\n1,2,3\n", "trace.csv:3: no value for column"),
    trace(ROWS + "0;1;1\n", "trace.csv:2: no value for column"),
    trace(ROWS + "0,1,1\n1e11,1,1\n", "lie 3,171 years apart"),
    trace("a,b,c\n1,2,3\n", "the format is not certain"),
    trace("{" * 100_000, "the format is not certain", "trace.jsonl"),
    trace(gzip.compress(ROWS.encode())[:-9], "not a complete gzip file", "trace.csv.gz"),
    trace("caf\xe9".encode("latin-1"), "not a UTF-8 text"),
]

MANIFESTS = [
    manifest("points", None, "points: "),
    manifest("points", [], "points: "),
    manifest("points", [{}], "points.0.point: Field required"),
    manifest("points", [{"point": 0, "host_availability": "x"}], "points.0.host_availability: "),
    manifest("points", {"a": 1}, "points: "),
    manifest("settings", [["a"]], "settings.0: "),
    manifest("settings", None, "settings: "),
    manifest("limits", {"chat": {"x": 1}}, "limits.chat."),
    manifest("limits", [], "limits: "),
    manifest("warnings", 5, "warnings: "),
    manifest("warnings", [5], "warnings.0: "),
    manifest("seed", "x", "seed: "),
    manifest("wall_time_s", "x", "wall_time_s: "),
    manifest("name", None, "name: "),
    manifest("version", 3, "version: "),
    manifest("hall", [1], "hall: "),
    manifest("hall", [10**9, 10**9, 10**9], "hall.0: "),
    manifest("tables", 3, "tables: "),
    manifest("streams", 3, "streams: "),
    manifest("pictures", 3, "pictures: "),
]

TAMPERED = "{run}/tables: "
RUNS = [
    *MANIFESTS,
    spoiled("report {run}", "manifest.json", None, "{run}: ", "the run is not finished"),
    spoiled("report {run}", "manifest.json", b"[" * 100_000, "{run}: ", "not the folder of a run"),
    spoiled("export {run} --format vllm", "timeline.json", b"[1]", "{run}/timeline.json: ", "can not be read as a"),
    spoiled("export {run} --format vllm", "timeline.json", b"[" * 100_000, "{run}/timeline.json: ", "can not be read"),
    spoiled("export {run} --format openmetrics", "summary.csv", b"a,b\n1,2\n", "{run}/summary.csv: ", "as a table"),
    spoiled("compare {run} {run}", "summary.csv", b"\x00\xff", "{run}/summary.csv: ", "can not be read as a table"),
    spoiled("replay {run} --replication 0", "scenario.yaml", b"name: [", "", "scenario.yaml:1: this is not YAML"),
    spoiled("check {run} --baseline new.json --update", "tables/replications.parquet", b"PAR1", "{run}/", "as a table"),
    retabled("export {run} --format vllm", "requests", lambda t: t.drop(columns=["status"]), "{run}/", "as a table"),
    retabled("export {run} --format vllm", "requests", lambda t: t.assign(input_tokens="x"), "{run}/", "as a table"),
    retabled("export {run} --format vllm", "requests", with_gaps, TAMPERED, "requests: changed since the run"),
    retabled("export {run} --format mooncake", "requests", with_blocks, TAMPERED, "requests: changed since the run"),
    retabled("replay {run} --replication 0", "replications", lambda t: t.assign(value="x"), "{run}/", "as a table"),
    retabled("compare {run} {run}", "replications", lambda t: t.drop(columns=["value"]), "{run}/", "as a table"),
]  # fmt: skip

BASELINES = [
    baseline("{", "can not be read as a baseline"),
    baseline("[" * 100_000, "can not be read as a baseline"),
    baseline("[]", "is no baseline"),
    baseline('{"format": 1}', "write it anew"),
    baseline('{"format": 2}', "is damaged: version"),
    typed("baseline", "check closed_form --baseline none.json", "none.json: ", "write it with --update"),
]

NO_FILES = [
    piped("validate pipe", "pipe: ", "this is not a regular file"),
    piped("log pipe", "pipe: ", "no regular file"),
    piped(f"{' '.join(COST)} --own pipe", "pipe: ", "this is not a regular file"),
    typed("no file", "validate /dev/zero", "/dev/zero: ", "this is not a regular file"),
    typed("no file", "log /dev/zero", "/dev/zero: ", "no regular file"),
    Bad("no file", ("validate", "traced.yaml"), "traced.yaml:10: ", "no regular file",
        {"traced.yaml": SERVICE.replace("FILE", "/dev/zero").encode()}),
    Bad("no file", ("validate", "traced.yaml"), "traced.yaml:10: ", "no regular file",
        {"traced.yaml": SERVICE.replace("FILE", ".").encode()}),
]  # fmt: skip

BAD = [*OPTIONS, *SWARM, *KNOBS, *CATALOGUE, *LOGS, *TRACES, *RUNS, *BASELINES, *NO_FILES]
