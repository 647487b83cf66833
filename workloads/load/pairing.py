"""Lengths of a request together: prompt and answer on their own, tied by rank, or as a pair out of a file."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from workloads.load.lengths import LengthLaw
from workloads.traces.reading import cached_trace
from workloads.traces.trace import Trace, TraceFormat

Floats = NDArray[np.float64]
Tokens = NDArray[np.int64]
LARGEST_RANK_CORRELATION = 0.999


@dataclass(frozen=True, kw_only=True)
class LengthPairs:
    """Prompt and answer of one request of a trace file, drawn with replacement: how they belong together is kept."""

    path: str
    format: TraceFormat | None = None

    @property
    def trace(self) -> Trace:
        """What the file holds."""
        return cached_trace(self.path, self.format)

    @property
    def longest_tokens(self) -> int:
        """The most tokens that the cache of one request can hold: prompt + answer - 1."""
        requests = self.trace.requests
        return int((requests.input_tokens + requests.output_tokens).max()) - 1

    def drawn(self, u: Floats) -> tuple[Tokens, Tokens]:
        """One pair per uniform."""
        requests = self.trace.requests
        places = np.minimum((u * requests.count).astype(np.int64), requests.count - 1)
        return requests.input_tokens[places], requests.output_tokens[places]


def tied_by_rank(u_prompt: Floats, u_answer: Floats, rank_correlation: float) -> Floats:
    """Uniforms of the answers whose ranks correlate with those of the prompts (Spearman), by a Gaussian copula.

    Of two standard normals of correlation 2 sin(pi s / 6) the rank correlation is s, exactly (Pearson 1907; Kruskal,
    "Ordinal measures of association", JASA 53, 1958). At 0 the answers' own uniforms come back unchanged.
    """
    if rank_correlation == 0.0:
        return u_answer
    normal = 2 * math.sin(math.pi * rank_correlation / 6)
    inside = [np.clip(u, 2.0**-54, 1 - 2.0**-53) for u in (u_prompt, u_answer)]
    z = normal * ndtri(inside[0]) + math.sqrt(1 - normal**2) * ndtri(inside[1])
    return np.asarray(np.clip(ndtr(z), 0.0, 1 - 2.0**-53))


def check_lengths(
    prompts: LengthLaw | None, answers: LengthLaw | None, pairs: LengthPairs | None, rank_correlation: float
) -> None:
    """Raise ValueError unless lengths have one source, and a correlation ties two laws."""
    if pairs is None and (prompts is None or answers is None):
        raise ValueError("nothing says how long prompts and answers are: write `input` and `output`, or `pairs`")
    if pairs is not None and (prompts is not None or answers is not None):
        raise ValueError("`pairs` holds prompts and answers: write either `pairs`, or `input` and `output`")
    if not abs(rank_correlation) <= LARGEST_RANK_CORRELATION:
        bound = LARGEST_RANK_CORRELATION
        raise ValueError(f"rank_correlation of {rank_correlation:g}: write a number between -{bound} and {bound}")
    if pairs is not None and rank_correlation != 0.0:
        raise ValueError("pairs have the correlation of their file: write `rank_correlation` with laws only")
