"""Sentences about single tokens of a service."""

from __future__ import annotations

import pandas as pd

from sim.report.context import Tables, table_of
from sim.report.words import bytes_words, category_words, listed, number, percent, seconds

S_PER_NS = 1e-9
LEVEL_WORDS = {
    "sm": "SM",
    "l2": "L2",
    "vmem": "VMEM",
    "cmem": "CMEM",
    "hbm": "HBM",
    "ici": "ICI",
    "nvlink": "NVLink",
    "network": "network",
    "host_link": "host (PCIe)",
}
KIND_WORDS = {
    "weights": "weights",
    "kv_read": "KV read",
    "kv_written": "KV written",
    "activations": "activations",
    "kv_moved": "KV moved",
}


def levels_of(rows: pd.DataFrame) -> list[str]:
    """Levels of a table of traffic, nearest to the arithmetic first; links without any traffic are left out."""
    moved = rows.groupby("level", sort=False)["bytes_per_token"].sum(min_count=1)
    return [str(level) for level, value in moved.items() if value != 0.0]


def short_seconds(value: float) -> str:
    """A time with the unit that suits it, down to picoseconds: "26.3 ps", "78.7 µs", "16.6 ms"."""
    for size, unit in ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns")):
        if value >= 0.9995 * size:
            return f"{number(value / size)} {unit}"
    return f"{number(value / 1e-12)} ps"


def traffic_sentences(tables: Tables) -> list[str]:
    """Of each service what a token moves through memory, and which level is busiest."""
    table = table_of(tables, "traffic")
    said = []
    for service, rows in table.groupby("service", sort=False):
        of_hbm = rows[rows["level"] == "hbm"].set_index("kind")["bytes_per_token"]
        top = [f"{KIND_WORDS[str(kind)]} {bytes_words(float(value))}" for kind, value in of_hbm.nlargest(3).items()]
        busy = rows.groupby("level", sort=False)["busy_share"].sum(min_count=1).dropna()
        level = str(busy.idxmax())
        moved = bytes_words(float(of_hbm.sum()))
        said.append(
            f"{category_words(str(service)).capitalize()}: a token moves {moved} through HBM ({listed(top)}); of the "
            f"levels whose rate is known {LEVEL_WORDS.get(level, level)} is busiest: at its full rate "
            f"{percent(float(busy.max()), 1)} of the time that passes take."
        )
    return said


def floor_sentences(tables: Tables) -> list[str]:
    """Of each service the slice with the fastest step, and what of it no number of chips takes away."""
    table = table_of(tables, "token_floor")
    said = []
    for service, rows in table.groupby("service", sort=False):
        usable = rows[rows["fits"]] if rows["fits"].any() else rows
        whole = usable.groupby("chips")[["seconds_per_token", "floor_s"]].sum()
        place = int(whole["seconds_per_token"].to_numpy().argmin())
        best = int(whole.index.to_numpy()[place])
        time_s, floor_s = (float(value) for value in whole.to_numpy()[place])
        parts = rows[(rows["chips"] == best) & (rows["floor_s"] > 0)].set_index("part")["floor_s"].nlargest(2)
        made_of = listed([f"{category_words(str(part))} {seconds(float(value))}" for part, value in parts.items()])
        said.append(
            f"{category_words(str(service)).capitalize()}: the next token comes soonest on {best:,} chips, after "
            f"{seconds(time_s)}; {seconds(floor_s)} of it can not be made parallel ({made_of})."
        )
    return said


def traffic_alt(tables: Tables) -> str:
    """The alternative text of the picture of traffic by level."""
    return (
        "Horizontal bars on log scales, a group per level of memory from the arithmetic down: bytes per token by kind, "
        f"and seconds per token at the full rate. {' '.join(traffic_sentences(tables))} All values are in the table."
    )


def floor_alt(tables: Tables) -> str:
    """The alternative text of the picture of the time per token over chips."""
    return (
        "Line charts of the milliseconds per token over the chips of a replica, in all and by part, log scales; what "
        f"no number of chips takes away is shaded. {' '.join(floor_sentences(tables))} All values are in the table."
    )


def life_sentences(tables: Tables) -> list[str]:
    """Of each service the request that was followed: first token, gaps by reason, and the longest of them."""
    table = table_of(tables, "request_life")
    return [_life_sentence(service, rows) for service, rows in table.groupby("service", sort=False)]


def _life_sentence(service: object, rows: pd.DataFrame) -> str:
    first = rows.iloc[0]
    name = (
        f"Request {int(first['request']):,} of {category_words(str(service))}, with the longest gap of those recorded"
    )
    begin = f"first token after {seconds(float(first['at_ns']) * S_PER_NS)} ({first['reason']})"
    later = rows[rows["token"].notna() & (rows["token"] > 1)]
    if later.empty:
        return f"{name}: {begin}, no gaps."
    gaps = [
        f"{len(mine):,} by {reason}, {seconds(float(mine['gap_ns'].mean()) * S_PER_NS)} on average"
        for reason, mine in later.groupby("reason", sort=False)
    ]
    worst = later.iloc[int(later["gap_ns"].to_numpy().argmax())]
    longest = f"the longest, {seconds(float(worst['gap_ns']) * S_PER_NS)}, before token {int(worst['token']):,}"
    return f"{name}: {begin}; gaps: {listed(gaps)}; {longest} ({worst['reason']})."


def life_alt(tables: Tables) -> str:
    """The alternative text of the picture of a request's life."""
    first = next(iter(life_sentences(tables)), "")
    return (
        "Above, the number of tokens sent over time, the time before the first one shaded by cause; below, a column "
        f"per later token as high as the gap before it, stacked by cause. {first}"
    )
