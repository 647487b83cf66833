"""What a run says of its services: smallest slices, tokens in time, queues, and what bigger slices buy."""

from __future__ import annotations

import pandas as pd

from sim.report.context import Tables, is_absent, table_of
from sim.report.hosts import host_key
from sim.report.phrases import LIGHT, WIRES, hosts_words, how_words, slashed, spoken_fabrics
from sim.report.words import category_words, count_words, fabric_words, host_words, listed, number

WORSE = 0.01
"""A service does worse when its tokens in time are lower by more than this."""
VERDICTS = ("overloaded", "backlogged", "stable")


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
    if not len(shares):
        return ""
    rounded = float(f"{100 * float(shares.iloc[0]):.1g}")  # 70 %, not 7e+01 %
    return f"{rounded:g} % of the time simulated token by token"


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
    rows_in_time = rows[rows["measure"] == "tokens_in_time"]
    for fabric in spoken_fabrics(rows_in_time):
        mine = rows_in_time[rows_in_time["fabric"] == fabric].sort_values("host_availability")
        found[fabric] = {host_key(float(row["host_availability"])): float(row["value"]) for _, row in mine.iterrows()}
        said.append(f"{slashed(list(found[fabric].values()))} {how_words(fabric)}")
    if not said:
        return ""
    keys = list(next(iter(found.values())))
    light, wires = found.get(LIGHT, {}), found.get(WIRES, {})
    worse = [key for key in light if key in wires and light[key] < wires[key] - WORSE]
    where = f", worse than static at {listed([host_words(key) for key in worse if key >= 0])}" if worse else ""
    reason = _crowded_words(rows) if worse else ""
    return f"tokens in time: {', '.join(said)} ({hosts_words(keys)}){where.removesuffix(' at ')}{reason}"


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
            said.append(f"queue {verdict} {_up_to(mine)} of the time ({listed(where)})")
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
