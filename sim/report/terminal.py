"""What the terminal shows of a run: the table of availabilities, and the answer in plain words."""

from __future__ import annotations

import math
import textwrap
from typing import NamedTuple

import pandas as pd

from sim.report.context import ReportContext, Tables, absence, is_absent, table_of
from sim.report.effect_words import effect_table_texts
from sim.report.fleet_words import fleet_text
from sim.report.hosts import host_values, rows_of_host
from sim.report.operations_words import large_job_text, operations_table_text
from sim.report.pass_words import grid_text, measured_times_text
from sim.report.sentences import answer_sentences
from sim.report.sentences import sentence as sentence
from sim.report.shared_words import shared_pod_text
from sim.report.variants import opening, shown_variants
from sim.report.words import FORM_ORDER, fabric_words, fabrics_in_order, form_words, host_words, interval_words

NO_VALUE = "-"
LABEL_WIDTH = 8


class Block(NamedTuple):
    """The columns of one form: its name, a head per host availability, and cells by (fabric, size, column)."""

    title: str
    heads: list[str]
    cells: dict[tuple[str, int, int], str]
    widths: list[int]

    @property
    def width(self) -> int:
        """Characters of the block, one space between its columns."""
        return max(len(self.title), sum(self.widths) + 2 * (len(self.widths) - 1))


def availability_cell(row: pd.Series) -> str:
    """One value in percent with its interval: "75.2±0.3", "25.0=" (no variation seen), "92.4" (one path only)."""
    value = float(row["value"])
    if not math.isfinite(value):
        return NO_VALUE
    low, high = float(row["ci_low"]), float(row["ci_high"])
    spread = interval_words(low, high, value)
    if not spread and int(row["replications"]) > 1:
        spread = "="
    shuffled = [float(row[name]) for name in ("shuffle_low", "shuffle_high") if name in row.index]
    if len(shuffled) == 2 and all(math.isfinite(part) for part in shuffled):
        spread = f"{{{100 * shuffled[0]:.1f}..{100 * shuffled[1]:.1f}}}"
    joint = " " if spread.startswith(("[", "{")) else ""
    return f"{100 * value:.1f}{joint}{spread}"


def form_blocks(table: pd.DataFrame) -> list[Block]:
    """A block of columns for each form of availability in the table."""
    hosts = host_values(table)
    blocks = []
    for form in FORM_ORDER:
        of_form = table[table["form"] == form]
        if of_form.empty:
            continue
        heads = [host_words(host) for host in hosts]
        cells = {}
        for column, host in enumerate(hosts):
            for _, row in rows_of_host(of_form, host).iterrows():
                cells[str(row["fabric"]), int(row["slice_chips"]), column] = availability_cell(row)
        shares = of_form["time_share"].dropna()
        title = form_words(form, float(shares.iloc[0]) if len(shares) else None)
        widths = [
            max([len(head), *(len(text) for (_, _, at), text in cells.items() if at == column)])
            for column, head in enumerate(heads)
        ]
        blocks.append(Block(title, heads, cells, widths))
    return blocks


def availability_table_text(tables: Tables, *, width: int = 100) -> str:
    """Availability in percent of the pod as an aligned table: a row per fabric and slice size, a column per host
    availability, for each form; forms that do not fit beside each other in `width` characters stand below each other.
    Where other keys are swept too, one such table for each combination of them.
    """
    shown, left = shown_variants(tables)
    parts = [
        "\n\n".join(filter(None, (opening(label).strip(), _one_table_text(own, width=width)))) for label, own in shown
    ]
    return "\n\n".join([*parts, left] if left else parts)


def table_texts(tables: Tables) -> list[str]:
    """The tables that the terminal prints: availability, pods in operation and shared, passes, where there are some; or
    how swept combinations compare, where the run asks for that."""
    compared = effect_table_texts(tables)
    if compared:
        return compared
    others = ("operations", "large_job", "fleet", "shared_pod", "measured_times", "passes", "ideal")
    if all(is_absent(tables, name) for name in others):
        return [availability_table_text(tables)]
    shown, left = shown_variants(tables)
    makers = (
        operations_table_text,
        fleet_text,
        shared_pod_text,
        large_job_text,
        measured_times_text,
        grid_text,
        _causes_text,
    )
    told = [(label, text) for label, own in shown for text in (maker(own) for maker in makers) if text]
    texts = [f"{opening(label)}{text}" for label, text in told]
    first = [] if is_absent(tables, "availability") else [availability_table_text(tables)]
    return [*first, *texts, *([left] if left else [])]


def _causes_text(tables: Tables) -> str:
    from sim.report.ideal_words import ideal_text  # which takes the page's tables, which take this module

    return ideal_text(tables)


def _one_table_text(tables: Tables, *, width: int) -> str:
    """The table of one variant."""
    if is_absent(tables, "availability"):
        return absence("availability")
    table = table_of(tables, "availability")
    keys = [
        (fabric, size)
        for fabric in fabrics_in_order(list(table["fabric"]))
        for size in sorted({int(size) for size in table["slice_chips"]})
    ]
    rows_of_blocks: list[list[Block]] = [[]]
    for block in form_blocks(table):
        used = LABEL_WIDTH + sum(other.width + 3 for other in rows_of_blocks[-1])
        if rows_of_blocks[-1] and used + 3 + block.width > width:
            rows_of_blocks.append([])
        rows_of_blocks[-1].append(block)
    parts = ["Availability of slices, % of the pod's chips, by slice size (chips) and host availability"]
    parts += ["\n".join(_block_lines(blocks, keys)) for blocks in rows_of_blocks]
    parts.append(textwrap.fill(_footnote(table), width))
    return "\n\n".join(part for part in parts if part)


def _block_lines(blocks: list[Block], keys: list[tuple[str, int]]) -> list[str]:
    indent = " " * LABEL_WIDTH
    lines = [indent + "".join("   " + block.title.ljust(block.width) for block in blocks)]
    heads = (_joined(block.heads, block) for block in blocks)
    lines.append("hosts up" + "".join("   " + head for head in heads))
    before = ""
    for fabric, size in keys:
        cells = [[block.cells.get((fabric, size, at), "") for at in range(len(block.heads))] for block in blocks]
        if not any(text for row in cells for text in row):
            continue
        if fabric != before:
            lines.append(fabric_words(fabric))
            before = fabric
        body = "".join("   " + _joined(row, block) for row, block in zip(cells, blocks, strict=True))
        lines.append(f"{size:>{LABEL_WIDTH}}{body}")
    return [line.rstrip() for line in lines]


def _joined(cells: list[str], block: Block) -> str:
    text = "  ".join(cell.ljust(width) for cell, width in zip(cells, block.widths, strict=True))
    return text.ljust(block.width)


def _footnote(table: pd.DataFrame) -> str:
    """What the marks mean, and how many values have a closed form that they agree with."""
    notes = ["± and [ ]: 95 % interval; =: no variation seen (for what is held: the same at both limits)"]
    if table["shuffle_low"].notna().any():
        notes.append("{ }: lowest and highest over placements of the log's nodes")
    checked = table["agrees"].dropna()
    if len(checked):
        agree = int(checked.astype(bool).sum())
        notes.append(f"{agree} of {len(checked)} values with a closed form agree with it{_disagreeing(table)}")
    return "; ".join(notes) + "."


def _disagreeing(table: pd.DataFrame) -> str:
    """Names of the first values that do not agree with their closed form."""
    rows = table[table["agrees"].notna()]
    rows = rows[~rows["agrees"].astype(bool)]
    names = [
        f"{fabric_words(str(row['fabric']))} {form_words(str(row['form']), float(row['time_share']))} "
        f"at {int(row['slice_chips'])} chips, hosts up "
        f"{host_words(float(row['host_availability']))}: {100 * float(row['value']):.1f} against "
        f"{100 * float(row['closed_form']):.1f}"
        for _, row in rows.head(3).iterrows()
    ]
    more = f" and {len(rows) - 3} more" if len(rows) > 3 else ""
    return f" (not {'; '.join(names)}{more})" if names else ""


def answer_text(tables: Tables, *, width: int = 100) -> str:
    """The computed sentences, one per paragraph, wrapped for the terminal."""
    return "\n".join(textwrap.fill(text, width, subsequent_indent="  ") for text in answer_sentences(tables))


def settings_text(context: ReportContext) -> str:
    """The effective configuration as aligned lines; assumptions are marked with a star."""
    settings = context.marked_settings()
    if not settings:
        return ""
    width = max(len(setting.label) for setting in settings)
    lines = [f"{s.label.ljust(width)}  {s.value}{' *' if s.is_assumption else ''}" for s in settings]
    if any(setting.is_assumption for setting in settings):
        lines.append("* assumption of this project: set your own value in the scenario")
    return "\n".join(lines)


def warnings_text(context: ReportContext) -> str:
    """The warnings of a run, a line each."""
    return "\n".join(f"warning: {warning}" for warning in context.warnings)
