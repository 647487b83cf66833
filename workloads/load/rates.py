"""How many requests per second a service is asked for, over weeks: laws of the rate alone, without single requests.

A law is a pure function of time; the tokens of a request take seconds and the rate changes over hours, so the two are
looked at apart (`workloads.autoscaling`).
"""

from __future__ import annotations

import csv
import io
import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from topology.errors import refuse
from topology.units import ClosedShare, PerSecond, PositiveSeconds, Seconds, Unit
from workloads.file_text import number_of, read_log_text

Floats = NDArray[np.float64]
DAY_S = 86_400.0
MOST_ROWS = 1_000_000
Factor = Annotated[float, Unit("1", high=1e6)]


class RateLaw(Protocol):
    """What a scenario can name under `demand:`; `kind` tells laws apart."""

    @property
    def kind(self) -> str:
        """Its name."""
        ...

    def rates_per_s(self, at_s: Floats) -> Floats:
        """Requests per second at these times in seconds from the start of the run (T,)."""
        ...


@dataclass(frozen=True, kw_only=True)
class DiurnalRate:
    """A rate that follows the hour: `mean` times 1 + `swing` cos(2 pi (t - `peak`) / 24 h), on weekends a share of it.

    A run starts on a Monday at 0 h, as jobs have it.
    """

    kind: Literal["diurnal"] = "diurnal"
    mean: PerSecond
    swing: ClosedShare = 0.5
    peak: Seconds = 14 * 3600.0
    weekend: Factor = 1.0

    def __post_init__(self) -> None:
        """Refuse what is no swing, hour or share."""
        if not 0 <= self.swing <= 1:
            raise ValueError(f"swing of {self.swing:g}: write a share between 0 (none) and 1 (nothing at night)")
        if not 0 <= self.peak <= DAY_S:
            raise ValueError(f"a peak at {self.peak:g} s: write an hour of the day, such as `14 h`")
        if not 0 <= self.weekend <= 100:
            raise ValueError(f"weekend of {self.weekend:g}: write a share of a weekday's rate, such as 0.7")

    def rates_per_s(self, at_s: Floats) -> Floats:
        """Requests per second."""
        rates = self.mean * (1.0 + self.swing * np.cos(2.0 * math.pi * (at_s - self.peak) / DAY_S))
        is_weekend = (at_s // DAY_S) % 7 >= 5
        return np.asarray(np.where(is_weekend, self.weekend * rates, rates), dtype=np.float64)


@dataclass(frozen=True, kw_only=True)
class StepRates:
    """A rate for each stretch of length `every`, over and over again: one value, or 24 of a day."""

    kind: Literal["steps"] = "steps"
    rates: tuple[PerSecond, ...]
    every: PositiveSeconds = 3600.0

    def __post_init__(self) -> None:
        """Refuse an empty list, and stretches that are none."""
        if not self.rates:
            raise ValueError("no rates: write at least one, such as `[10 requests/s]`")
        if not self.every >= 1e-3:
            raise ValueError(f"stretches of {self.every:g} s: write at least 1 ms")

    def rates_per_s(self, at_s: Floats) -> Floats:
        """Requests per second."""
        number = np.floor(np.round(at_s / self.every, 9)).astype(np.int64)
        return np.asarray(self.rates, dtype=np.float64)[number % len(self.rates)]


@dataclass(frozen=True, kw_only=True)
class TraceRates:
    """Rates out of a file of your own, times `factor`, over and over again: CSV with `time_s,requests_per_s`.

    A rate holds until the next row; the last one as long as the one before it.
    """

    kind: Literal["trace"] = "trace"
    path: str | None = None
    factor: Factor = 1.0

    def __post_init__(self) -> None:
        """Refuse a factor that is none."""
        if not (math.isfinite(self.factor) and 0 < self.factor <= 1e6):
            raise ValueError(f"factor of {self.factor:g}: write a number above 0, such as 1.5")

    def rates_per_s(self, at_s: Floats) -> Floats:
        """Requests per second; InputError where the file is none."""
        assert self.path is not None, "the scenario was checked"
        times, rates, period_s = read_rates(self.path)
        place = np.searchsorted(times, at_s % period_s, side="right") - 1
        return np.asarray(self.factor * rates[place], dtype=np.float64)


@lru_cache(maxsize=8)
def read_rates(path: str) -> tuple[Floats, Floats, float]:
    """Times (K,) from 0, rates (K,) and the period in seconds; InputError names the line that is wrong."""
    text = read_log_text(path, "a file of your own, CSV with time_s,requests_per_s", "trace of rates")
    rows = list(csv.reader(io.StringIO(text)))
    if not rows or [name.strip() for name in rows[0]] != ["time_s", "requests_per_s"]:
        raise refuse(path, "the first line is not `time_s,requests_per_s`", "write these two names of columns")
    times: list[float] = []
    rates: list[float] = []
    for line, row in enumerate(rows[1:], start=2):
        if not row:
            continue
        where = f"{path}:{line}"
        if len(row) != 2:
            raise refuse(where, f"{len(row)} fields in place of 2", "write `time_s,requests_per_s`")
        try:
            time_s, rate = number_of(row[0], "time_s"), number_of(row[1], "requests_per_s")
        except ValueError as error:
            raise refuse(where, str(error), "write plain numbers") from None
        if not 0 <= rate <= 1e6:
            raise refuse(where, f"a rate of {rate:g} requests/s", "write a number from 0 to 1e6")
        if times and time_s <= times[-1]:
            raise refuse(where, f"{time_s:g} s is not after the row before", "sort the rows by time, each time once")
        times.append(time_s)
        rates.append(rate)
    if len(times) < 2 or len(times) > MOST_ROWS:
        raise refuse(path, f"{len(times):,} rows of rates", f"write 2 to {MOST_ROWS:,}")
    from_start = np.array(times) - times[0]
    return from_start, np.array(rates), float(2 * from_start[-1] - from_start[-2])
