"""Promises as texts: "8x8x16:3" means three slices of 8x8x16 chips; "1024:3" names chips alone."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from sim.report.words import count_words, listed

_ITEM = re.compile(r"(?P<size>\d+(?:x\d+x\d+(?:_twisted)?)?)['\"]?\s*:\s*(?P<count>\d+)")


@dataclass(frozen=True, kw_only=True, slots=True)
class PromisedSlices:
    """`count` slices of `chips` chips each; `size` is the text of the scenario (a shape or a number of chips)."""

    size: str
    chips: int
    count: int


def read_promise(text: str) -> list[PromisedSlices]:
    """The slices that a promise names, in order; an empty list for a text that is not one."""
    found = []
    for match in _ITEM.finditer(str(text)):
        chips = math.prod(int(part) for part in match["size"].removesuffix("_twisted").split("x"))
        found.append(PromisedSlices(size=match["size"], chips=chips, count=int(match["count"])))
    return found


def promise_words(text: str) -> str:
    """A promise in a sentence: "three 1024-chip slices"; the text itself where it cannot be read."""
    parts = [
        f"{count_words(item.count)} {item.chips}-chip slice{'' if item.count == 1 else 's'}"
        for item in read_promise(text)
    ]
    return listed(parts) if parts else str(text)
