"""What a failure log holds: availability, time between failures, repairs, bursts, repeat offenders, fits.

Behind `opticube log`. Times in hours, since people think of repairs in hours.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

from sim.failure_logs import FailureLog
from sim.histories import US_PER_S
from sim.law_fits import Fit, fitted_laws
from sim.lifetimes import Gamma, LifeLaw, Lognormal, Weibull

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

US_PER_H = 3600 * US_PER_S
GROUPS = (2, 4, 8, 16)
QUANTILES = (1, 10, 25, 50, 75, 90, 95, 99)


@dataclass(frozen=True, kw_only=True)
class Burst:
    """Groups of `size` components: how often all are up. In the log, for random and for consecutive groups (None where
    components have no numbers), and if components of that availability failed independently.
    """

    size: int
    random_all_up: float
    consecutive_all_up: float | None
    independent_all_up: float


@dataclass(frozen=True, kw_only=True)
class Offender:
    """A component that failed often."""

    name: str
    outages: int
    down_h: float


@dataclass(frozen=True, kw_only=True)
class LogAnalysis:
    """Everything `opticube log` says of one kind of component in a file.

    `mtbf_h`: component-hours of the window per outage (one component's time between failures). `system_mtbf_h`: the
    same for the whole population. `gap_*`: times between consecutive starts anywhere. `repair_quantiles_h`: of outages
    that ended, by linear interpolation. `dispersion`: variance over mean of the number of outages per component, 1 if
    all fail alike and independently.
    """

    path: str
    format: str
    kind: str
    components: int
    components_known: bool
    components_with_outages: int
    window_from: str
    window_to: str
    window_h: float
    outages: int
    open_outages: int
    zero_length_outages: int
    overlapping_outages: int
    availability: float
    mean_down: float
    mtbf_h: float
    system_mtbf_h: float
    gap_mean_h: float
    gap_median_h: float
    gap_cv: float
    simultaneous_starts: int
    repair_mean_h: float
    repair_cv: float
    repair_quantiles_h: dict[str, float]
    bursts: tuple[Burst, ...]
    most_outages_on_one: int
    dispersion: float
    offenders: tuple[Offender, ...]
    causes: dict[str, int]
    life_fits: tuple[Fit, ...]
    repair_fits: tuple[Fit, ...]
    failures_yaml: str

    def as_dict(self) -> dict[str, Any]:
        """Plain values for JSON: numbers that are not finite become None, fits their parameters in hours."""
        plain = asdict(self)
        for key in ("life_fits", "repair_fits"):
            plain[key] = [fit_as_dict(fit) for fit in getattr(self, key)]
        return {key: _plain(value) for key, value in plain.items()}


def _plain(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: _plain(entry) for key, entry in value.items()}
    return [_plain(entry) for entry in value] if isinstance(value, list | tuple) else value


def fit_as_dict(fit: Fit) -> dict[str, Any]:
    """A fit as plain values: kind, mean_h, its shape or coefficient of variation, log likelihood, AIC, counts."""
    shape = {name: getattr(fit.law, name) for name in ("shape", "cv") if hasattr(fit.law, name)}
    return {
        "kind": fit.law.kind,
        "mean_h": fit.law.mean_s / 3600.0,
        **shape,
        "log_likelihood": fit.log_likelihood,
        "aic": fit.aic,
        "n": fit.n,
        "cut": fit.cut,
    }


@dataclass(frozen=True, kw_only=True)
class _Stretches:
    """Times down of every component with overlaps merged, within the window, sorted by component, then start."""

    component: Ints
    start_us: Ints
    end_us: Ints
    ended: NDArray[np.bool_]
    overlaps: int


def _stretches(log: FailureLog) -> _Stretches:
    order = np.lexsort((log.end_us, log.start_us, log.component))
    rows: list[list[int]] = []
    overlaps = 0
    for i in order.tolist():
        component, start, end = int(log.component[i]), max(0, int(log.start_us[i])), int(log.end_us[i])
        ended = int(not log.open_end[i] and end <= log.window_us)
        if rows and rows[-1][0] == component and start < rows[-1][2]:
            overlaps += 1
            if end > rows[-1][2]:
                rows[-1][2], rows[-1][3] = end, ended
            continue
        rows.append([component, start, end, ended])
    table = np.array(rows, dtype=np.int64).reshape(-1, 4)
    return _Stretches(
        component=table[:, 0],
        start_us=table[:, 1],
        end_us=np.minimum(table[:, 2], log.window_us),
        ended=table[:, 3] > 0,
        overlaps=overlaps,
    )


def _lives(log: FailureLog, down: _Stretches) -> tuple[Floats, Floats]:
    """Times up in seconds: complete ones, and those cut by the end. The first counts as begun with the window."""
    whole: list[int] = []
    cut: list[int] = [log.window_us] * (log.components - len(np.unique(down.component)))
    last: dict[int, tuple[int, bool]] = {}
    for component, start, end, ended in zip(
        down.component.tolist(), down.start_us.tolist(), down.end_us.tolist(), down.ended.tolist(), strict=True
    ):
        since = last.get(component, (0, True))[0]
        if component in last or start > 0:
            whole.append(start - since)
        last[component] = (end, ended)
    cut += [log.window_us - end for end, ended in last.values() if ended and end < log.window_us]
    return np.array(whole, dtype=np.float64) / US_PER_S, np.array(cut, dtype=np.float64) / US_PER_S


def _time_by_number_down(down: _Stretches, window_us: int, components: int) -> Ints:
    """Time with d components down, d = 0 .. N."""
    times = np.concatenate((down.start_us, down.end_us, [window_us]))
    steps = np.concatenate((np.ones(len(down.start_us)), -np.ones(len(down.end_us)), [0])).astype(np.int64)
    order = np.argsort(times, kind="stable")
    number = np.concatenate(([0], np.cumsum(steps[order])[:-1]))
    spent = np.zeros(components + 1, dtype=np.int64)
    length_us = np.diff(times[order], prepend=0)
    lasts = length_us > 0  # within one instant outages that follow each other may add up to more than there are
    np.add.at(spent, number[lasts], length_us[lasts])
    return spent


def random_groups_all_up(spent_us: Ints, size: int) -> float:
    """Share of time that a random group of `size` of N components is all up, from the time at each number down.

    Given d down the odds are C(N - d, size) / C(N, size); nothing is sampled.
    """
    components = len(spent_us) - 1
    up = components - np.arange(components + 1)
    if size > components:
        return math.nan
    logs = special.gammaln(up + 1) - special.gammaln(np.maximum(up - size, 0) + 1)
    odds = np.where(up >= size, np.exp(logs - logs[0]), 0.0)
    return float(np.dot(odds, spent_us) / spent_us.sum())


def _consecutive_groups_all_up(log: FailureLog, down: _Stretches, size: int) -> float | None:
    """The same for groups of consecutive numbers (0 to 15, 16 to 31, ...); None where names are no numbers."""
    if not all(name.isascii() and name.isdigit() and int(name) < log.components for name in log.names):
        return None
    groups = log.components // size
    if groups == 0:
        return None
    group = np.array([int(name) for name in log.names], dtype=np.int64)[down.component] // size
    lost_us = 0
    for number in range(groups):
        mine = group == number
        reached = 0
        for start, end in sorted(zip(down.start_us[mine].tolist(), down.end_us[mine].tolist(), strict=True)):
            lost_us += max(0, end - max(start, reached))
            reached = max(reached, end)
    return 1.0 - lost_us / (groups * log.window_us)


def _offenders(log: FailureLog, down: _Stretches, counts: Ints) -> tuple[Offender, ...]:
    lengths_us = np.zeros(len(log.names), dtype=np.int64)
    np.add.at(lengths_us, down.component, down.end_us - down.start_us)
    worst = np.lexsort((np.arange(len(counts)), -counts))[:10]
    return tuple(
        Offender(name=log.names[i], outages=int(counts[i]), down_h=float(lengths_us[i] / US_PER_H))
        for i in worst.tolist()
        if counts[i] > 1
    )


def _causes(log: FailureLog) -> dict[str, int]:
    counts: dict[str, int] = {}
    for cause in log.causes:
        name = cause[0] if cause else "not given"
        counts[name] = counts.get(name, 0) + 1
    return dict(sorted(counts.items(), key=lambda entry: (-entry[1], entry[0])))


def _law_yaml(law: LifeLaw) -> str:
    """A law without its mean, which the failure rate and the availability give."""
    if isinstance(law, Weibull | Gamma):
        return f"{{kind: {law.kind}, shape: {law.shape:.4g}}}"
    return f"{{kind: lognormal, cv: {law.cv:.4g}}}" if isinstance(law, Lognormal) else "{kind: exponential}"


def failures_block(
    kind: str, availability: float, up_h_per_failure: float, life: LifeLaw | None, repair: LifeLaw | None
) -> str:
    """A `failures:` section of independent components with the log's failure rate, availability and best fits."""
    if availability == 1.0:
        return f"failures: {{}}   # no time down in the log: a {kind} never fails\n"
    if not (0.0 < availability < 1.0 and math.isfinite(up_h_per_failure) and up_h_per_failure > 0.0):
        return f"failures: {{}}   # no {kind} fails within the window, or none is ever up: no rate can be told\n"
    lines = ["failures:", f"  {kind}:"]
    lines += [f"    failure_rate: {100.0 * 24.0 / up_h_per_failure:.6g} %/day   # per component in service"]
    lines += [f"    availability: {100.0 * availability:.8g} %"]
    lines += [f"    life: {_law_yaml(life)}"] if life is not None else []
    lines += [f"    repair: {_law_yaml(repair)}"] if repair is not None else []
    return "\n".join(lines) + "\n"


def _cv(values: Floats) -> float:
    return float(np.std(values, ddof=1) / np.mean(values)) if len(values) > 1 and np.mean(values) > 0.0 else math.nan


def _mean(values: Floats) -> float:
    return float(np.mean(values)) if len(values) else math.nan


def analysis_of(log: FailureLog) -> LogAnalysis:
    """Analyse a log. Starts before the window are counted as time down, not as outages."""
    down = _stretches(log)
    starts = np.sort(log.start_us[log.start_us >= 0])
    began = log.start_us >= 0
    outages, window_h = len(starts), log.window_us / US_PER_H
    component_h = log.components * window_h
    down_h = float((down.end_us - down.start_us).sum() / US_PER_H)
    availability = 1.0 - down_h / component_h
    spent = _time_by_number_down(down, log.window_us, log.components)
    gaps_h = np.diff(starts) / US_PER_H
    repairs_h = (log.end_us - log.start_us)[began & ~log.open_end] / US_PER_H
    open_h = (log.end_us - log.start_us)[began & log.open_end] / US_PER_H
    counts = np.bincount(log.component[began], minlength=len(log.names)).astype(np.int64)
    every = np.concatenate((counts, np.zeros(log.components - len(log.names), dtype=np.int64)))
    life_fits, repair_fits = fitted_laws(*_lives(log, down)), fitted_laws(repairs_h * 3600.0, open_h * 3600.0)
    levels = {f"p{q}": float(np.percentile(repairs_h, q)) for q in QUANTILES} if len(repairs_h) else {}
    ends = {"min": float(repairs_h.min()), "max": float(repairs_h.max())} if len(repairs_h) else {}
    mtbf_h = component_h / outages if outages else math.nan
    up_h = availability * component_h / outages if outages else math.nan
    return LogAnalysis(
        path=log.path,
        format=str(log.format),
        kind=str(log.kind),
        components=log.components,
        components_known=log.components_known,
        components_with_outages=int(np.count_nonzero(counts)),
        window_from=log.instant_text(0),
        window_to=log.instant_text(log.window_us),
        window_h=window_h,
        outages=outages,
        open_outages=int(np.count_nonzero(log.open_end)),
        zero_length_outages=int(np.count_nonzero(log.end_us == log.start_us)),
        overlapping_outages=down.overlaps,
        availability=availability,
        mean_down=down_h / window_h,
        mtbf_h=mtbf_h,
        system_mtbf_h=window_h / outages if outages else math.nan,
        gap_mean_h=_mean(gaps_h),
        gap_median_h=float(np.median(gaps_h)) if len(gaps_h) else math.nan,
        gap_cv=_cv(gaps_h),
        simultaneous_starts=int(np.count_nonzero(gaps_h == 0.0)),
        repair_mean_h=_mean(repairs_h),
        repair_cv=_cv(repairs_h),
        repair_quantiles_h={**levels, **ends},
        bursts=tuple(
            Burst(
                size=size,
                random_all_up=random_groups_all_up(spent, size),
                consecutive_all_up=_consecutive_groups_all_up(log, down, size),
                independent_all_up=availability**size,
            )
            for size in GROUPS
            if size <= log.components
        ),
        most_outages_on_one=int(counts.max(initial=0)),
        dispersion=float(np.var(every, ddof=1) / np.mean(every)) if outages and len(every) > 1 else math.nan,
        offenders=_offenders(log, down, counts),
        causes=_causes(log),
        life_fits=life_fits,
        repair_fits=repair_fits,
        failures_yaml=failures_block(
            str(log.kind),
            availability,
            up_h,
            life_fits[0].law if life_fits else None,
            repair_fits[0].law if repair_fits else None,
        ),
    )
