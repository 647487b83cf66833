"""The routing methods that are shipped."""

from __future__ import annotations

from enum import StrEnum

from topology.errors import refuse


class Method(StrEnum):
    """How routes are chosen on a slice with dead links."""

    DIMENSION_ORDER = "dimension_order"
    EVEN_SPLIT = "even_split"
    WILD_FIRST = "wild_first"
    OPTIMAL = "optimal"


def method_of(text: str) -> Method:
    """The method of this name; InputError otherwise."""
    try:
        return Method(text)
    except ValueError:
        raise refuse("method", f"there is no routing method {text!r}", f"write one of {', '.join(Method)}") from None
