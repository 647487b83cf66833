"""The routing methods that are shipped."""

from __future__ import annotations

from enum import StrEnum


class Method(StrEnum):
    """How routes are chosen on a slice with dead links."""

    DIMENSION_ORDER = "dimension_order"
    EVEN_SPLIT = "even_split"
    WILD_FIRST = "wild_first"
    OPTIMAL = "optimal"
