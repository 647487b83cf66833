"""Tables of a run made from simple closed forms, in the declared columns, for the tests of what people see."""

from __future__ import annotations

from math import comb

import numpy as np
import pandas as pd

CUBES = 64
SIZES = (64, 128, 256, 512, 1024, 2048, 3072, 4096)
HOSTS = (0.99, 0.995, 0.999)
FABRICS = ("reconfigurable", "static_aligned", "static_contiguous", "any_host")


def _binomial(n: int, p: float) -> np.ndarray:
    return np.array([comb(n, k) * p**k * (1 - p) ** (n - k) for k in range(n + 1)])


def _chances(fabric: str, host: float, chips: int) -> tuple[np.ndarray, int]:
    """Probability of each number of slices that could be formed, and the cubes of one slice."""
    cubes = chips // 64
    up = host**16
    if fabric == "static_aligned":
        return _binomial(CUBES // cubes, up**cubes), cubes
    if fabric == "any_host":
        units, per_slice = _binomial(16 * CUBES, host), 16 * cubes
    else:
        units, per_slice = _binomial(CUBES, up), cubes
    chances = np.zeros(CUBES // cubes + 1)
    np.add.at(chances, np.arange(len(units)) // per_slice, units)
    return chances, cubes


def _value(fabric: str, host: float, chips: int, form: str) -> float:
    if fabric == "static_contiguous":  # between the two, for the looks
        return (2 * _value("static_aligned", host, chips, form) + _value("reconfigurable", host, chips, form)) / 3
    chances, cubes = _chances(fabric, host, chips)
    at_least = chances[::-1].cumsum()[::-1]
    if form == "guaranteed":
        return max(m for m in range(len(chances)) if at_least[m] >= 0.97) * cubes / CUBES
    value = float((chances * np.arange(len(chances))).sum()) * cubes / CUBES
    return value * 0.985 if form == "delivered" else value


def availability(hosts: tuple[float, ...] = HOSTS, sizes: tuple[int, ...] = SIZES) -> pd.DataFrame:
    """Expected and guaranteed for all sizes, delivered for three of them."""
    rows = []
    for fabric in FABRICS:
        for host in hosts:
            for chips in sizes:
                for form in ("expected", "guaranteed", "delivered"):
                    if form == "delivered" and chips not in (64, 1024, 3072):
                        continue
                    value = _value(fabric, host, chips, form)
                    half = 0.0 if form == "guaranteed" else 0.008 * (0.2 + np.sqrt(value * (1 - value)))
                    closed = fabric != "static_contiguous" and form != "delivered"
                    rows.append(
                        {
                            "fabric": fabric,
                            "host_availability": host,
                            "slice_chips": chips,
                            "form": form,
                            "time_share": 0.97 if form == "guaranteed" else np.nan,
                            "value": value,
                            "ci_low": value - half,
                            "ci_high": value + half,
                            "replications": 64,
                            "closed_form": value if closed else np.nan,
                            "agrees": True if closed else pd.NA,
                            "shuffle_low": np.nan,
                            "shuffle_high": np.nan,
                        }
                    )
    return pd.DataFrame(rows).astype({"agrees": "boolean"})


def _cubes(fabric: str, host: float, chips: int, count: int) -> int | None:
    n = chips // 64
    if fabric == "static_contiguous":
        return None if n > 16 else int(1.2 * (_cubes("reconfigurable", host, chips, count) or 0))
    from scipy.stats import binom

    block = host ** (16 * n)
    for total in range(count * n, 400_000, n if fabric == "static_aligned" else 1):
        if fabric == "static_aligned":
            held = binom.sf(count - 1, total // n, block)
        elif fabric == "any_host":
            held = binom.sf(16 * n * count - 1, 16 * total, host)
        else:
            held = binom.sf(n * count - 1, total, host**16)
        if held >= 0.97:
            return total
    return None


def promise(
    hosts: tuple[float, ...] = HOSTS, sizes: tuple[int, ...] = (64, 256, 1024, 3072), first: str = "8x8x16:3"
) -> pd.DataFrame:
    """Cubes for the promise of the scenario, then for three slices of each size, 97 % of the time."""
    rows = []
    for fabric in FABRICS:
        for host in hosts:
            for text, chips in ((first, 1024), *((f"{size}:3", size) for size in sizes)):
                cubes = _cubes(fabric, host, chips, 3)
                rows.append(
                    {
                        "fabric": fabric,
                        "host_availability": host,
                        "slices": text,
                        "time_share": 0.97,
                        "cubes": pd.NA if cubes is None else cubes,
                        "chips": pd.NA if cubes is None else cubes * 64,
                    }
                )
    return pd.DataFrame(rows).astype({"cubes": "Int64", "chips": "Int64"})


def cliff(hosts: tuple[float, ...] = HOSTS) -> pd.DataFrame:
    """The smallest slice whose expected share is under a half."""
    rows = []
    for fabric in FABRICS:
        for host in hosts:
            under = [chips for chips in SIZES if _value(fabric, host, chips, "expected") < 0.5]
            rows.append({"fabric": fabric, "host_availability": host, "cliff_chips": under[0] if under else pd.NA})
    return pd.DataFrame(rows).astype({"cliff_chips": "Int64"})


SERVICES = ("long_documents", "chat")
STAGES = (("detecting", 60), ("evicting", 30), ("reconfiguring", 10), ("preflight", 180), ("restoring", 600))


def failure_story() -> pd.DataFrame:
    """One failure at 120 s: the reconfigurable pod recovers by its stages, the static one waits for repair."""
    rows = []
    for fabric in ("reconfigurable", "static_aligned"):
        stages = ["running"] * 120 + [name for name, length in STAGES for _ in range(length)]
        if fabric == "static_aligned":
            stages = ["running"] * 120 + ["detecting"] * 60 + ["evicting"] * 30 + ["waiting"] * 1590
        stages += ["running"] * (1800 - len(stages))
        for t, stage in enumerate(stages):
            up = 3 if stage == "running" else 2
            rows.append(
                {
                    "fabric": fabric,
                    "service": "long_documents",
                    "t_s": float(t),
                    "tokens_per_s": up * 400 + 60 * np.sin(t / 7),
                    "stage": stage,
                    "replicas_up": up,
                }
            )
    return pd.DataFrame(rows)


LEDGER = {
    "no_replica_up": 2.0,
    "undetected_dead_replica": 9.0,
    "router_queue": 3.0,
    "kv_blocked": 0.4,
    "prefill_compute": 4.0,
    "decode_compute": 2.0,
    "weights": 9.0,
    "own_kv": 3.0,
    "others_kv": 4.0,
    "collectives": 2.5,
    "fixed": 1.0,
    "interference": 2.0,
    "recompute": 1.5,
    "degraded": 0.0,
}


def ledger(hosts: tuple[float, ...] = HOSTS) -> pd.DataFrame:
    """Where the seconds go: few go to failures over all requests, most do for those caught in one."""
    rows = []
    for fabric in FABRICS:
        for host in hosts:
            for service in SERVICES:
                for scope in ("all", "caught"):
                    failing = ("no_replica_up", "undetected_dead_replica", "recompute")
                    scale = 1.0 if service == "long_documents" else 0.2
                    worse = 6.0 if fabric.startswith("static") else 1.0
                    parts = {
                        name: scale * value * ((worse if scope == "caught" else 0.01 * worse) if name in failing else 1)
                        for name, value in LEDGER.items()
                    }
                    rows += [
                        {
                            "fabric": fabric,
                            "host_availability": host,
                            "service": service,
                            "scope": scope,
                            "category": name,
                            "seconds_per_request": value,
                            "share": value / sum(parts.values()),
                        }
                        for name, value in parts.items()
                    ]
    return pd.DataFrame(rows)


def slice_sizes() -> pd.DataFrame:
    """Bigger slices answer sooner and cost more per token."""
    shapes = (("4x4x4", 64), ("4x4x8", 128), ("4x8x8", 256), ("8x8x8", 512), ("8x8x16", 1024), ("8x16x16", 2048))
    rows = []
    for service, base_s, limit_s, least in (("long_documents", 9000.0, 10.0, 128), ("chat", 40.0, 2.0, 64)):
        for shape, chips in shapes:
            fits = chips >= least
            ttft = base_s / chips**1.0 + 0.1
            rows.append(
                {
                    "service": service,
                    "shape": shape,
                    "chips": chips,
                    "fits": fits,
                    "meets": fits and ttft <= limit_s,
                    "ttft_p50_s": ttft / 2 if fits else np.nan,
                    "ttft_p99_s": ttft if fits else np.nan,
                    "tpot_p50_s": 0.04 if fits else np.nan,
                    "capacity_requests_per_s": chips / base_s if fits else np.nan,
                    "requests_per_s_per_1024_chips": 1024 / base_s if fits else np.nan,
                    "chip_s_per_token": 0.05 * (chips / 128) ** 0.3 if fits else np.nan,
                }
            )
    return pd.DataFrame(rows)


def chip_hours(hosts: tuple[float, ...] = HOSTS) -> pd.DataFrame:
    """Useful time follows delivered availability; the rest is down, stranded, recovering, fragmented."""
    rows = []
    for fabric in FABRICS:
        for host in hosts:
            for chips in (64, 1024, 3072):
                useful = _value(fabric, host, chips, "delivered")
                left = 1 - useful
                parts = {"useful": useful, "lost": 0.01 * left, "detecting": 0.01 * left, "evicting": 0.005 * left}
                parts |= {"restoring": 0.03 * left, "down": 1 - host, "stranded": 0.3 * left}
                parts["fragmented"] = max(0.0, 1 - sum(parts.values()))
                rows += [
                    {
                        "fabric": fabric,
                        "host_availability": host,
                        "slice_chips": chips,
                        "use": use,
                        "chip_hours": share * 4096 * 24 * 90,
                        "share": share,
                    }
                    for use, share in parts.items()
                ]
    return pd.DataFrame(rows)


def service(hosts: tuple[float, ...] = HOSTS) -> pd.DataFrame:
    """A few measures of two services."""
    rows = []
    for fabric in FABRICS:
        for host in hosts:
            for name in SERVICES:
                in_time = {"chat": 0.998}.get(name, 0.99 if not fabric.startswith("static") else 0.99 - 30 * (1 - host))
                for measure, unit, value, better in (
                    ("tokens_in_time", "1", in_time, "higher"),
                    ("slo_attainment", "1", in_time + 0.001, "higher"),
                    ("ttft_p99", "s", 4.0 if name == "long_documents" else 1.1, "lower"),
                    ("tokens_per_s", "1/s", 1200.0, "higher"),
                ):
                    rows.append(
                        {
                            "fabric": fabric,
                            "host_availability": host,
                            "service": name,
                            "measure": measure,
                            "unit": unit,
                            "value": value,
                            "ci_low": value * 0.998,
                            "ci_high": value * 1.002,
                            "n": 4,
                            "better": better,
                        }
                    )
    return pd.DataFrame(rows)


def all_tables() -> dict[str, pd.DataFrame]:
    """Every table of a run."""
    makers = (availability, promise, cliff, service, slice_sizes, ledger, chip_hours, failure_story)
    return {make.__name__: make() for make in makers}
