"""The study `passes`: costs of single passes beside measured times, and over models, slices, batches and contexts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from sim.build import Setup
from sim.scenario_passes import SMALLEST, PassGrid, label
from workloads.accuracy.errors import Catalogues, RowError, group_errors, replica_of, row_errors
from workloads.accuracy.rows import MeasuredRow
from workloads.catalogue.chip import Chip
from workloads.catalogue.model import Model
from workloads.costs.asking import replica_on
from workloads.costs.layouts import Layout, bytes_per_value
from workloads.costs.passes import Phase, context_of_attended, pass_cost, pass_seconds
from workloads.costs.replica import PassPart, ReplicaCosts
from workloads.planning import Workload, cache_bytes_per_token, maximum_context, smallest_shape

Row = dict[str, Any]
BLANK: Row = dict.fromkeys(
    ("step_s", "compute_and_weights_s", "kv_read_s", "collectives_s", "other_s", "lower_bound_s", "chip_s_per_token",
     "weight_bytes_per_token", "kv_read_bytes_per_token", "link_bytes_per_token", "prefill_s")
) | {"binds": "", "prefill_layout": ""}  # fmt: skip
"""What is not known of a batch that does not fit."""


def passes_rows(setup: Setup) -> dict[str, list[Row]]:
    """Rows of the tables `measured_times`, `errors_of_times` and `passes`; none where the study is not asked for."""
    study = setup.scenario.study.passes
    if study is None:
        return {}
    own = setup.scenario.catalogue
    known = Catalogues(models=own.models, chips=own.chips)
    errors = row_errors([row for table in study.tables for row in table.measured()], known=known)
    return {
        "measured_times": [_time_row(each, known) for each in errors],
        "errors_of_times": list(error_rows(errors)),
        "passes": [] if study.grid is None else list(grid_rows(study.grid, known)),
    }


def _time_row(each: RowError, known: Catalogues) -> Row:
    row: MeasuredRow = each.row
    return {
        "group": row.group,
        "model": row.model,
        "chip": row.chip,
        "shape": row.shape,
        "what": row.kind.value,
        "batch": row.batch,
        "input_tokens": row.input_tokens,
        "output_tokens": row.output_tokens,
        "weights": row.weights,
        "attention": row.attention.value,
        "layout": row.layout.value,
        "measured_s": row.measured_s,
        "computed_s": each.computed_s,
        "error": each.error,
        "beyond_rounding": each.beyond_rounding,
        "mark": row.mark.value,
        "counted": row.counted,
        "stack": replica_of(row, known=known)[0].constants.stack,
        "source": row.source,
    }


def error_rows(errors: Sequence[RowError]) -> Iterator[Row]:
    """One row per group of measured times."""
    for group in group_errors(errors):
        own = [each.row for each in errors if each.row.group == group.group and each.row.counted is group.counted]
        marks = Counter(row.mark.value for row in own)
        yield {
            "group": group.group,
            "rows": group.rows,
            "counted": group.counted,
            "mean": group.mean,
            "worst": group.worst,
            "mean_beyond_rounding": group.mean_beyond_rounding,
            "worst_beyond_rounding": group.worst_beyond_rounding,
            "marks": ", ".join(f"{count} {mark}" for mark, count in marks.items()),
        }


def grid_rows(grid: PassGrid, known: Catalogues) -> Iterator[Row]:
    """One row per combination, the first list slowest."""
    for combination in grid.combinations:
        model, chip, wanted, batch, context = combination
        yield {"label": label(combination)} | _grid_row(
            grid, known.models[model], known.chips[chip], wanted, batch, context
        )


def _grid_row(grid: PassGrid, model: Model, chip: Chip, wanted: str, batch: int, context: int) -> Row:
    row: Row = {
        "model": model.key,
        "chip": chip.key,
        "slice": wanted,
        "batch": batch,
        "context_tokens": context,
        "parameters": model.parameters,
    }
    held = Workload(input_tokens=context, output_tokens=0, weights=grid.weights, kv=grid.kv)
    found = smallest_shape(model, chip, held, batch=batch, attention=grid.attention) if wanted == SMALLEST else wanted
    row["kv_bytes_per_token"] = model.kv_bytes_per_token(bytes_per_value(grid.kv, "kv"))
    if found is None:
        nothing = {"shape": "", "chips": None, "fits": False, "maximum_context_tokens": None}
        return row | nothing | {"kv_overtakes_tokens": None} | BLANK
    replica, stages = replica_on(model, chip, found, attention=grid.attention, weights=grid.weights, kv=grid.kv)
    longest = maximum_context(replica, batch, stages)
    row |= {
        "shape": found,
        "chips": replica.chips * stages,
        "fits": longest >= context,
        "maximum_context_tokens": int(longest),
        "kv_overtakes_tokens": kv_overtakes_tokens(replica, batch),
    }
    return row | (_costs(replica, stages, grid.layout, batch, context) if row["fits"] else BLANK)


def kv_overtakes_tokens(replica: ReplicaCosts, batch: int) -> float:
    """Context of each of `batch` sequences at which a step reads as many bytes of cache as of weights."""
    count = np.array([batch])
    weights = sum(float(replica.read_bytes(matrix, count)[0]) for matrix in replica.model.matrices)
    return context_of_attended(replica, weights / (batch * cache_bytes_per_token(replica)))


def _costs(replica: ReplicaCosts, stages: int, layout: Layout, batch: int, context: int) -> Row:
    """What a step and a prompt cost."""
    cost = pass_cost(replica, Phase.DECODE, batch, context, layout, stages)
    parts = {name: float(value) for name, value in cost.breakdown_s.items()}
    products = parts[PassPart.COMPUTE] + parts[PassPart.WEIGHTS]
    moved = parts[PassPart.COLLECTIVES] + parts["sends"]
    seconds = float(cost.seconds)
    prompts = {each: float(pass_seconds(replica, Phase.PREFILL, 1, context, each, stages)) for each in Layout}
    fastest = min(prompts, key=lambda each: prompts[each])
    links = sum(float(sum(cost.bytes.get(level, {}).values())) for level in ("ici", "nvlink", "network"))
    return {
        "step_s": seconds,
        "compute_and_weights_s": products,
        "kv_read_s": parts["kv_read"],
        "collectives_s": moved,
        "other_s": max(0.0, seconds - products - moved - parts["kv_read"]),
        "lower_bound_s": float(cost.lower_bound_s),
        "binds": str(cost.binds),
        "chip_s_per_token": replica.chips * stages * seconds / batch,
        "weight_bytes_per_token": float(cost.bytes["hbm"]["weights"]) / batch,
        "kv_read_bytes_per_token": float(cost.bytes["hbm"]["kv_read"]) / batch,
        "link_bytes_per_token": links / batch,
        "prefill_s": prompts[fastest],
        "prefill_layout": fastest.value,
    }
