"""Phrases that the sentences of a report share: how a pod is wired, host availabilities, rows of shares."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pandas as pd

from sim.report.words import fabric_words, fabrics_in_order, host_words

LIGHT, WIRES, BOXES, IDEAL = "reconfigurable", "static_aligned", "static_contiguous", "any_host"
HOW = {LIGHT: "reconfigurable", WIRES: "static", IDEAL: "with an ideal switch"}


def spoken_fabrics(table: pd.DataFrame) -> list[str]:
    """Fabrics that sentences set side by side: reconfigurable and static; where a run has neither, its own.

    Static means aligned blocks, or contiguous boxes where a run has no aligned ones.
    """
    present = fabrics_in_order(list(table["fabric"])) if len(table) else []
    wires = next((fabric for fabric in (WIRES, BOXES) if fabric in present), "")
    return [fabric for fabric in (LIGHT, wires) if fabric in present] or present


def how_words(fabric: str) -> str:
    """How a pod is wired, as a sentence ends ("static", "with an ideal switch")."""
    return HOW.get(fabric, fabric_words(fabric))


def wired(noun: str, fabric: str) -> str:
    """A thing by the wiring of its pod ("static slices", "slices with an ideal switch")."""
    return f"{noun} {how_words(fabric)}" if fabric == IDEAL else f"{how_words(fabric)} {noun}"


def hosts_words(keys: Sequence[float]) -> str:
    """Host availabilities of a sentence ("hosts up 99.0 / 99.5 / 99.9 %")."""
    if list(keys) == [-1.0]:
        return "hosts as logged"
    words = [host_words(math.nan if key < 0 else key) for key in keys]
    return "hosts up " + " / ".join([*(word.removesuffix(" %") for word in words[:-1]), words[-1]])


def slashed(values: Sequence[float]) -> str:
    """Shares in percent, or one where all are equal in print ("75 %", "7.6 / 27.7 / 77.4 %")."""
    texts = [f"{100 * value:.1f}" if value > 0.99995 or value < 0.9995 else f"{100 * value:.2f}" for value in values]
    if all(text.endswith(".0") for text in texts):
        texts = [text.removesuffix(".0") for text in texts]
    return f"{texts[0]} %" if len(set(texts)) == 1 else f"{' / '.join(texts)} %"
