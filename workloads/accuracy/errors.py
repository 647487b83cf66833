"""Errors of the computed costs against measured times, row by row and by group."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from workloads.accuracy.rows import Kind, MeasuredRow
from workloads.catalogue.chip import Chip
from workloads.catalogue.chips import CHIPS
from workloads.catalogue.model import Model
from workloads.catalogue.models import MODELS
from workloads.catalogue.stack import StackConstants
from workloads.catalogue.stacks import constants_of
from workloads.costs.asking import replica_on
from workloads.costs.passes import Phase, pass_seconds
from workloads.costs.replica import ReplicaCosts

Constants = Callable[[MeasuredRow], StackConstants | None]
"""The constants for a row; None for those of the stack with which its model was measured."""


@dataclass(frozen=True, kw_only=True)
class RowError:
    """A row, what was computed for it, and the error as a share of what was measured."""

    row: MeasuredRow
    computed_s: float

    @property
    def error(self) -> float:
        """Computed over measured, less 1."""
        return self.computed_s / self.row.measured_s - 1.0

    @property
    def beyond_rounding(self) -> float:
        """The same for the part of the difference that the row's rounding does not explain."""
        difference = self.computed_s - self.row.measured_s
        return float(np.sign(difference) * max(0.0, abs(difference) - self.row.rounding_s) / self.row.measured_s)


@dataclass(frozen=True, kw_only=True)
class Catalogues:
    """Where the keys of rows are looked up."""

    models: Mapping[str, Model]
    chips: Mapping[str, Chip]


SHIPPED = Catalogues(models=MODELS, chips=CHIPS)


def usual_constants(row: MeasuredRow, known: Catalogues = SHIPPED) -> StackConstants:
    """The constants of the stack with which a row's model was measured."""
    return constants_of(known.chips[row.chip], model=known.models[row.model])


def replica_of(
    row: MeasuredRow, constants: StackConstants | None = None, known: Catalogues = SHIPPED
) -> tuple[ReplicaCosts, int]:
    """The replica that a row was measured on, and its stages."""
    return replica_on(
        known.models[row.model],
        known.chips[row.chip],
        row.shape,
        attention=row.attention,
        weights=row.weights,
        constants=constants,
    )


def computed_s(row: MeasuredRow, constants: StackConstants | None = None, known: Catalogues = SHIPPED) -> float:
    """Seconds of what the row times."""
    replica, stages = replica_of(row, constants, known)

    def seconds(phase: Phase, tokens: NDArray[np.int64]) -> float:
        return float(pass_seconds(replica, phase, row.batch, tokens, row.layout, stages).sum())

    if row.kind is Kind.TIME_PER_TOKEN:
        return seconds(Phase.DECODE, np.array([row.input_tokens + row.output_tokens // 2]))
    steps = row.input_tokens + np.arange(row.output_tokens)
    if row.kind is Kind.DECODE:
        return seconds(Phase.DECODE, steps)
    prompt = seconds(Phase.PREFILL, np.array([row.input_tokens]))
    if row.kind is Kind.PREFILL:
        return prompt
    return prompt + seconds(Phase.DECODE, steps if row.kind is Kind.PROMPT_AND_STEPS else steps[1:])


def row_errors(
    rows: Sequence[MeasuredRow], constants: Constants = lambda row: None, known: Catalogues = SHIPPED
) -> tuple[RowError, ...]:
    """The error of every row."""
    return tuple(RowError(row=row, computed_s=computed_s(row, constants(row), known)) for row in rows)


@dataclass(frozen=True, kw_only=True)
class GroupError:
    """Errors of a group of rows: how many, mean and worst, also beyond rounding.

    Rows that do not count are left out, unless none of the group does: then all are in, and `counted` is false.
    """

    group: str
    rows: int
    counted: bool
    mean: float
    worst: float
    mean_beyond_rounding: float
    worst_beyond_rounding: float


def group_errors(errors: Sequence[RowError]) -> tuple[GroupError, ...]:
    """Errors by group, in the order of the rows."""
    found = []
    for group in dict.fromkeys(each.row.group for each in errors):
        every = [each for each in errors if each.row.group == group]
        own = [each for each in every if each.row.counted] or every
        sizes = np.abs([each.error for each in own])
        beyond = np.abs([each.beyond_rounding for each in own])
        found.append(
            GroupError(
                group=group,
                rows=len(own),
                counted=own[0].row.counted,
                mean=float(sizes.mean()),
                worst=float(sizes.max()),
                mean_beyond_rounding=float(beyond.mean()),
                worst_beyond_rounding=float(beyond.max()),
            )
        )
    return tuple(found)
