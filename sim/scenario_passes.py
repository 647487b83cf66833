"""The section `study.passes`: times of others to compare with, and a grid of models, slices, batches and contexts.

A row of a table takes from its table what it leaves out, so that a published table is written as it was printed.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Annotated

from pydantic import Field

from sim.scenario_faults import nearest
from sim.scenario_parts import Section
from topology.errors import InputError
from topology.provenance import Mark
from topology.units import PositiveSeconds, Seconds
from workloads.accuracy.errors import Catalogues, replica_of
from workloads.accuracy.rows import Kind, MeasuredRow
from workloads.catalogue.model import BYTES_PER_VALUE
from workloads.costs.layouts import Attention, Layout
from workloads.costs.shapes import replica_shape

SMALLEST = "smallest"
"""In the place of a shape: the smallest slice of the chip's ladder that fits."""
GRID_ROWS_MAX = 20_000
GROUP = r"^[a-z][a-z0-9_]{0,63}$"
Problem = tuple[tuple[str | int, ...], str, str]
Tokens = Annotated[int, Field(ge=1, le=100_000_000)]
Batch = Annotated[int, Field(ge=1, le=1_000_000)]


class TimedPass(Section):
    """One time of a pass or a request that others measured."""

    model: str | None = None
    """Key of the model (`opticube list models`, or your own)."""
    chip: str | None = None
    """Key of the chip."""
    shape: str | None = None
    """Slice, such as `4x4x4`; of GPUs `8` (tensor) or `8x3` (tensor x pipeline)."""
    what: Kind | None = None
    """`prefill`: the prompts of a batch; `decode`: `output` steps, the first one over `input` tokens; `request`: the
    prompt and `output` - 1 steps; `prompt_and_steps`: the prompt and `output` steps; `time_per_token`: the step at half
    of an answer."""
    batch: Batch | None = None
    """Sequences."""
    input: Tokens | None = None
    """Tokens of the prompt, or of context before the first step."""
    output: Tokens | None = None
    """Tokens of the answer; only `prefill` has none."""
    seconds: PositiveSeconds | None = None
    """The measured time, such as `34 ms`."""
    rounding: Seconds | None = None
    """Half of the last digit of the measured time, where that is coarse."""
    mark: Mark | None = None
    """`V` seen in the primary source; `V2` in a text that quotes it; `R` recalled: never to be called published."""
    attention: Attention | None = None
    """How the cache was spread; `heads` where nothing says so."""
    layout: Layout | None = None
    """How the weights met the tokens; `weight_stationary_2d` where nothing says so."""
    weights: str | None = None
    """Number format of the weights; `bf16` where nothing says so."""
    counted: bool | None = None
    """Whether the row counts in the errors of its group; known oddities do not. `true` where nothing says so."""


class TimedTable(TimedPass):
    """A table of measured times; what is said here holds for its rows unless they say otherwise."""

    group: Annotated[str, Field(pattern=GROUP)]
    """Under which errors are summed up; several tables may share it."""
    source: str
    """Where the times were published."""
    rows: Annotated[tuple[TimedPass, ...], Field(min_length=1)]
    """The rows; each needs, of its own or of its table, model, chip, shape, what, batch, input, seconds and mark."""

    def measured(self) -> Iterator[MeasuredRow]:
        """The rows, complete; call after `problems` found none."""
        for row in self.rows:
            whole = self.whole(row)
            assert whole.what is not None
            assert whole.mark is not None
            yield MeasuredRow(
                group=self.group,
                kind=whole.what,
                model=whole.model or "",
                chip=whole.chip or "",
                shape=whole.shape or "",
                batch=whole.batch or 1,
                input_tokens=whole.input or 1,
                output_tokens=0 if whole.what is Kind.PREFILL else whole.output or 1,
                measured_s=whole.seconds or 1.0,
                mark=whole.mark,
                source=self.source,
                attention=whole.attention or Attention.HEADS,
                layout=whole.layout or Layout.WEIGHT_STATIONARY_2D,
                weights=whole.weights or "bf16",
                rounding_s=whole.rounding or 0.0,
                counted=whole.counted is not False,
            )

    def whole(self, row: TimedPass) -> TimedPass:
        """A row with what it takes from the table."""
        keys = TimedPass.model_fields
        values = {key: getattr(row, key) if getattr(row, key) is not None else getattr(self, key) for key in keys}
        return TimedPass.model_construct(**values)

    def problems(self, known: Catalogues, path: tuple[str | int, ...]) -> Iterator[Problem]:
        """Rows that lack something, and words that nobody knows."""
        for index, row in enumerate(self.rows):
            whole, place = self.whole(row), (*path, "rows", index)
            needed = ["model", "chip", "shape", "what", "batch", "input", "seconds", "mark"]
            needed += [] if whole.what is Kind.PREFILL else ["output"]
            missing = [key for key in needed if getattr(whole, key) is None]
            if missing:
                yield place, f"neither the row nor its table says {', '.join(missing)}", f"write `{missing[0]}: ...`"
                continue
            words = list(_words(known, whole.model, whole.chip, whole.weights or "bf16", place))
            yield from words
            if not words:
                try:
                    replica_of(next(self.model_copy(update={"rows": (row,)}).measured()), known=known)
                except InputError as error:
                    yield from (((*place, "shape"), fault.what, fault.write) for fault in error.faults)


class PassGrid(Section):
    """Every model on every chip and slice, at every batch and context: one decode step, and one prompt alone."""

    models: Annotated[tuple[str, ...], Field(min_length=1)]
    """Keys of models, in the order of the rows."""
    chips: Annotated[tuple[str, ...], Field(min_length=1)] = ("tpu_v4",)
    """Keys of chips."""
    slices: Annotated[tuple[str, ...], Field(min_length=1)] = (SMALLEST,)
    """Shapes, or `smallest`: the smallest slice that holds weights and the cache of the batch."""
    batches: Annotated[tuple[Batch, ...], Field(min_length=1)] = (1,)
    """Sequences of a step."""
    contexts: Annotated[tuple[Tokens, ...], Field(min_length=1)]
    """Tokens of context of each sequence, and of the prompt."""
    layout: Layout = Layout.WEIGHT_STATIONARY_2D
    """How weights meet the tokens of a step; a prompt takes the fastest layout."""
    attention: Attention = Attention.HEADS_X_BATCH
    """How the cache is spread over the chips."""
    weights: str = "bf16"
    """Number format of the weights: `bf16`, `int8` or `fp8`."""
    kv: str = "bf16"
    """Number format of the cache."""

    @property
    def count(self) -> int:
        """Rows of the grid."""
        return len(self.models) * len(self.chips) * len(self.slices) * len(self.batches) * len(self.contexts)

    @property
    def combinations(self) -> Iterator[tuple[str, str, str, int, int]]:
        """Model, chip, slice, batch and context of every row, the first list slowest."""
        return itertools.product(self.models, self.chips, self.slices, self.batches, self.contexts)

    def problems(self, known: Catalogues, path: tuple[str | int, ...]) -> Iterator[Problem]:
        """Words that nobody knows, slices that a chip can not form, values given twice, too many rows."""
        for key in ("models", "chips", "slices", "batches", "contexts"):
            values = getattr(self, key)
            for index, value in enumerate(values):
                if value in values[:index]:
                    yield (*path, key, index), f"{value} is given twice", "keep one of the two"
        if self.count > GRID_ROWS_MAX:
            yield path, f"the grid has {self.count:,} rows", f"write lists whose product is at most {GRID_ROWS_MAX:,}"
        words = list(self._unknown(known, path))
        yield from words
        for at, shape in enumerate(self.slices if not words else ()):
            for chip in self.chips if shape != SMALLEST else ():
                try:
                    replica_shape(known.chips[chip], shape)
                except InputError as error:
                    yield from (((*path, "slices", at), fault.what, fault.write) for fault in error.faults)

    def _unknown(self, known: Catalogues, path: tuple[str | int, ...]) -> Iterator[Problem]:
        for key, words, names in (("models", self.models, known.models), ("chips", self.chips, known.chips)):
            for index, word in enumerate(words):
                if word not in names:
                    yield (*path, key, index), f"`{word[:40]}` is not known", nearest(word, list(names))
        for key in ("weights", "kv"):
            word = getattr(self, key)
            if word not in BYTES_PER_VALUE:
                yield (*path, key), f"`{word[:40]}` is not known", nearest(word, list(BYTES_PER_VALUE))


class PassesStudy(Section):
    """Single passes of language models, without a clock: against times of others, and over a grid."""

    tables: tuple[TimedTable, ...] = ()
    """Measured times to compare with."""
    grid: PassGrid | None = None
    """Models, slices, batches and contexts to go through."""

    @property
    def lines(self) -> tuple[str, ...]:
        """What the summary calls `service`: groups of measured times, then rows of the grid in words."""
        rows = () if self.grid is None else self.grid.combinations
        return (*dict.fromkeys(table.group for table in self.tables), *map(label, rows))

    def problems(self, known: Catalogues) -> Iterator[Problem]:
        """All that is wrong with it beside the types of single keys."""
        path: tuple[str | int, ...] = ("study", "passes")
        if not self.tables and self.grid is None:
            yield path, "neither measured times nor a grid", "write `tables:` or `grid:`"
        for index, table in enumerate(self.tables):
            yield from table.problems(known, (*path, "tables", index))
        if self.grid is not None:
            yield from self.grid.problems(known, (*path, "grid"))


def label(combination: tuple[str, str, str, int, int]) -> str:
    """A row of the grid in words."""
    model, chip, wanted, batch, context = combination
    return f"{model} on {wanted} {chip}, batch {batch}, context {context}"


def _words(
    known: Catalogues, model: str | None, chip: str | None, weights: str, path: tuple[str | int, ...]
) -> Iterator[Problem]:
    """Keys of a row that are in no catalogue."""
    for key, word, names in (
        ("model", model or "", list(known.models)),
        ("chip", chip or "", list(known.chips)),
        ("weights", weights, list(BYTES_PER_VALUE)),
    ):
        if word not in names:
            yield (*path, key), f"`{word[:40]}` is not known", nearest(word, names)
