"""Bad scenarios as data: what is changed in a good one, and what the one line of the fault must say.

`BASE` is a good scenario that touches every section. A case replaces `old` by `new` in it, or adds options; `place` is
how the fault's line must begin behind the file's name, `says` what it must hold.
"""

from __future__ import annotations

from typing import NamedTuple

BASE = """\
name: base
pod: {cubes: 16, grid: 2x2x4}
failures:
  host: {failure_rate: 0.08 %/day, availability: 99.5 %}
  ocs: {failure_rate: 0.04 %/day, repair: {kind: exponential, mean: 24 h}}
health: {detection: 60 s}
repair: {crews: 4}
recovery: {restore: 600 s}
sweep:
  pod.fabric: [reconfigurable, static_aligned]
study:
  availability: {slice_chips: [64, 512], time_share: 97 %, horizon: 365 d, replications: 4}
  delivered: {slice_chips: [64], horizon: 90 d, replications: 2}
  promise: {slices: {4x4x8: 2}, time_share: 97 %}
serving:
  weights: availability
  windows: {requests: 1e3, replications: 2, losses: 1}
  services:
    - name: chat
      model: llama3_70b
      slice: 4x4x4
      replicas: 4
      load: 0.7
      batching: {kind: chunked_prefill, budget: 1024}
      requests:
        kind: gamma
        cv: 2
        input: {kind: lognormal, mean: 1024, cv: 1, max: 4096}
        output: {kind: fixed, tokens: 64}
      slo: {ttft: 2 s, tpot: 60 ms, attainment: 99 %}
run: {seed: 1, warmup: 0 d}
expect:
  - {measure: guaranteed, slice_chips: 64, at_least: 50 %}
"""


class Case(NamedTuple):
    """One bad input: an edit of `BASE` (or a whole text), options, and the fault that must be printed."""

    name: str
    old: str
    new: str | bytes
    place: str
    says: str
    options: tuple[str, ...] = ()


def edit(name: str, old: str, new: str, place: str, says: str) -> Case:
    """A case that replaces a part of `BASE`."""
    return Case(name, old, new, place, says)


def whole(name: str, text: str | bytes, place: str, says: str) -> Case:
    """A case with a text of its own."""
    return Case(name, "", text, place, says)


def option(name: str, says: str, *options: str) -> Case:
    """A case that leaves `BASE` as it is and adds `--set` options; the fault begins with the last of them."""
    return Case(name, "", "", "", says, options)


HOST = "host: {failure_rate: 0.08 %/day, availability: 99.5 %}"
REPAIR = "repair: {kind: exponential, mean: 24 h}"
INPUT = "input: {kind: lognormal, mean: 1024, cv: 1, max: 4096}"

YAML_CASES = [
    whole("empty", b"", ":1: ", "the file is empty; write a mapping that begins with `name:`"),
    whole("only a comment", "# nothing\n", ":1: ", "the file is empty"),
    whole("a list", "- name: x\n", ":1: ", "the file holds a list, not a mapping"),
    whole("a word", "availability\n", ":1: ", "the file holds text, not a mapping"),
    whole("not utf-8", b"name: x\ndescription: caf\xe9\n", ":2: ", "(0xe9) is not UTF-8; save the file as UTF-8"),
    whole("utf-16", "name: x".encode("utf-16"), ":1: ", "is not UTF-8"),
    whole("tab as indentation", "name: x\npod:\n\tcubes: 4\n", ":3: ", "a tab stands in the indentation; write blanks"),
    whole("tab before a value", "name: x\npod: \t[\t\n", ":2: ", "a tab stands where a value begins; write blanks"),
    whole("nul", b"name: x\x00\n", ":1: ", "character U+0000 is not allowed"),
    whole("two documents", "name: x\n---\nname: y\n", ":2: ", "more than one document"),
    whole("alias", "name: &n x\ndescription: *n\n", ":2: ", "alias `*n` is not allowed; write the value out"),
    whole(
        "aliases without end",
        "a: &a [x, x]\nb: &b [*a, *a]\nc: &c [*b, *b]\nd: [*c, *c]\n",
        ":2: ",
        "alias `*a` is not allowed",
    ),
    whole("object tag", "name: !!python/object/apply:os.system [ls]\n", ":1: ", "is not allowed; write plain values"),
    whole("own tag", "name: !thing x\n", ":1: ", "tag `!thing` is not allowed"),
    whole("bottomless brackets", "name: " + "[" * 3000, ":1: ", "nested deeper than 50 levels; write a flatter file"),
    whole("too many values", "name: [" + "1, " * 30_000 + "1]\n", ":1: ", "more than 20,000 values"),
    whole("too long", b"# " + b"x" * 1_000_001, ": ", "longer than 1,000,000 bytes"),
    whole("unclosed bracket", "name: x\npod: {cubes: 4\nrun: {}\n", ":3: ", "this is not YAML"),
    whole("unclosed quote", "name: x\ndescription: 'it\nrun: {}\n", ":", "begun on line 2"),
    whole("stray colon", "name: x: y\n", ":1: ", "a colon where no key can stand"),
    whole("key that is a number", "name: x\n1: y\n", ":2: ", "key `1` is a whole number, not text"),
    whole("key that is a list", "name: x\n[a, b]: y\n", ":2: ", "a key is a list or a mapping"),
    edit("key twice", "run: {seed: 1,", "run: {seed: 1, seed: 2,", ":31: ", "run: key `seed` is given twice"),
    edit(
        "section twice", "name: base", "name: base\nname: again", ":2: ", "key `name` is given twice, first on line 1"
    ),
]

VALUE_CASES = [
    edit("unknown section", "study:", "studies:", ":11: ", "studies: unknown key `studies`; write `study`"),
    edit("unknown key", "cubes: 16", "cubs: 16", ":2: ", "pod.cubs: unknown key `cubs`; write `cubes`"),
    edit(
        "unknown key of a law",
        "mean: 24 h",
        "meen: 24 h",
        ":5: ",
        "failures.ocs.repair.meen: unknown key `meen`; write `mean`",
    ),
    edit(
        "unknown key of a policy",
        "detection: 60 s",
        "detecton: 60 s",
        ":6: ",
        "unknown key `detecton`; write `detection`",
    ),
    edit("unknown key of requests", "output: {", "outputs: {", ":29: ", "unknown key `outputs`; write `output`"),
    edit("name missing", "name: base\n", "", ":1: ", "key `name` is missing; write `name: ...`"),
    edit("name no folder", "name: base", "name: a/b", ":1: ", "name: `a/b` can not name a folder"),
    edit(
        "unit missing",
        "detection: 60 s",
        "detection: 60",
        ":6: ",
        "health.detection: 60 has no unit; write for example `60 s`",
    ),
    edit("unit unknown", "detection: 60 s", "detection: 60 secs", ":6: ", "unit `secs` is not known; write `sec`"),
    edit("minutes as m", "detection: 60 s", "detection: 5 m", ":6: ", "unit `m` is not known; write `min` for minutes"),
    edit("unit of another kind", "detection: 60 s", "detection: 60 GB", ":6: ", "unit `GB` does not measure time"),
    edit(
        "rate without time",
        "0.04 %/day",
        "0.04 %",
        ":5: ",
        "failures.ocs.failure_rate: unit `%` does not measure a rate",
    ),
    edit("negative time", "mean: 24 h", "mean: -24 h", ":5: ", "failures.ocs.repair.mean: `-24 h` is negative"),
    edit("zero time", "mean: 24 h", "mean: 0 h", ":5: ", "failures.ocs.repair.mean: `0 h` is zero"),
    edit("not a number", "detection: 60 s", "detection: .nan", ":6: ", "health.detection: nan is not a finite number"),
    edit("nan as text", "detection: 60 s", "detection: nan s", ":6: ", "`nan s` is not a number with a unit"),
    edit("infinite", "detection: 60 s", "detection: 1e999 s", ":6: ", "`1e999 s` is not a finite number"),
    edit("decimal comma", "detection: 60 s", "detection: '1,5 s'", ":6: ", "write `1.5 s`"),
    edit("an expression", "detection: 60 s", "detection: 9**9**9 s", ":6: ", "`9**9**9 s` is not a number with a unit"),
    edit("clock time", "detection: 60 s", "detection: 12:30", ":6: ", "`12:30` is not a number with a unit"),
    edit(
        "a date as time", "detection: 60 s", "detection: 2020-01-01", ":6: ", "`2020-01-01` is not a number with a unit"
    ),
    edit(
        "share above 1",
        "availability: 99.5 %}",
        "availability: 99.5}",
        ":4: ",
        "is not a share strictly between 0 and 1; write `99.5 %`",
    ),
    edit(
        "share of 1", "availability: 99.5 %}", "availability: 1}", ":4: ", "1 is not a share strictly between 0 and 1"
    ),
    edit(
        "share of 0",
        "time_share: 97 %, horizon",
        "time_share: 0 %, horizon",
        ":12: ",
        "`0 %` is not a share strictly between",
    ),
    edit("longer than any clock", "detection: 60 s", "detection: 1e13 s", ":6: ", "`1e13 s` is too much; write less"),
    edit(
        "nothing for a time",
        "detection: 60 s",
        "detection:",
        ":6: ",
        "nothing stands where a number with a unit is due",
    ),
    edit(
        "a list for a time", "detection: 60 s", "detection: [60 s]", ":6: ", "a list stands where a number with a unit"
    ),
    edit(
        "nothing for a number", "seed: 1", "seed:", ":31: ", "run.seed: no value is given where a whole number is due"
    ),
    edit(
        "nothing for a word",
        "[reconfigurable, static",
        "[null, static",
        ":10: ",
        "pod.fabric: no value is given; write",
    ),
    edit("too many replications", "replications: 4", "replications: 1000000", ":12: ", "write at most 100000"),
    edit(
        "too many cubes",
        "cubes: 16, grid: 2x2x4",
        "cubes: 20000",
        ":2: ",
        "20000 is out of bounds; write at most 10000",
    ),
    edit("too few requests", "requests: 1e3", "requests: 1", ":17: ", "1 is out of bounds; write at least 100"),
    edit(
        "variation without end",
        "kind: exponential",
        "kind: lognormal, cv: 1e200",
        ":5: ",
        "write a number of at most 1e+09",
    ),
    edit("lengths without end", "mean: 1024, cv: 1,", "mean: 1024, cv: 1e200,", ":28: ", "write a cv of at most 1000"),
    edit("load without end", "load: 0.7", "load: 1e9", ":23: ", "1000000000 is too much; write less than `100`"),
    edit("rate without end", "load: 0.7", "rate: 1e9 requests/s", ":23: ", "`1e9 requests/s` is too much"),
    edit("switch for a number", "crews: 4", "crews: on", ":7: ", "repair.crews: `on` is text, not a whole number"),
    edit("true for a number", "replications: 4", "replications: true", ":12: ", "true is not a whole number"),
    edit("text for a number", "replications: 4", "replications: '4'", ":12: ", "`4` is text, not a whole number"),
    edit(
        "part of a replication", "replications: 4", "replications: 4.5", ":12: ", "4.5 is a number, not a whole number"
    ),
    edit("no replication", "replications: 4", "replications: 0", ":12: ", "0 is out of bounds; write at least 1"),
    edit("no crew", "crews: 4", "crews: 0", ":7: ", "repair: 0 crews; write a whole number of at least 1"),
    edit("list for a value", "seed: 1", "seed: [1, 2]", ":31: ", "to sweep it write `sweep: {run.seed: [...]}`"),
    edit("value for a list", "slice_chips: [64]", "slice_chips: 64", ":13: ", "64 is a whole number, not a list"),
    edit(
        "text for a section", "run: {seed: 1, warmup: 0 d}", "run: fast", ":31: ", "run: `fast` is text, not a mapping"
    ),
    edit("text for a law", REPAIR, "repair: 24 h", ":5: ", "failures.ocs.repair: `24 h` is text, not a mapping"),
    edit(
        "unknown law",
        "kind: exponential",
        "kind: exponental",
        ":5: ",
        "`exponental` is not known here; write `exponential`",
    ),
    edit("law without its shape", "kind: exponential", "kind: weibull", ":5: ", "key `shape` is missing"),
    edit("shape of zero", "kind: exponential", "kind: weibull, shape: 0", ":5: ", "write a number above 0"),
    edit(
        "unknown fabric",
        "static_aligned]",
        "static_alined]",
        ":10: ",
        "`static_alined` is not known here; write `static_aligned`",
    ),
    edit(
        "limit missing", "ttft: 2 s, ", "", ":30: ", "serving.services.0.slo: key `ttft` is missing; write `ttft: 30 s`"
    ),
    edit("max below min", "max: 4096", "min: 4096, max: 64", ":28: ", "1 <= min <= max must hold"),
    edit("negative seed", "seed: 1", "seed: -1", ":31: ", "run.seed: -1 is out of bounds; write at least 0"),
]

CROSS_CASES = [
    edit(
        "unknown generation",
        "cubes: 16, grid: 2x2x4",
        "generation: v5",
        ":2: ",
        "pod generation `v5` is not known; write `v5p`",
    ),
    edit(
        "generation and cubes", "cubes: 16,", "cubes: 16, generation: v4,", ":2: ", "both say how many cubes there are"
    ),
    edit("grid of other size", "2x2x4", "2x2x5", ":2: ", "a grid of 2x2x5 does not hold exactly 16 cubes"),
    edit("no grid", "2x2x4", "2x2", ":2: ", "`2x2` is no grid of cubes; write cubes along X, Y and Z"),
    edit(
        "flat pod without hosts",
        "{cubes: 16, grid: 2x2x4}",
        "{kind: flat}",
        ":2: ",
        "pod: a flat machine without `hosts`",
    ),
    edit(
        "flat and reconfigurable",
        "{cubes: 16, grid: 2x2x4}",
        "{kind: flat, hosts: 256}",
        ":10: ",
        "a flat machine can not be reconfigurable",
    ),
    edit(
        "slice larger than the pod",
        "[64, 512]",
        "[64, 2048]",
        ":12: ",
        "a slice of 2,048 chips is larger than the pod of 1,024",
    ),
    edit(
        "delivered larger than the pod",
        "slice_chips: [64]",
        "slice_chips: [2048]",
        ":13: ",
        "study.delivered.slice_chips.0: a slice of 2,048",
    ),
    edit(
        "chips that are no cubes",
        "[64, 512]",
        "[64, 500]",
        ":12: ",
        "500 chips are no whole number of cubes; write a multiple of 64",
    ),
    edit("size twice", "[64, 512]", "[64, 64]", ":12: ", "64 is given twice"),
    edit(
        "shape that is no cubes",
        "slice: 4x4x4",
        "slice: 4x4x6",
        ":21: ",
        "4x4x6 is not made of whole cubes of 4x4x4 chips",
    ),
    edit("shape out of order", "slice: 4x4x4", "slice: 8x4x4", ":21: ", "are not in rising order; write 4x4x8"),
    edit(
        "promised shape",
        "{4x4x8: 2}",
        "{4x4x9: 2}",
        ":14: ",
        "study.promise.slices.4x4x9: 4x4x9 is not made of whole cubes",
    ),
    edit(
        "service larger than the pod",
        "slice: 4x4x4",
        "slice: 8x16x16",
        ":21: ",
        "a slice of 2,048 chips is larger than the pod",
    ),
    edit(
        "replicas do not fit",
        "replicas: 4",
        "replicas: 17",
        ":22: ",
        "17 replicas of 64 chips do not fit a pod of 1,024; write at most 16",
    ),
    edit("no slice", "      slice: 4x4x4\n", "", ":19: ", "a service needs either `slice` or `slice_chips`"),
    edit("unknown model", "llama3_70b", "llama3_70", ":20: ", "model `llama3_70` is not known; write `llama3_70b`"),
    edit("model does not fit", "slice: 4x4x4", "slice: 1x2x2", ":21: ", "GB of weights"),
    edit(
        "unknown chip",
        "model: llama3_70b",
        "model: llama3_70b\n      chip: tpu_v9",
        ":21: ",
        "chip `tpu_v9` is not known; write `tpu_v4`",
    ),
    edit(
        "load and rate",
        "load: 0.7",
        "load: 0.7\n      rate: 5 requests/s",
        ":24: ",
        "both say how many requests arrive",
    ),
    edit(
        "no lengths",
        "        input: {kind: lognormal, mean: 1024, cv: 1, max: 4096}\n",
        "",
        ":25: ",
        "nothing says how long prompts and answers are; write `input` and `output`, or `pairs`",
    ),
    edit(
        "unknown figures", "{kind: fixed, tokens: 64}", "{kind: empirical, of: azure}", ":29: ", "no figures are called"
    ),
    edit("unknown kind of length", "kind: fixed, tokens: 64", "kind: zipf, s: 2", ":29: ", "`zipf` is not known"),
    edit(
        "a tie beyond reason",
        "kind: gamma\n",
        "kind: gamma\n        rank_correlation: 2\n",
        ":25: ",
        "rank_correlation of 2; write a number between",
    ),
    edit(
        "sessions without end",
        "kind: gamma\n",
        "kind: gamma\n        sessions: {turns: 100, return_mean: 2 min, max_context: 8192}\n",
        ":27: ",
        "turns of 100; write a mean number between 1 and 16",
    ),
    edit(
        "users who come back after nothing",
        "kind: gamma\n",
        "kind: gamma\n        sessions: {turns: 3, return_mean: 2 min, max_context: 8192, return_after: never}\n",
        ":27: ",
        "answer",
    ),
    edit("no load", "      load: 0.7\n", "", ":19: ", "nothing says how many requests arrive; write `load: 0.7`"),
    edit(
        "budget within a batch",
        "budget: 1024",
        "budget: 128",
        ":24: ",
        "write a `budget` greater than the service's `max_batch`",
    ),
    edit(
        "backoff out of reach",
        "load: 0.7",
        "load: 0.7\n      clients: {attempts: 16, backoff: 100 d}",
        ":24: ",
        "write fewer attempts, or shorter times",
    ),
    edit(
        "shares of priorities",
        "load: 0.7",
        "load: 0.7\n      priorities: [20 %, 90 %]",
        ":24: ",
        "write such as `[20 %, 80 %]`",
    ),
    edit(
        "central queue that predicts",
        "load: 0.7",
        "load: 0.7\n      router: central\n      admission: {predicted_ttft: 1 s}",
        ":25: ",
        "a central queue predicts no time to first token",
    ),
    edit(
        "static without end",
        "batching: {kind: chunked_prefill, budget: 1024}",
        "batching: {kind: static}\n      max_batch: unlimited",
        ":24: ",
        "a static batch needs an end; write a `max_batch` such as 32",
    ),
    edit(
        "rate alone",
        HOST,
        "host: {failure_rate: 0.08 %/day}",
        ":4: ",
        "write two of failure_rate, availability, and repair",
    ),
    edit("all three", "availability: 99.5 %}", "availability: 99.5 %, repair: {mean: 9 h}}", ":4: ", "failures.host: "),
    edit("availability alone", HOST, "host: {availability: 99.5 %}", ":4: ", "an availability alone"),
    edit(
        "detection longer than the outage",
        "detection: 60 s",
        "detection: 90 d",
        ":4: ",
        "more than the whole mean outage",
    ),
    edit("log and hosts", HOST, HOST + "\n  log: {path: x.csv}", ":4: ", "hosts fail by `failures.log` already"),
    edit("log without a file", HOST, "log: {format: lanl}", ":4: ", "LA-UR-05-7318"),
    edit(
        "log that is not there",
        HOST,
        "log: {path: no/such.csv}",
        ":4: ",
        "there is no file `no/such.csv`; check the path",
    ),
    edit("trace without a file", "kind: gamma", "kind: trace", ":", "opticube ships none"),
    edit("warm-up beyond the horizon", "warmup: 0 d", "warmup: 400 d", ":12: ", "the horizon ends within the warm-up"),
    edit("horizon of no time", "horizon: 90 d", "horizon: 1 ns", ":13: ", "the horizon is under 1 us; write a longer"),
    edit(
        "outages without end",
        HOST,
        "host: {failure_rate: 1 1/min, repair: {mean: 1 s}}",
        ":12: ",
        "study.availability.horizon: about 1.3e+08 outages of host in each replication; write longer lives",
    ),
    edit(
        "window without end", "load: 0.7", "rate: 1 1/year", ":23: ", "take 1,000.0 years; write a higher rate or load"
    ),
    edit(
        "reserve beyond the memory",
        "      load: 0.7",
        "      cache: {kind: contiguous, max_model_len: 100000000}\n      load: 0.7",
        ":21: ",
        "the longest request needs 100,000,000",
    ),
    edit(
        "requests longer than what is reserved",
        "      load: 0.7",
        "      cache: {kind: contiguous, max_model_len: 100}\n      load: 0.7",
        ":23: ",
        "room for 100 tokens is reserved, the longest request takes",
    ),
    edit(
        "nothing to share",
        "      load: 0.7",
        "      cache: {kind: prefix_sharing}\n      load: 0.7",
        ":23: ",
        "no request says which blocks of its prompt others share; write `shared_prefix: {groups: 8, tokens: 1024}`",
    ),
    edit(
        "prefix of nothing",
        "      load: 0.7",
        "      cache: {kind: prefix_sharing}\n      shared_prefix: {groups: 0, tokens: 1024}\n      load: 0.7",
        ":24: ",
        "groups of 0; write a whole number of at least 1",
    ),
    edit(
        "answers that share nothing",
        "      load: 0.7",
        "      samples: 4\n      load: 0.7",
        ":23: ",
        "answers to one prompt share blocks of a cache that shares them; write `cache: {kind: prefix_sharing}`",
    ),
    edit(
        "answers in parts",
        "      batching: {kind: chunked_prefill, budget: 1024}",
        "      batching: {kind: disaggregated, parts: 2}\n      cache: {kind: prefix_sharing}\n      samples: 4",
        ":26: ",
        "parts that hand over what they hold do not share it between answers; take the key out",
    ),
    edit(
        "answers to those who come back",
        "        output: {kind: fixed, tokens: 64}\n",
        "        output: {kind: fixed, tokens: 64}\n        sessions: {turns: 4, return_mean: 9 s, max_context: 8192}\n"
        "      cache: {kind: prefix_sharing}\n      samples: 2\n",
        ":32: ",
        "a user who comes back goes on from one answer; take `samples` or `sessions` out",
    ),
    edit(
        "too many answers",
        "      load: 0.7",
        "      cache: {kind: prefix_sharing}\n      samples: 1000\n      load: 0.7",
        ":24: ",
        "1,000 answers to each prompt; write at most 128",
    ),
    edit(
        "affine to nothing",
        "      load: 0.7",
        "      router: prefix_affine\n      load: 0.7",
        ":23: ",
        "a prefix-affine router needs a cache of prefixes; write `cache: {kind: prefix_sharing}`",
    ),
    edit(
        "swap with nothing to evict",
        "      load: 0.7",
        "      cache: {kind: contiguous}\n      preemption: {kind: swap}\n      load: 0.7",
        ":24: ",
        "nothing is ever evicted where all is reserved at admission; take the key out",
    ),
    edit(
        "tiers without prefixes",
        "      load: 0.7",
        "      tiers: {host_memory: 8 GiB}\n      load: 0.7",
        ":23: ",
        "what moves below the cache are prefixes that prompts share; write `cache: {kind: prefix_sharing}`",
    ),
    edit(
        "a remote store over an unknown network",
        "      load: 0.7",
        "      cache: {kind: prefix_sharing}\n      shared_prefix: {groups: 2, tokens: 64}\n"
        "      tiers: {remote_memory: 1 TiB}\n      load: 0.7",
        ":25: ",
        "no source tells what the network carries for one TPU v4; write `remote_link`",
    ),
    edit(
        "drafts of nobody",
        "      load: 0.7",
        "      speculation: {draft: gemma2b, acceptance: 70 %}\n      load: 0.7",
        ":23: ",
        "model `gemma2b` is not known",
    ),
    edit(
        "drafts in static batches",
        "batching: {kind: chunked_prefill, budget: 1024}",
        "batching: {kind: static}\n      speculation: {draft: gemma_2b, acceptance: 70 %}",
        ":25: ",
        "a static service does not speculate",
    ),
    edit(
        "a draft model as large as the model",
        "      slice: 4x4x4",
        "      slice: 2x2x2\n      speculation: {draft: llama3_70b, acceptance: 70 %}",
        ":22: ",
        "llama3_70b and llama3_70b leave 0 tokens of cache",
    ),
    edit(
        "swap over an unknown link",
        "      load: 0.7",
        "      chip: tpu_v5p\n      preemption: {kind: swap, host_memory: 8 GiB}\n      load: 0.7",
        ":24: ",
        "no source tells the host link of TPU v5p; write `link`, such as `16 GB/s` per chip",
    ),
    edit(
        "uneven parts",
        "batching: {kind: chunked_prefill, budget: 1024}",
        "batching: {kind: disaggregated, parts: 3, link: 400 GB/s}",
        ":24: ",
        "4x4x4 can not be cut into 3 equal parts along its longest side; write `parts` that divide it",
    ),
    edit(
        "nobody decodes",
        "batching: {kind: chunked_prefill, budget: 1024}",
        "batching: {kind: disaggregated, parts: 2, prefill_parts: 2, link: 400 GB/s}",
        ":24: ",
        "no part is left to decode; write `prefill_parts` below 2",
    ),
    edit(
        "parts with pieces of their own length",
        "batching: {kind: chunked_prefill, budget: 1024}",
        "batching: {kind: disaggregated, link: 400 GB/s}\n      cache: {kind: contiguous, reserve: oracle}",
        ":25: ",
        "parts move blocks of a paged cache, or pieces of one length; write `cache: {kind: paged}`",
    ),
    edit(
        "parts whose transfers take years",
        "batching: {kind: chunked_prefill, budget: 1024}",
        "batching: {kind: disaggregated, link: 1 B/s}",
        ":24: ",
        "batching.link: `1 B/s` is not at least 1e+06",
    ),
    edit(
        "a host link that carries nothing",
        "batching: {kind: chunked_prefill, budget: 1024}",
        "preemption: {kind: swap, link: 1 B/s}",
        ":24: ",
        "preemption.link: `1 B/s` is not at least 1000",
    ),
    edit(
        "lengths without any spread",
        "kind: fixed, tokens: 64",
        "kind: lognormal, mean: 64, cv: 1e-300, max: 128",
        ":29: ",
        "cv 1e-300 spreads no lengths; write at least 1e-06, or `kind: fixed`",
    ),
    edit(
        "parts over a network that nobody knows",
        "batching: {kind: chunked_prefill, budget: 1024}",
        "batching: {kind: disaggregated}",
        ":24: ",
        "batching.link: no source tells how much TPU v4 moves between parts; write such as `link: 400 GB/s`",
    ),
    edit(
        "weights of nothing",
        "  availability: {slice_chips: [64, 512], time_share: 97 %, horizon: 365 d, replications: 4}\n",
        "",
        ":15: ",
        "needs the histories of `study.availability`",
    ),
    edit(
        "unknown measure",
        "measure: guaranteed",
        "measure: garanteed",
        ":33: ",
        "measure `garanteed` is not known; write `guaranteed`",
    ),
    edit(
        "bound without a unit",
        "at_least: 50 %",
        "at_least: 50",
        ":33: ",
        "50 is not a share between 0 and 1; write `50 %`",
    ),
    edit("no bound", ", at_least: 50 %", "", ":33: ", "the expectation has no bound; write `at_least: ...`"),
    edit(
        "expectation of another size",
        "slice_chips: 64, at_least",
        "slice_chips: 128, at_least",
        ":33: ",
        "the study has no slices of this size; write one of 64, 512",
    ),
    edit(
        "expectation of another fabric",
        "measure: guaranteed,",
        "measure: guaranteed, fabric: any_host,",
        ":33: ",
        "no point has fabric `any_host`",
    ),
    edit("sweep of no list", "[reconfigurable, static_aligned]", "any_host", ":10: ", "this is not a list of values"),
    edit("sweep of an unknown key", "pod.fabric:", "pod.fabrik:", ":10: ", "unknown key `fabrik`; write `fabric`"),
    edit(
        "levels under a column's name",
        "sweep:",
        "sweep:\n  value: {low: {run.seed: 1}}",
        ":10: ",
        "levels can not be named `value`, a column of tables",
    ),
    edit(
        "levels under a key",
        "sweep:",
        "sweep:\n  pod: {low: {run.seed: 1}}",
        ":10: ",
        "levels can not be named `pod`, a column of tables",
    ),
    edit("level of nothing", "sweep:", "sweep:\n  data: {low: {}}", ":10: ", "this is not a mapping of keys to values"),
    edit(
        "level that leaves a key to the other",
        "sweep:",
        "sweep:\n  data: {low: {run.seed: 1}, high: {repair.crews: 2}}",
        ":10: ",
        "`high` sets `repair.crews`, this level does not; write `repair.crews` here too",
    ),
    edit(
        "level of a key that is swept",
        "sweep:",
        "sweep:\n  data: {low: {pod.fabric: any_host}}",
        ":10: ",
        "`pod.fabric`, which holds `pod.fabric`, is swept too",
    ),
    edit("value swept twice", "static_aligned]", "reconfigurable]", ":10: ", "a value is given twice"),
    edit(
        "key swept within another",
        "sweep:",
        "sweep:\n  pod: [{cubes: 16}]",
        ":11: ",
        "`pod`, which holds this key, is swept too",
    ),
    edit(
        "too many points",
        "sweep:",
        "sweep:\n  run.seed: [" + ", ".join(map(str, range(1001))) + "]",
        ":9: ",
        "the sweep has 2,002 points; write at most 2,000",
    ),
]

OPTION_CASES = [
    option(
        "swept key", "pod.fabric is swept, so this would change nothing; set sweep.pod.fabric", "pod.fabric=any_host"
    ),
    option(
        "key of a level",
        "run.seed is swept, so this would change nothing; set sweep.data, for example `--set 'sweep.data={...}'`",
        "sweep.data={low: {run.seed: 1}}",
        "run.seed=2",
    ),
    option("sweep to no list", "this is not a list of values", "sweep.pod.fabric=any_host"),
    option("no value", "this sets nothing; write `--set KEY.PATH=VALUE`", "run.seed"),
    option("unknown key", "health.detecton: unknown key `detecton`; write `detection`", "health.detecton=3 s"),
    option("no unit", "health.detection: 3 has no unit", "health.detection=3"),
    option("beyond a list", "`serving.services` is a list and has no entry `3`", "serving.services.3.load=0.5"),
    option("within a number", "`run.seed` is a whole number and has no keys; set `run.seed` itself", "run.seed.x=1"),
    option("empty part", "has an empty part", "run..seed=1"),
    option("not yaml", "this is not YAML", "run.seed=[1"),
    option("alias", "alias `*x` is not allowed", "name=*x"),
]

CASES = [*YAML_CASES, *VALUE_CASES, *CROSS_CASES, *OPTION_CASES]
