"""The command `cost`: its keys, the same in Python, bad words with advice, chips and models of one's own."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sim.cli import command_status
from workloads.catalogue.models import MODELS
from workloads.catalogue.tpus import TPU_V4, TPU_V5E
from workloads.costs.asking import replica_on
from workloads.costs.layouts import Attention, Layout
from workloads.costs.passes import Phase, pass_cost, pass_seconds

KEYS = {"seconds", "lower_bound_s", "upper_bound_s", "binds", "mfu", "breakdown_s", "bytes"}
POPE = ["cost", "palm_540b", "tpu_v4", "4x4x4", "--phase", "decode", "--batch", "64", "--context", "2048"]


def test_json_has_the_promised_keys_and_pythons_values(capsys: pytest.CaptureFixture[str]) -> None:
    """Goal: one document with the promised keys; the same numbers in Python. Method: PaLM 540B, batch-sharded."""
    assert command_status([*POPE, "--attention", "batch", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert set(document) >= KEYS
    replica, _ = replica_on(MODELS["palm_540b"], TPU_V4, "4x4x4", attention=Attention.BATCH)
    cost = pass_cost(replica, Phase.DECODE, 64, 2048)
    assert document["seconds"] == float(cost.seconds)
    assert document["bytes"]["hbm"]["kv_read"] == float(cost.bytes["hbm"]["kv_read"])
    assert document["binds"] == "collectives"


def test_text_is_readable(capsys: pytest.CaptureFixture[str]) -> None:
    """Goal: people get times, parts, traffic, and which constants were fitted. Method: look for each."""
    assert command_status(POPE) == 0
    out = capsys.readouterr().out
    for words in (
        "PaLM 540B on 64 x TPU v4 (4x4x4): one decode step, batch 64",
        "collectives binds",
        "kv_read",
        "fitted",
    ):
        assert words in out


def test_a_faster_layout_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    """Goal: the default is the layout of large slices; where another is faster the command says so. Method: a small
    model on eight chips, split in one dimension, against the least of all layouts; asked for that one, it is silent."""
    small = ["cost", "llama3_8b", "tpu_v5e", "2x4", "--phase", "decode", "--batch", "128", "--context", "600"]
    assert command_status([*small, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    replica, _ = replica_on(MODELS["llama3_8b"], TPU_V5E, "2x4")
    times = {layout: float(pass_seconds(replica, Phase.DECODE, 128, 600, layout)) for layout in Layout}
    assert document["layout"] == "weight_stationary_2d"
    assert document["fastest_layout"] == {"layout": "weight_stationary_1d", "seconds": min(times.values())}
    assert command_status(small) == 0
    assert "`--layout weight_stationary_1d` would take" in capsys.readouterr().out
    assert command_status([*small, "--layout", "weight_stationary_1d"]) == 0
    assert "would take" not in capsys.readouterr().out


def test_a_model_that_does_not_fit_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    """Goal: a pass on too few chips is costed and said not to fit. Method: PaLM 540B on one cube's quarter."""
    assert command_status(["cost", "palm_540b", "tpu_v4", "2x2x4", *POPE[4:]]) == 0
    assert "does not fit" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("change", "advice"),
    [
        ({1: "palm_54b"}, "MODEL: `palm_54b` is not known; write `palm_540b`"),
        ({2: "tpu_v9"}, "CHIP: `tpu_v9` is not known"),
        ({3: "4x4x5"}, "SHAPE: 4x4x5 is not made of whole cubes"),
        ({5: "decod"}, "--phase: `decod` is not known; write `decode`"),
        ({7: "0"}, "--batch: 0 sequences; write 1 to 1,000,000"),
        ({9: "-1"}, "--context: -1 tokens; write 0 to"),
    ],
)
def test_bad_words_are_refused_with_advice(
    change: dict[int, str], advice: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Goal: exit 2, one line, what to write. Method: one bad word each."""
    words = [change.get(index, word) for index, word in enumerate(POPE)]
    assert command_status(words) == 2
    assert advice in capsys.readouterr().err


@pytest.mark.parametrize(
    ("more", "advice"),
    [
        (["--layout", "weight_gathered"], "--layout: `weight_gathered` is not known"),
        (["--attention", "head"], "write `heads`"),
        (["--weights", "int4"], "--weights: `int4` is not known"),
        (["--stack", "cuda"], "write one of jax_partitioned"),
        (["--fail", "ocs:x:77"], "ocs:x:77"),
        (["--own", "no_such.yaml"], "there is no such file"),
    ],
)
def test_bad_options_are_refused_with_advice(more: list[str], advice: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Goal: as above for options. Method: one bad option each."""
    assert command_status([*POPE, *more]) == 2
    assert advice in capsys.readouterr().err


OWN = """
chips:
  my_chip: {like: tpu_v4, hbm_bytes: 64 GiB, peak_flops_per_s: 550 TFLOP/s}
  plain:
    family: a100
    interconnect: switch
    peak_flops_per_s: 100 TFLOP/s
    hbm_bytes: 16 GB
    hbm_bytes_per_s: 500 GB/s
    link_bytes_per_s: 32 GB/s
    node_chips: 8
models:
  my_model: {like: llama3_70b, kv_heads: 16, layers: 40}
  small: {layers: 2, d_model: 128, heads: 4, kv_heads: 4, head_dim: 32, d_ff: 512, gated: false, vocabulary: 1000,
          parallel_block: false, tied_embeddings: true}
"""


def test_own_chips_and_models(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Goal: entries of one's own, alone or like one of the catalogue. Method: cache bytes and parameters by hand."""
    path = tmp_path / "own.yaml"
    path.write_text(OWN)
    own = ["--own", str(path), "--json"]
    assert command_status(["cost", "my_model", "my_chip", "4x4x4", *POPE[4:], *own]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["bytes"]["hbm"]["kv_written"] == 64 * 2 * 2 * 16 * 128 * 40
    assert document["chip"] == "my_chip"
    assert command_status(["cost", "small", "plain", "2", *POPE[4:], *own]) == 0
    document = json.loads(capsys.readouterr().out)
    weights = 2 * (2 * (4 * 128 * 128 + 2 * 128 * 512) + 1000 * 128)
    assert document["bytes"]["hbm"]["weights"] == weights


@pytest.mark.parametrize(
    ("text", "advice"),
    [
        ("chips: {a: {like: tpu_v44}}", "tpu_v4"),
        ("chips: {a: {family: tpu}}", "missing; write them"),
        ("chips: {tpu_v4: {like: tpu_v4}}", "write another key"),
        ("chips: {a: {like: tpu_v4, hbm_bytes: 3}}", "3 has no unit"),
        ("chips: {a: {like: tpu_v4, family: cpu}}", "no stack is known for family `cpu`"),
        ("models: {a: {like: llama3_70b, kv_heads: 7}}", "multiple of kv_heads"),
        ("models: {a: {like: llama3_70b, layer: 7}}", "unknown key `layer`"),
        ("models: {a: {like: llama3_70b, layers: 0}}", "layers"),
        ("models: {a: {like: mixtral_8x7b, experts: {count: 4, active: 8, d_ff: 10}}}", "active"),
        ("models: {a: {d_model: 5}}", "missing; write them"),
        ("other: {}", "neither `chips` nor `models`"),
    ],
)
def test_bad_entries_are_refused_with_their_line(
    text: str, advice: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Goal: what is wrong with an entry, at its line. Method: one bad entry each."""
    path = tmp_path / "own.yaml"
    path.write_text(f"# mine\n{text}\n")
    assert command_status([*POPE, "--own", str(path)]) == 2
    told = capsys.readouterr().err
    assert advice in told
    assert "own.yaml" in told
    assert len(told) < 1500
