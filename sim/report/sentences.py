"""The answer of a run in plain words, computed from its tables: no sentence is said that the numbers do not bear."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

import pandas as pd

from sim.report.context import Tables, absence, is_absent, table_of
from sim.report.curves import host_key, host_values, rows_of_host
from sim.report.promises import promise_words, read_promise
from sim.report.words import (
    category_words,
    count_words,
    fabric_words,
    form_words,
    host_words,
    listed,
    number,
    percent,
    points_words,
)

HEADLINE_CHIPS = 1024
NOTHING = 0.0005
"""Differences of shares below this (0.05 points) are called nothing: it is also the least margin of agreement."""
LIGHT, WIRES, IDEAL = "reconfigurable", "static_aligned", "any_host"
WORSE = 0.01
"""A service does worse when its tokens in time are lower by more than this."""
VERDICTS = ("overloaded", "backlogged", "stable")


def answer_sentences(tables: Tables) -> list[str]:
    """The answer, sentence by sentence: promises, what is held, cliff, small slices, ideal, delivered, services."""
    said = [
        _promise_sentence(tables),
        _held_sentence(tables),
        _cliff_sentence(tables),
        _small_sentence(tables),
        _ideal_sentence(tables),
        _delivered_sentence(tables),
        *service_lines(tables),
        *size_sentences(tables),
    ]
    kept = [text for text in said if text]
    return _hosts_once(kept) or [absence("availability")]


def sentence(tables: Tables) -> str:
    """The whole answer as one paragraph."""
    return " ".join(answer_sentences(tables))


def _hosts_once(said: list[str]) -> list[str]:
    """Name the host availabilities at their first mention only, as long as later sentences use the same ones."""
    marks = [match.group(0) for text in said for match in re.finditer(r" \(hosts [^()]*\)", text)]
    if not marks:
        return said
    first = next(place for place, text in enumerate(said) if marks[0] in text)
    order = ", in this order throughout)" if "/" in marks[0] else ")"
    opened = said[first].replace(marks[0], marks[0].removesuffix(")") + order, 1)
    return [*said[:first], opened, *(text.replace(marks[0], "") for text in said[first + 1 :])]


def headline_chips(tables: Tables) -> int:
    """The slice size that the answer is about: the first promised one, else the size of the run nearest to 1024."""
    promise = table_of(tables, "promise")
    if len(promise):
        first = read_promise(str(promise["slices"].iloc[0]))
        if len(first) == 1:
            return first[0].chips
    availability = table_of(tables, "availability")
    sizes = sorted({int(size) for size in availability["slice_chips"]}) if len(availability) else []
    return min(sizes, key=lambda size: abs(math.log(size / HEADLINE_CHIPS)), default=HEADLINE_CHIPS)


def _series(tables: Tables, form: str, fabric: str, chips: int) -> dict[float, float]:
    """Value by host availability of one form, fabric and size; empty where the run has none."""
    table = table_of(tables, "availability")
    if table.empty:
        return {}
    rows = table[(table["form"] == form) & (table["fabric"] == fabric) & (table["slice_chips"] == chips)]
    found = {}
    for host in host_values(rows):
        value = float(rows_of_host(rows, host)["value"].iloc[0])
        if math.isfinite(value):
            found[host_key(host)] = value
    return found


def _hosts_words(keys: Sequence[float]) -> str:
    """Host availabilities of a sentence ("hosts up 99.0 / 99.5 / 99.9 %")."""
    if list(keys) == [-1.0]:
        return "hosts as logged"
    words = [host_words(math.nan if key < 0 else key) for key in keys]
    return "hosts up " + " / ".join([*(word.removesuffix(" %") for word in words[:-1]), words[-1]])


def _slashed(values: Sequence[float]) -> str:
    """Shares in percent, or one where all are equal in print ("75 %", "7.6 / 27.7 / 77.4 %")."""
    texts = [f"{100 * value:.1f}" if value > 0.99995 or value < 0.9995 else f"{100 * value:.2f}" for value in values]
    if all(text.endswith(".0") for text in texts):
        texts = [text.removesuffix(".0") for text in texts]
    return f"{texts[0]} %" if len(set(texts)) == 1 else f"{' / '.join(texts)} %"


def _promise_sentence(tables: Tables) -> str:
    """Cubes that the first promise of the run takes, reconfigurable and static."""
    table = table_of(tables, "promise")
    if table.empty:
        return ""
    promise = str(table["slices"].iloc[0])
    rows = table[table["slices"] == promise]
    what = f"To promise {promise_words(promise)} {percent(float(rows['time_share'].iloc[0]))} of the time"
    cubes: dict[str, dict[float, int]] = {}
    for fabric in (LIGHT, WIRES):
        known = rows[(rows["fabric"] == fabric) & rows["cubes"].notna()]
        cubes[fabric] = {host_key(float(row["host_availability"])): int(row["cubes"]) for _, row in known.iterrows()}
    keys = [key for key in cubes[LIGHT] if key in cubes[WIRES]]
    if keys:
        light, wires = ([cubes[fabric][key] for key in keys] for fabric in (LIGHT, WIRES))
        where = _hosts_words(keys)
        if light == wires:
            return f"{what} takes {_counts(light)} cubes, reconfigurable or static ({where}): wiring changes nothing."
        return f"{what} takes {_counts(light)} reconfigurable or {_counts(wires)} static cubes ({where})."
    for fabric, other in ((LIGHT, "static"), (WIRES, "reconfigurable")):
        if cubes[fabric]:
            keys, counts = list(cubes[fabric]), list(cubes[fabric].values())
            return (
                f"{what} takes {_counts(counts)} {fabric_words(fabric)} cubes ({_hosts_words(keys)}); "
                f"for {other} ones this run gives no number."
            )
    return f"How many cubes it takes to promise {promise_words(promise)} is not known here: no closed form holds."


def _counts(values: Sequence[int]) -> str:
    return f"{values[0]:,}" if len(set(values)) == 1 else " / ".join(f"{value:,}" for value in values)


def _held_sentence(tables: Tables) -> str:
    """What is held for the share of time at the headline size."""
    chips = headline_chips(tables)
    light, wires = (_series(tables, "guaranteed", fabric, chips) for fabric in (LIGHT, WIRES))
    keys = [key for key in light if key in wires]
    if not keys:
        return ""
    table = table_of(tables, "availability")
    share = float(table.loc[table["form"] == "guaranteed", "time_share"].iloc[0])
    held = form_words("guaranteed", share).removeprefix("held ")
    if all(abs(light[key] - wires[key]) < NOTHING for key in keys):
        return (
            f"In {chips}-chip slices a pod holds {_slashed([light[key] for key in keys])} of its chips {held}, "
            f"reconfigurable or static ({_hosts_words(keys)})."
        )
    return (
        f"In {chips}-chip slices a reconfigurable pod holds {_slashed([light[key] for key in keys])} of its chips "
        f"{held}, a static one {_slashed([wires[key] for key in keys])} ({_hosts_words(keys)})."
    )


def _cliff_sentence(tables: Tables) -> str:
    """From which size on less than half of the pod is expected, static and reconfigurable."""
    table = table_of(tables, "cliff")
    if table.empty:
        return ""
    said = []
    for fabric, name in ((WIRES, "static"), (LIGHT, "reconfigurable")):
        rows = table[table["fabric"] == fabric]
        if rows.empty:
            continue
        sizes = [
            "never" if pd.isna(row["cliff_chips"]) else f"{int(row['cliff_chips'])}"
            for _, row in rows.sort_values("host_availability").iterrows()
        ]
        if set(sizes) == {"never"}:
            said.append(f"at no size of this run for {name} slices")
        else:
            unit = "" if sizes[-1] == "never" else " chips"
            said.append(f"at {sizes[0] if len(set(sizes)) == 1 else ' / '.join(sizes)}{unit} for {name} slices")
    keys = [host_key(host) for host in host_values(table)]
    if said and all(text.startswith("at no size") for text in said):
        return f"At no slice size of this run is less than half of the pod expected ({_hosts_words(keys)})."
    return f"The expected share falls under half of the pod {listed(said)} ({_hosts_words(keys)})." if said else ""


def _small_sentence(tables: Tables) -> str:
    """Whether wiring matters for the smallest slice of whole cubes in the run."""
    table = table_of(tables, "availability")
    sizes = sorted({int(size) for size in table["slice_chips"]}) if len(table) else []
    whole = [size for size in sizes if size >= 64]
    if not whole or whole[0] == headline_chips(tables):
        return ""
    light, wires = (_series(tables, "expected", fabric, whole[0]) for fabric in (LIGHT, WIRES))
    gaps = [light[key] - wires[key] for key in light if key in wires]
    if not gaps:
        return ""
    widest = max(gaps, key=abs)
    if abs(widest) < NOTHING:
        return f"At {whole[0]} chips wiring changes nothing."
    side = "more" if widest > 0 else "less"
    return f"At {whole[0]} chips reconfigurable wiring gives up to {points_words(widest)} {side} than static."


def _ideal_sentence(tables: Tables) -> str:
    """How far optics stay behind an ideal switch that joins any hosts."""
    chips = headline_chips(tables)
    gap = _ideal_gap(tables, chips)
    if gap is None:
        return ""
    if gap < NOTHING:
        text = f"At {chips} chips optics give all that an ideal switch joining any hosts would"
    else:
        text = f"At {chips} chips optics give all but {points_words(gap)} of an ideal switch that joins any hosts"
    table = table_of(tables, "availability")
    gaps = {int(size): _ideal_gap(tables, int(size)) for size in table["slice_chips"].unique()}
    known = {size: other for size, other in gaps.items() if other is not None}
    worst = max(known, key=lambda size: known[size])
    if worst != chips and known[worst] > gap + 0.005:
        return f"{text}; at {worst} chips all but {points_words(known[worst])}, since light joins whole cubes only."
    return f"{text}."


def _ideal_gap(tables: Tables, chips: int) -> float | None:
    """The widest gap, over host availabilities, of expected shares between ideal switch and optics."""
    ideal, light = (_series(tables, "expected", fabric, chips) for fabric in (IDEAL, LIGHT))
    gaps = [ideal[key] - light[key] for key in ideal if key in light]
    return max(gaps) if gaps else None


def _delivered_sentence(tables: Tables) -> str:
    """What detection, recovery and repair leave of the expected share, at the headline size."""
    table = table_of(tables, "availability")
    if table.empty:
        return ""
    sizes = sorted({int(size) for size in table.loc[table["form"] == "delivered", "slice_chips"]})
    if not sizes:
        return ""
    chips = min(sizes, key=lambda size: abs(math.log(size / headline_chips(tables))))
    said, keys = [], []
    for fabric, name in ((LIGHT, "reconfigurable"), (WIRES, "static")):
        delivered = _series(tables, "delivered", fabric, chips)
        expected = _series(tables, "expected", fabric, chips)
        keys = [key for key in delivered if key in expected]
        if keys:
            values = _slashed([delivered[key] for key in keys])
            of = _slashed([expected[key] for key in keys])
            said.append(f"{values} of the pod {name} (of {of} expected)")
    if not said:
        return ""
    return f"With detection, recovery and repair {chips}-chip jobs get {listed(said)} ({_hosts_words(keys)})."


def service_lines(tables: Tables) -> list[str]:
    """For each service: the smallest slice that fits and meets its limits, tokens in time, the state of its queue."""
    sizes, service = table_of(tables, "slice_sizes"), table_of(tables, "service")
    names = [*(sizes["service"] if len(sizes) else ()), *(service["service"] if len(service) else ())]
    lines = []
    for name in dict.fromkeys(str(name) for name in names):
        parts = []
        if len(sizes):
            parts.append(smallest_slice_words(sizes[sizes["service"] == name]))
        if len(service):
            rows = service[service["service"] == name]
            parts += [_in_time_words(rows), queue_words(rows), _simulated_words(rows)]
        lines.append(f"{category_words(name).capitalize()}: {'; '.join(part for part in parts if part)}.")
    return [line for line in lines if not line.endswith(": .")]


def _simulated_words(rows: pd.DataFrame) -> str:
    """How much of the histories was simulated token by token; the rest is weighted."""
    shares = rows[(rows["measure"] == "simulated_share") & (rows["value"] > 0)]["value"]
    return f"{percent(float(shares.iloc[0]))} of the time simulated token by token" if len(shares) else ""


def smallest_slice_words(rows: pd.DataFrame) -> str:
    """The smallest slice that fits and meets the limits of a service, and the smallest that fits."""
    if rows.empty:
        return ""
    rows = rows.sort_values("chips")
    fits = rows[rows["fits"].fillna(False).astype(bool)]
    meets = fits[fits["meets"].fillna(False).astype(bool)]
    if fits.empty:
        return "its model fits none of the slices tried"
    least = f"{fits['shape'].iloc[0]}, {int(fits['chips'].iloc[0]):,} chips"
    if meets.empty:
        return f"no slice tried meets its limits (the smallest that its model fits is {least})"
    best = f"{meets['shape'].iloc[0]}, {int(meets['chips'].iloc[0]):,} chips"
    also = "" if best == least else f" (its model fits from {fits['shape'].iloc[0]} on)"
    return f"the smallest slice that fits and meets its limits is {best}{also}"


def _in_time_words(rows: pd.DataFrame) -> str:
    """Tokens in time, reconfigurable against static, and where reconfigurable does worse."""
    said: list[str] = []
    found: dict[str, dict[float, float]] = {}
    for fabric, name in ((LIGHT, "reconfigurable"), (WIRES, "static")):
        mine = rows[(rows["measure"] == "tokens_in_time") & (rows["fabric"] == fabric)].sort_values("host_availability")
        if len(mine):
            found[fabric] = {
                host_key(float(row["host_availability"])): float(row["value"]) for _, row in mine.iterrows()
            }
            said.append(f"{_slashed(list(found[fabric].values()))} {name}")
    if not said:
        return ""
    keys = list(next(iter(found.values())))
    light, wires = found.get(LIGHT, {}), found.get(WIRES, {})
    worse = [key for key in light if key in wires and light[key] < wires[key] - WORSE]
    where = f", worse than static at {listed([host_words(key) for key in worse if key >= 0])}" if worse else ""
    reason = _crowded_words(rows) if worse else ""
    return f"tokens in time: {', '.join(said)} ({_hosts_words(keys)}){where.removesuffix(' at ')}{reason}"


def _crowded_words(rows: pd.DataFrame) -> str:
    """Why a service may do worse where cubes are joined freely: the services before it do hold their slices there."""
    means = []
    for fabric in (LIGHT, WIRES):
        mine = rows[(rows["measure"] == "replicas_up_mean") & (rows["fabric"] == fabric)]
        if mine.empty:
            return ""
        means.append(" / ".join(f"{value:.1f}" for value in mine.sort_values("host_availability")["value"]))
    return f" (replicas up: {means[0]} against {means[1]}; services before it hold their slices and leave fewer cubes)"


def queue_words(rows: pd.DataFrame) -> str:
    """The state of a service's queue: the worst verdict that any fabric and host availability has.

    Reads measures `queue_overloaded`, `queue_backlogged`, `queue_stable`: shares of the windows with that verdict.
    """
    found = []
    for verdict in VERDICTS:
        mine = rows[(rows["measure"] == f"queue_{verdict}") & (rows["value"] > 0)]
        if len(mine):
            found.append((verdict, mine))
    if not found:
        return ""
    if found[0][0] == "stable":
        return "queue stable"
    said = []
    for verdict, mine in found:
        if verdict != "stable":
            where = [fabric_words(str(fabric)) for fabric in dict.fromkeys(mine["fabric"])]
            said.append(f"queue {verdict} in {_up_to(mine)} of the windows ({listed(where)})")
    return ", ".join(said)


def _up_to(rows: pd.DataFrame) -> str:
    most = float(rows["value"].max())
    share = f"{100 * most:.0f} %" if most >= 0.01 else "under 1 %"
    return f"up to {share}" if len(rows) > 1 else share


def size_sentences(tables: Tables) -> list[str]:
    """Per service: on which slice a token is cheapest, and what the biggest slice buys beside it (limits aside)."""
    if is_absent(tables, "slice_sizes"):
        return []
    table = table_of(tables, "slice_sizes")
    said = []
    for name in dict.fromkeys(str(name) for name in table["service"]):
        rows = table[(table["service"] == name) & table["ttft_p50_s"].gt(0) & table["chip_s_per_token"].gt(0)]
        rows = rows.sort_values("chips")
        if len(rows) < 2:
            continue
        cheap, big = rows.iloc[int(rows["chip_s_per_token"].to_numpy().argmin())], rows.iloc[-1]
        least = f"a token of a busy replica is cheapest on {cheap['shape']}, {int(cheap['chips']):,} chips"
        if int(cheap["chips"]) == int(big["chips"]):
            said.append(f"{category_words(name).capitalize()}: {least}, the biggest slice tried.")
            continue
        sooner = float(cheap["ttft_p50_s"]) / float(big["ttft_p50_s"])
        dearer = float(big["chip_s_per_token"]) / float(cheap["chip_s_per_token"])
        words = bigger_words(sooner, dearer)
        said.append(f"{category_words(name).capitalize()}: {least}; from there to {int(big['chips']):,} chips {words}.")
    return said


def bigger_words(sooner: float, dearer: float) -> str:
    """What a bigger slice buys: `sooner` times less time to the first token, `dearer` times the chip time per token."""
    first = _times(sooner, "sooner", "later")
    facts = f"the first token comes {first}, a token takes {number(dearer)} times the chip time"
    if sooner > 1.02 and dearer > 0.98:
        return f"bigger slices buy time to first token, not cheaper tokens ({facts})"
    if sooner > 1.02:
        return f"bigger slices buy time to first token and cheaper tokens ({facts})"
    if dearer < 0.98:
        return f"bigger slices buy cheaper tokens, not time to first token ({facts})"
    return f"bigger slices buy neither time to first token nor cheaper tokens ({facts})"


def _times(ratio: float, above: str, below: str) -> str:
    """A ratio in words: "1.8 times sooner", "at the same time", "1.2 times later"."""
    if abs(ratio - 1) <= 0.02:
        return "at the same time"
    return f"{number(ratio)} times {above}" if ratio > 1 else f"{number(1 / ratio)} times {below}"


def counted(count: int, noun: str) -> str:
    """A count with its noun ("three warnings", "one warning")."""
    return f"{count_words(count)} {noun}{'' if count == 1 else 's'}"
