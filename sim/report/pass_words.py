"""Single passes of language models in words: beside measured times, and over models, slices and contexts."""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd

from sim.report.context import Tables, is_absent, table_of
from sim.report.words import listed, number, percent, seconds

TIMES_HEADS = ("model", "slice", "what", "batch", "tokens", "measured", "computed", "error %", "mark")
ERROR_HEADS = ("group", "rows", "marks", "mean %", "worst %", "beyond rounding %", "worst %")
GRID_HEADS = (
    "model", "slice", "chips", "batch", "context", "fits", "ms a token", "chip-ms", "binds", "longest context",
    "cache > weights from", "first token",
)  # fmt: skip
BLANK = "–"
MARKS_NOTE = "V: the source's own text; V2: a text that quotes it; R: recalled, not published; (): does not count."


def has_several(tables: Tables, column: str) -> bool:
    """Whether the rows of the table `passes` differ in a column."""
    table = table_of(tables, "passes")
    return not table.empty and table[column].nunique() > 1


def about_passes_alone(tables: Tables) -> bool:
    """Whether a run has nothing but single passes: then the page has no place for a machine."""
    return {"measured_times", "passes"} & {*tables} != set() and {*tables} <= {
        "measured_times", "errors_of_times", "passes", "summary"
    }  # fmt: skip


def time_cells(row: pd.Series) -> list[str]:
    """One measured time as cells, by `TIMES_HEADS`."""
    given, wanted = int(row["input_tokens"]), int(row["output_tokens"])
    tokens = f"{given:,}/{wanted:,}" if wanted else f"{given:,}"
    weights = "" if row["weights"] == "bf16" else f" {row['weights']}"
    mark = str(row["mark"]) if row["counted"] else f"({row['mark']})"
    return [
        f"{row['model']}{weights}",
        f"{row['shape']} {row['chip']}",
        str(row["what"]).replace("_", " "),
        f"{int(row['batch']):,}",
        tokens,
        seconds(float(row["measured_s"])),
        seconds(float(row["computed_s"])),
        f"{100 * float(row['error']):+.1f}",
        mark,
    ]


def error_cells(row: pd.Series) -> list[str]:
    """The errors of one group as cells, by `ERROR_HEADS`."""
    names = ("mean", "worst", "mean_beyond_rounding", "worst_beyond_rounding")
    counts = f"{int(row['rows'])}" if row["counted"] else f"({int(row['rows'])})"
    return [str(row["group"]), counts, str(row["marks"]), *(f"{100 * float(row[name]):.1f}" for name in names)]


def grid_cells(row: pd.Series) -> list[str]:
    """One row of the grid as cells, by `GRID_HEADS`."""
    fits = bool(row["fits"])

    def cell(name: str, factor: float = 1.0) -> str:
        return BLANK if pd.isna(row[name]) else number(factor * float(row[name]))

    return [
        str(row["model"]),
        f"{row['shape'] or row['slice']} {row['chip']}",
        BLANK if pd.isna(row["chips"]) else f"{int(row['chips']):,}",
        f"{int(row['batch']):,}",
        f"{int(row['context_tokens']):,}",
        "yes" if fits else "no",
        cell("step_s", 1e3),
        cell("chip_s_per_token", 1e3),
        str(row["binds"]) or BLANK,
        BLANK if pd.isna(row["maximum_context_tokens"]) else f"{int(row['maximum_context_tokens']):,}",
        BLANK if pd.isna(row["kv_overtakes_tokens"]) else f"{float(row['kv_overtakes_tokens']):,.0f}",
        seconds(float(row["prefill_s"])) if fits else BLANK,
    ]


def measured_times_text(tables: Tables) -> str:
    """Measured times beside computed ones, by group, then the errors of the groups; empty where there are none."""
    table = table_of(tables, "measured_times")
    if table.empty:
        return ""
    cells = [time_cells(row) for _, row in table.iterrows()]
    lines = _aligned(TIMES_HEADS, cells)
    text = [lines[0]]
    before = ""
    for group, line in zip(table["group"], lines[1:], strict=True):
        if group != before:
            text += ["", str(group)]
            before = str(group)
        text.append(line)
    errors = [error_cells(row) for _, row in table_of(tables, "errors_of_times").iterrows()]
    return "\n".join(["Computed beside measured times", "", *text, "", MARKS_NOTE, "", *_aligned(ERROR_HEADS, errors)])


def grid_text(tables: Tables) -> str:
    """The grid of passes as an aligned table; empty where there is none."""
    table = table_of(tables, "passes")
    if table.empty:
        return ""
    lines = _aligned(GRID_HEADS, [grid_cells(row) for _, row in table.iterrows()])
    return "\n".join(["One decode step, and the first token of one prompt of the context's length alone", "", *lines])


def _aligned(heads: tuple[str, ...], rows: list[list[str]]) -> list[str]:
    """Lines of a table; the first columns of words to the left, all others to the right."""
    widths = [max(len(head), *(len(row[at]) for row in rows)) for at, head in enumerate(heads)]
    words = 3 if heads is TIMES_HEADS or heads is ERROR_HEADS else 2

    def line(cells: tuple[str, ...] | list[str]) -> str:
        placed = [
            cell.ljust(width) if at < words else cell.rjust(width)
            for at, (cell, width) in enumerate(zip(cells, widths, strict=True))
        ]
        return "  ".join(placed).rstrip()

    return [line(heads), *(line(row) for row in rows)]


def pass_sentences(tables: Tables) -> Iterator[str]:
    """What the passes say: errors by group, what a larger model and a longer context cost."""
    errors = table_of(tables, "errors_of_times")
    if not errors.empty:
        counted = errors[errors["counted"]]
        said = [
            f"{row['group']} {percent(float(row['mean']), 1)} on average and {percent(float(row['worst']), 1)} at worst"
            for _, row in (counted if len(counted) else errors).iterrows()
        ]
        yield f"Computed times differ from measured ones: {'; '.join(said)}."
    if is_absent(tables, "passes"):
        return
    if has_several(tables, "model"):
        yield from _models_sentence(tables)
    if has_several(tables, "context_tokens"):
        yield from _contexts_sentences(tables)


def models_rows(tables: Tables) -> pd.DataFrame:
    """One row per model, by size: the first chip, slice, batch and context of each, where it fits."""
    table = table_of(tables, "passes")
    rows = table[table["fits"].astype(bool)]
    return rows.drop_duplicates("model").sort_values("parameters", kind="stable")


def _models_sentence(tables: Tables) -> Iterator[str]:
    rows = models_rows(tables)
    if len(rows) < 2:
        return
    first, last = rows.iloc[0], rows.iloc[-1]
    cheap, dear = (f"{1e3 * float(row['chip_s_per_token']):.3g}" for row in (first, last))
    grows = float(last["parameters"]) / float(first["parameters"])
    yield (
        f"From {first['model']} to {last['model']}, {grows:.0f} times the parameters, a token takes "
        f"{seconds(float(first['step_s']))} on {int(first['chips'])} and {seconds(float(last['step_s']))} on "
        f"{int(last['chips'])} chips, and costs {cheap} and {dear} chip-ms."
    )
    least, most = (rows.loc[getattr(rows["kv_bytes_per_token"], pick)()] for pick in ("idxmin", "idxmax"))
    sizes = [f"{float(row['kv_bytes_per_token']) / 1e3:,.0f} kB ({row['model']})" for row in (least, most)]
    yield f"Size does not settle the cache: one token of it takes from {sizes[0]} to {sizes[1]}."


def _contexts_sentences(tables: Tables) -> Iterator[str]:
    """By model, chip, slice and batch, at most four: how a step grows, and where the cache overtakes the weights."""
    for keys, rows in list(context_series(tables).items())[:4]:
        fits = rows[rows["fits"].astype(bool)]
        if len(fits) < 2:
            continue
        first, last = fits.iloc[0], fits.iloc[-1]
        place = f"{keys[0]} on {keys[2]} {keys[1]}, batch {keys[3]}"
        if keys[2] == "smallest":
            yield (
                f"{place}: the slice grows from {int(first['chips'])} to {int(last['chips'])} chips between "
                f"{int(first['context_tokens']):,} and {int(last['context_tokens']):,} tokens."
            )
        else:
            yield (
                f"{place}: a token takes {seconds(float(first['step_s']))} at {int(first['context_tokens']):,} and "
                f"{seconds(float(last['step_s']))} at {int(last['context_tokens']):,} tokens of context; reads of the "
                f"cache overtake those of the weights at {float(first['kv_overtakes_tokens']):,.0f}, and at most "
                f"{int(first['maximum_context_tokens']):,} fit."
            )


def context_series(tables: Tables) -> dict[tuple[str, str, str, int], pd.DataFrame]:
    """Rows over the context by model, chip, slice and batch, in the order of the table."""
    table = table_of(tables, "passes")
    found = {}
    for keys, rows in table.groupby(["model", "chip", "slice", "batch"], sort=False):
        model, chip, wanted, batch = map(str, keys)
        found[model, chip, wanted, int(batch)] = rows.sort_values("context_tokens")
    return found


def times_alt(tables: Tables) -> str:
    """The alternative text of the picture of errors."""
    parts = [
        f"{row['group']}: mean {percent(float(row['mean']), 1)}, worst {percent(float(row['worst']), 1)}"
        for _, row in table_of(tables, "errors_of_times").iterrows()
    ]
    return f"Points of the error of each computed time over the measured time, by group. {'; '.join(parts)}."


def models_alt(tables: Tables) -> str:
    """The alternative text of the picture over models."""
    return (
        "Small charts over the parameters of models: chips of the slice, time and chip-time per token, longest "
        f"context, cache per token. {' '.join(_models_sentence(tables))}"
    )


def contexts_alt(tables: Tables) -> str:
    """The alternative text of the picture over contexts."""
    said = listed([text.rstrip(".") for text in _contexts_sentences(tables)])
    return f"Charts over the context: time per token, bytes read from memory per token, chips of the slice. {said}."
