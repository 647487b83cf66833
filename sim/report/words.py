"""The words of a report: names, numbers and lists as people say them, and how each number is defined."""

from __future__ import annotations

import math
from collections.abc import Sequence

FABRIC_ORDER = ("reconfigurable", "static_aligned", "static_contiguous", "any_host")
FABRIC_WORDS = {
    "reconfigurable": "reconfigurable",
    "static_aligned": "static aligned",
    "static_contiguous": "static contiguous",
    "any_host": "ideal switch",
}
FABRIC_MEANINGS = {
    "reconfigurable": "any usable cubes make a slice: circuits are set when the job starts",
    "static_aligned": "the pod is cut once into fixed blocks; a block needs all its cubes",
    "static_contiguous": "cables are fixed, but a slice may be any box of neighbouring usable cubes",
    "any_host": "an ideal switch that joins any hosts, whatever cube they stand in",
}
FORM_ORDER = ("expected", "guaranteed", "delivered", "expected_with_light")
FORM_MEANINGS = {
    "expected": "Share of the pod in slices of this size that could be formed from usable cubes, averaged over time.",
    "guaranteed": "The largest share of the pod that could be formed for at least the stated share of time.",
    "delivered": "Share of chip-time in which slices of this size, with endless demand, actually run: from the end of "
    "restore to the instant of failure. Lost work and slowdown are not deducted.",
    "expected_with_light": "As expected, but a dead optical switch counts: jobs that opt in run slower, others do not "
    "run.",
}
NUMBER_WORDS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")


def fabric_words(fabric: str) -> str:
    """A fabric as people read it ("static aligned")."""
    return FABRIC_WORDS.get(fabric, fabric.replace("_", " "))


def fabrics_in_order(fabrics: Sequence[str]) -> list[str]:
    """The distinct fabrics, known ones first in the order of every chart and table."""
    distinct = list(dict.fromkeys(str(fabric) for fabric in fabrics))
    known = [fabric for fabric in FABRIC_ORDER if fabric in distinct]
    return known + [fabric for fabric in distinct if fabric not in FABRIC_ORDER]


def form_words(form: str, time_share: float | None = None) -> str:
    """A form of availability as people read it ("held 97 % of the time")."""
    if form == "guaranteed":
        known = time_share is not None and math.isfinite(time_share)
        return f"held {percent(time_share)} of the time" if known and time_share is not None else "guaranteed"
    return {"expected_with_light": "expected, light failing"}.get(form, form)


def percent(share: float, decimals: int | None = None) -> str:
    """A share as a percentage: as few decimals as tell it apart (up to 2), or a fixed number of them."""
    if not math.isfinite(share):
        return "unknown"
    if decimals is not None:
        return f"{100 * share:.{decimals}f} %"
    text = f"{100 * share:.2f}".rstrip("0").rstrip(".")
    return f"{text} %"


def host_words(host_availability: float) -> str:
    """A host availability as a column head: "99.5 %", or "as logged" where no number is set."""
    if not math.isfinite(host_availability):
        return "as logged"
    text = f"{100 * host_availability:.3f}".rstrip("0")
    whole, _, part = text.partition(".")
    return f"{whole}.{part or '0'} %"


def points_words(difference: float) -> str:
    """A difference of shares in percentage points ("0.3 points")."""
    value = abs(100 * difference)
    text = f"{value:.1f}" if value >= 0.05 else "less than 0.1"
    return f"{text} point" if text == "1.0" else f"{text} points"


def count_words(number: int) -> str:
    """A count in words up to twelve, in digits above ("three", "1,424")."""
    return NUMBER_WORDS[number] if 0 <= number < len(NUMBER_WORDS) else f"{number:,}"


def seconds(value: float) -> str:
    """A time with the unit that suits it: "85 ms", "4.2 s", "12 min", "3.5 h", "6.3 d"."""
    if not math.isfinite(value):
        return "never" if value > 0 else "unknown"
    size = abs(value)
    if size == 0:
        return "0 s"
    scales = (
        (86400.0 * 2, 86400.0, "d"),
        (5400.0, 3600.0, "h"),
        (100.0, 60.0, "min"),
        (0.9995, 1.0, "s"),
        (0.0, 1e-3, "ms"),
    )
    for least, unit_s, unit in scales:
        if size >= least:
            return f"{number(value / unit_s)} {unit}"
    return f"{value} s"


def number(value: float) -> str:
    """Three significant digits, thousands separated, no exponent for the sizes that people read."""
    if not math.isfinite(value):
        return "unknown"
    size = abs(value)
    if size >= 100:
        return f"{value:,.0f}"
    if size == 0:
        return "0"
    decimals = max(0, 2 - math.floor(math.log10(size)))
    text = f"{value:.{decimals}f}" if decimals <= 8 else f"{value:.2e}"
    return text.rstrip("0").rstrip(".") if "." in text and "e" not in text else text


def listed(items: Sequence[str], joiner: str = "and") -> str:
    """Items as a list in a sentence: "a", "a and b", "a, b and c"."""
    if len(items) < 2:
        return "".join(items)
    return f"{', '.join(items[:-1])} {joiner} {items[-1]}"


def category_words(name: str) -> str:
    """A ledger category, use or stage as people read it: underscores away, "kv" in capitals."""
    words = name.replace("_", " ").split()
    return " ".join({"kv": "KV", "others": "others'"}.get(word, word) for word in words)


def interval_words(low: float, high: float, value: float) -> str:
    """The spread of a value in percent: "±0.3", "[72.1, 76.0]", "=" for no variation seen, "" where unknown."""
    if not (math.isfinite(low) and math.isfinite(high)):
        return ""
    if high - low <= 1e-12:
        return "="
    half = 50 * (high - low)
    if abs((low + high) / 2 - value) <= 0.02 * (high - low) + 1e-12:
        return f"±{half:.1f}" if half >= 0.05 else f"±{half:.2f}" if half >= 0.005 else "±0.00"
    return f"[{100 * low:.1f}, {100 * high:.1f}]"


def bytes_words(value: float) -> str:
    """Bytes with the unit that suits them: "54 B", "3.73 GB"."""
    for size, unit in ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if value >= size:
            return f"{number(value / size)} {unit}"
    return f"{number(value)} B"
