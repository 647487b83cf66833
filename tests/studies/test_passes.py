"""The study `passes`: shipped scenarios run, tables agree with the costs, bad tables and grids are refused."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache

import numpy as np
import pandas as pd
import pytest

from sim.report.page import render_page
from sim.report.plots import draw_pictures
from sim.report.terminal import answer_text, table_texts
from sim.result import Result
from sim.scenario import load_scenario
from sim.simulation import run
from tests.run.cases import loaded
from topology.errors import InputError
from workloads.catalogue.chips import CHIPS
from workloads.catalogue.models import MODELS
from workloads.costs.asking import replica_on
from workloads.costs.layouts import Attention
from workloads.costs.passes import Phase, pass_cost

SHIPPED = ("pope_palm540b", "a100_llama70b", "models_8b_to_540b", "long_context")


@cache
def result_of(name: str) -> Result:
    """A shipped scenario, run once."""
    return run(load_scenario(name), workers=1)


@pytest.mark.parametrize("name", SHIPPED)
def test_shipped_scenarios_of_passes(name: str) -> None:
    """Goal: what is shipped works and keeps its bars. Method: run; expectations, words, no number missing."""
    result = result_of(name)
    assert result.met_expectations, [verdict.text for verdict in result.verdicts]
    assert result.warnings == ()
    text = "\n".join([*table_texts(result.tables), answer_text(result.tables)])
    assert "nan" not in text
    assert "None" not in text
    assert (
        set(draw_pictures(result.tables, narrow=False))
        == {
            "pope_palm540b": {"measured_times"},
            "a100_llama70b": {"measured_times"},
            "models_8b_to_540b": {"models"},
            "long_context": {"contexts"},
        }[name]
    )


def test_the_page_has_no_place_for_a_machine() -> None:
    """Goal: a run of passes alone shows them alone. Method: its tables; headings of the page."""
    result = result_of("long_context")
    assert set(result.tables) == {"passes", "summary"}
    text = render_page(result.tables, result.context, draw_pictures(result.tables, narrow=False))
    assert re.findall(r"<h2[^>]*>(.*?)</h2>", text) == [
        "Answer", "A token over the context", "Passes, the table", "Configuration", "Warnings",
        "How each number is defined",
    ]  # fmt: skip


def test_errors_are_those_of_the_rows() -> None:
    """Goal: means and worst are what they say. Method: by hand from the rows that count, or all where none does."""
    for name in ("pope_palm540b", "a100_llama70b"):
        tables = result_of(name).tables
        rows, errors = tables["measured_times"], tables["errors_of_times"].set_index("group")
        assert (rows["error"] - (rows["computed_s"] / rows["measured_s"] - 1)).abs().max() < 1e-12
        for group, own in rows.groupby("group"):
            counted = own[own["counted"]] if own["counted"].any() else own
            assert errors.loc[[group], "rows"].iloc[0] == len(counted)
            assert errors.loc[[group], "mean"].iloc[0] == pytest.approx(counted["error"].abs().mean(), rel=1e-12)
            assert errors.loc[[group], "worst"].iloc[0] == pytest.approx(counted["error"].abs().max(), rel=1e-12)
    assert "R" in set(result_of("pope_palm540b").tables["measured_times"]["mark"])


def test_the_grid_is_what_the_costs_say() -> None:
    """Goal: rows of the grid equal single calls. Method: every row that fits; parts add up; bounds hold; a step and
    its traffic grow with the context; larger slices hold longer contexts."""
    passes = result_of("long_context").tables["passes"]
    fits = passes[passes["fits"]]
    assert 0 < len(fits) < len(passes)
    for _, row in fits.iterrows():
        replica, _ = replica_on(
            MODELS[str(row["model"])], CHIPS["tpu_v4"], str(row["shape"]), attention=Attention.CONTEXT
        )
        cost = pass_cost(replica, Phase.DECODE, int(row["batch"]), int(row["context_tokens"]))
        assert row["step_s"] == float(cost.seconds)
        assert row["kv_read_bytes_per_token"] == float(cost.bytes["hbm"]["kv_read"]) / row["batch"]
    parts = fits[["compute_and_weights_s", "kv_read_s", "collectives_s", "other_s"]].sum(axis=1)
    np.testing.assert_allclose(parts, fits["step_s"], rtol=1e-12)
    assert (fits["lower_bound_s"] <= fits["step_s"]).all()
    assert (fits["context_tokens"] <= fits["maximum_context_tokens"]).all()
    for _, rows in fits[fits["slice"] == "4x4x4"].groupby("batch"):
        assert rows["step_s"].is_monotonic_increasing
    for _, rows in fits[fits["slice"] == "smallest"].groupby("batch"):
        assert rows["chips"].is_monotonic_increasing


def test_where_the_cache_overtakes_the_weights() -> None:
    """Goal: the crossing is where both read as much. Method: reads on both sides of it; Llama-3 70B by hand: 141 GB of
    weights without the input embedding over 327,680 bytes per token."""
    passes = result_of("long_context").tables["passes"]
    for _, row in passes[passes["fits"]].iterrows():
        more = row["kv_read_bytes_per_token"] > row["weight_bytes_per_token"]
        assert more == (row["context_tokens"] > row["kv_overtakes_tokens"])
    one = passes[(passes["batch"] == 1) & (passes["slice"] == "4x4x4")].iloc[0]
    read = 2 * (MODELS["llama3_70b"].parameters - 8192 * 128256)
    assert one["kv_overtakes_tokens"] == pytest.approx(read / 327_680, rel=1e-3)


GEMMA = "{models: [gemma3_27b], chips: [a100_80gb], slices: ['1'], batches: [1], contexts: [1000]}"


def test_sliding_windows_put_the_crossing_off() -> None:
    """Goal: layers with a window read no more than it. Method: Gemma-3 27B, five of six layers see 1,024 tokens:
    reads at the crossing equal the weights; without windows it would come six times earlier."""
    row = run(loaded(f"name: w\nstudy: {{passes: {{grid: {GEMMA}}}}}"), workers=1).tables["passes"].iloc[0]
    replica, _ = replica_on(MODELS["gemma3_27b"], CHIPS["a100_80gb"], "1")
    cost = pass_cost(replica, Phase.DECODE, 1, int(row["kv_overtakes_tokens"]))
    assert float(cost.bytes["hbm"]["kv_read"]) == pytest.approx(float(cost.bytes["hbm"]["weights"]), rel=1e-4)
    assert row["kv_overtakes_tokens"] > 4 * row["weight_bytes_per_token"] / row["kv_bytes_per_token"]


TABLE: Mapping[str, str] = {
    "group": "mine",
    "source": "me",
    "mark": "V",
    "model": "llama3_8b",
    "chip": "tpu_v4",
    "shape": "2x2x2",
    "what": "prefill",
    "input": "100",
    "rows": "[{batch: 1, seconds: 5 ms}]",
}
GRID: Mapping[str, str] = {"models": "[llama3_8b]", "contexts": "[100]"}
MANY = dict.fromkeys(("batches", "contexts"), str(list(range(1, 143))))
"""142 x 142 = 20,164."""


def asked(part: str, keys: Mapping[str, str], **changes: str | None) -> str:
    """A scenario with one table or a grid, some keys changed or (None) left out."""
    whole = {key: value for key, value in {**keys, **changes}.items() if value is not None}
    body = ", ".join(f"{key}: {value}" for key, value in whole.items())
    value = f"[{{{body}}}]" if part == "tables" else f"{{{body}}}"
    return f"name: mine\nstudy: {{passes: {{{part}: {value}}}}}\n"


@pytest.mark.parametrize(
    ("text", "place", "says"),
    [
        (asked("tables", TABLE, model="llama3_9b"), "tables.0.rows.0.model", "llama3_8b"),
        (asked("tables", TABLE, chip="tpu_v44"), "tables.0.rows.0.chip", "tpu_v4"),
        (asked("tables", TABLE, shape="4x8"), "tables.0.rows.0.shape", "2x4x4"),
        (asked("tables", TABLE, weights="int4"), "tables.0.rows.0.weights", "int8"),
        (asked("tables", TABLE, mark=None), "tables.0.rows.0", "says mark; write"),
        (asked("tables", TABLE, what="decode"), "tables.0.rows.0", "says output"),
        (asked("tables", TABLE, what="decoding"), "tables.0.what", "decode"),
        (asked("tables", TABLE, rows="[{batch: 1, seconds: 5}]"), "rows.0.seconds", "has no unit"),
        (asked("tables", TABLE, rows="[{batch: 0, seconds: 5 ms}]"), "rows.0.batch", "write"),
        (asked("tables", TABLE, rows="[]"), "tables.0.rows", "write"),
        (asked("tables", TABLE, group="My rows"), "tables.0.group", "write"),
        (asked("tables", TABLE, grop="x"), "grop", "group"),
        (asked("grid", GRID, models="[llama3_9b]"), "grid.models.0", "llama3_8b"),
        (asked("grid", GRID, models="[llama3_8b, llama3_8b]"), "grid.models.1", "twice"),
        (asked("grid", GRID, chips="[tpu]"), "grid.chips.0", "tpu_v4"),
        (asked("grid", GRID, slices="[64]"), "grid.slices.0", "write"),
        (asked("grid", GRID, slices="['64']"), "grid.slices.0", "4x4x4"),
        (asked("grid", GRID, contexts="[0]"), "grid.contexts.0", "write"),
        (asked("grid", GRID, kv="int3"), "grid.kv", "int8"),
        (asked("grid", GRID, **MANY), "study.passes.grid", "at most 20,000"),
        ("name: mine\nstudy: {passes: {}}\n", "study.passes", "write `tables:` or `grid:`"),
    ],
)
def test_bad_tables_and_grids_are_refused(text: str, place: str, says: str) -> None:
    """Goal: what is wrong, where, what to write. Method: one bad key each."""
    with pytest.raises(InputError) as caught:
        loaded(text)
    told = "\n".join(str(fault) for fault in caught.value.faults)
    assert place in told
    assert says in told
    assert len(told) < 1500


def test_expectations_name_groups_and_rows() -> None:
    """Goal: `expect:` bounds a group or a row of the grid. Method: a bound that fails, one on an unknown group."""
    bound = "expect: [{measure: error_worst, service: GROUP, at_most: 1 %}]\n"
    text = asked("tables", TABLE)
    assert not run(loaded(text + bound.replace("GROUP", "mine")), workers=1).met_expectations
    with pytest.raises(InputError, match="no service is called `yours`"):
        loaded(text + bound.replace("GROUP", "yours"))


def test_a_swept_fabric_changes_nothing_and_a_swept_format_does() -> None:
    """Goal: passes know no fabric, and their keys can be swept. Method: rows once over fabrics; twice over formats."""
    text = asked("grid", GRID)
    fabrics = run(loaded(text + "sweep: {pod.fabric: [reconfigurable, any_host]}\n"), workers=1)
    assert len(fabrics.tables["passes"]) == 1
    formats = run(loaded(text + "sweep: {study.passes.grid.weights: [bf16, int8]}\n"), workers=1)
    steps: pd.Series = formats.tables["passes"].set_index("study.passes.grid.weights")["step_s"]
    assert steps["int8"] < steps["bf16"]
    assert "With study.passes.grid.weights int8" in "\n".join(table_texts(formats.tables))
