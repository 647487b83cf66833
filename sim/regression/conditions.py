"""Conditions on the differences of two runs: `delivered[slice_chips=1024] < -0.5 pp`, second run minus first."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from sim.measure_names import MEASURES
from sim.regression.amounts import NUMBER, Amount, amount_of
from sim.regression.judging import Judged, Pair
from sim.scenario_faults import nearest
from topology.errors import refuse

_FAIL_IF = re.compile(rf"\s*(?P<measure>\w+)\s*(?:\[(?P<filters>[^\]]*)\])?\s*(?P<sign>[<>])\s*{NUMBER}\s*")
_EXAMPLE = 'write for example "delivered[slice_chips=1024] < -0.5 pp" (pp: of a share; %: of the first value)'


@dataclass(frozen=True, kw_only=True)
class FailIf:
    """A condition of `compare` on the difference of two values: `sign` times it is over `sign` times the bound."""

    text: str
    measure: str
    filters: Mapping[str, str]
    sign: float
    bound: Amount

    def is_about(self, pair: Pair) -> bool:
        """Whether a row that both runs have, with values, falls under this condition."""
        if pair.before is None or pair.now is None or pair.measure != self.measure:
            return False
        known = not (math.isnan(pair.before.value) or math.isnan(pair.now.value))
        return known and all(pair.place.get(key) == value for key, value in self.filters.items())

    def is_hit_by(self, pair: Pair) -> bool:
        """Whether a row that this is about meets the condition."""
        assert pair.before is not None
        assert pair.now is not None
        before, now = pair.before.value, pair.now.value
        difference = 0.0 if now == before else now - before
        return self.sign * difference > self.sign * self.bound.of(before)


def parse_fail_if(text: str) -> FailIf:
    """Read a condition; raises InputError saying how one is written."""
    match = _FAIL_IF.fullmatch(text)
    if match is None:
        raise refuse("--fail-if", f"`{text}` is no condition", _EXAMPLE)
    if match["measure"] not in MEASURES:
        what = f"`{match['measure']}` is no measure"
        raise refuse("--fail-if", what, nearest(match["measure"], list(MEASURES)))
    filters: dict[str, str] = {}
    for item in filter(None, (part.strip() for part in (match["filters"] or "").split(","))):
        key, equals, value = item.partition("=")
        if not equals:
            raise refuse("--fail-if", f"`{item}` is no filter", "write for example slice_chips=1024")
        filters[key.strip()] = value.strip()
    return FailIf(
        text=text,
        measure=match["measure"],
        filters=filters,
        sign=1.0 if match["sign"] == ">" else -1.0,
        bound=amount_of(match["number"], match["unit"]),
    )


def hits(conditions: Sequence[FailIf], rows: Sequence[Judged]) -> Iterator[tuple[FailIf, Judged]]:
    """Every condition with the rows that meet it; refuses one that is about nothing, since it could never fail."""
    for condition in conditions:
        about = [row for row in rows if condition.is_about(row.pair)]
        if not about:
            what = f"`{condition.text}` is about no row that both runs have"
            raise refuse("--fail-if", what, "compare with the columns of summary.csv")
        yield from ((condition, row) for row in about if condition.is_hit_by(row.pair))
