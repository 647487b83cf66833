"""Errors of the computed costs against published times, row by row and by group."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from workloads.accuracy.rows import MEASURED_ROWS, Kind, MeasuredRow
from workloads.catalogue.chips import chip_by_key
from workloads.catalogue.models import model_by_key
from workloads.catalogue.stack import StackConstants
from workloads.catalogue.stacks import constants_of
from workloads.costs.asking import replica_on
from workloads.costs.passes import Phase, pass_seconds
from workloads.costs.replica import ReplicaCosts

Constants = Callable[[MeasuredRow], StackConstants]


def usual_constants(row: MeasuredRow) -> StackConstants:
    """The constants of the stack with which a row's model was measured."""
    return constants_of(chip_by_key(row.chip), model=model_by_key(row.model))


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


def replica_of(row: MeasuredRow, constants: StackConstants) -> tuple[ReplicaCosts, int]:
    """The replica that a row was measured on, and its stages."""
    return replica_on(
        model_by_key(row.model),
        chip_by_key(row.chip),
        row.shape,
        attention=row.attention,
        weights=row.weights,
        constants=constants,
    )


def computed_s(row: MeasuredRow, constants: StackConstants) -> float:
    """Seconds of what the row times."""
    replica, stages = replica_of(row, constants)

    def decode(contexts: np.ndarray) -> float:
        return float(pass_seconds(replica, Phase.DECODE, row.batch, contexts, stages=stages).sum())

    if row.kind is Kind.TIME_PER_TOKEN:
        return decode(np.array([row.input_tokens + row.output_tokens // 2]))
    first = row.input_tokens + np.arange(row.output_tokens)
    if row.kind is Kind.DECODE:
        return decode(first)
    prompt = float(pass_seconds(replica, Phase.PREFILL, row.batch, row.input_tokens, stages=stages))
    if row.kind is Kind.PREFILL:
        return prompt
    return prompt + decode(first if row.kind is Kind.PROMPT_AND_STEPS else first[1:])


def row_errors(
    rows: Sequence[MeasuredRow] = MEASURED_ROWS, constants: Constants = usual_constants
) -> tuple[RowError, ...]:
    """The error of every row."""
    return tuple(RowError(row=row, computed_s=computed_s(row, constants(row))) for row in rows)


@dataclass(frozen=True, kw_only=True)
class GroupError:
    """Errors of a group of rows, irregular ones left out: how many rows, mean and worst, also beyond rounding."""

    group: str
    rows: int
    mean: float
    worst: float
    mean_beyond_rounding: float
    worst_beyond_rounding: float


def group_errors(errors: Sequence[RowError]) -> tuple[GroupError, ...]:
    """Errors by group, in the order of the rows."""
    found = []
    for group in dict.fromkeys(each.row.group for each in errors):
        own = [each for each in errors if each.row.group == group and not each.row.irregular]
        sizes = np.abs([each.error for each in own])
        beyond = np.abs([each.beyond_rounding for each in own])
        found.append(
            GroupError(
                group=group,
                rows=len(own),
                mean=float(sizes.mean()),
                worst=float(sizes.max()),
                mean_beyond_rounding=float(beyond.mean()),
                worst_beyond_rounding=float(beyond.max()),
            )
        )
    return tuple(found)
