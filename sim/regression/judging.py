"""Has a measure become worse by more than its margin? Verdicts with stated error rates (design: interfaces, section 3).

`worse` is positive where the second run is worse. Same streams: a paired t-test over replications; else Welch's. A
measure *fails* where the hypothesis "not worse by more than the margin" is rejected; Holm's rule keeps the chance of
any false alarm in one check at `FALSE_ALARMS`. It *passes* where "worse by the margin or more" is rejected at
`PASS_ERROR`; else it is inconclusive. What has no replications (a capacity, whole slices held, a closed form) is judged
by its value alone, and only on the same streams.

Sources: S. Holm, "A simple sequentially rejective multiple test procedure", Scand. J. Statist. 6 (1979); tests on a
margin: non-inferiority, e.g. G. Piaggio et al., JAMA 308 (2012).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray
from scipy import special

Floats = NDArray[np.float64]

FALSE_ALARMS = 0.01
"""Chance that a check in which nothing is worse than its margin fails, at most."""
PASS_ERROR = 0.05
"""Chance that one measure that is worse by its margin passes, at most."""
POWER = 0.95
"""Chance with which the shift that a check is said to detect makes it fail."""
DIGITS = 1e-9
"""Values are kept to nine significant digits: differences below that are rounding."""
MOST_REPLICATIONS = 1_000_000


class Verdict(StrEnum):
    """What is said of one measure at one place."""

    PASS = "pass"
    FAIL = "fail"
    INCONCLUSIVE = "inconclusive"
    NEW = "new"
    NOT_JUDGED = "not judged"


class Method(StrEnum):
    """How two values were compared."""

    EQUAL = "equal"
    PAIRED = "paired"
    WELCH = "not paired"
    VALUES = "by value"
    NONE = ""


@dataclass(frozen=True, kw_only=True, eq=False)
class Series:
    """A measure in one run: its `value`, NaN where undefined, and that of each replication (R,), NaN likewise."""

    value: float
    replications: Floats

    @property
    def is_infinite(self) -> bool:
        """Whether any of its values is, so that differences mean nothing."""
        return math.isinf(self.value) or bool(np.isinf(self.replications).any())

    def equals(self, other: Series) -> bool:
        """Whether all values are the same."""
        mine, others = (np.append(each.replications, each.value) for each in (self, other))
        return np.array_equal(mine, others, equal_nan=True)


@dataclass(frozen=True, kw_only=True, eq=False)
class Pair:
    """A measure at one place in two runs, None where a run does not have it; `margin` is in its unit."""

    measure: str
    place: Mapping[str, str]
    unit: str
    better: str
    margin: float
    before: Series | None
    now: Series | None


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """What the replications say: mean and standard error of `worse` with its degrees of freedom, and a p-value.

    `p` is for "not worse by more than the margin", one-sided, before Holm's rule. `n` counts pairs, or the replications
    of the shorter run. NaN where there is nothing to say.
    """

    method: Method
    worse: float = math.nan
    error: float = math.nan
    degrees: float = math.nan
    n: int = 0
    p: float = math.nan

    @property
    def half_width(self) -> float:
        """Half the 95 % interval of `worse`."""
        return float(special.stdtrit(self.degrees, 0.975)) * self.error


@dataclass(frozen=True, kw_only=True)
class Judged:
    """A pair with its verdict. `p` follows Holm's rule; `level` is that at which the least p-value is tested."""

    pair: Pair
    verdict: Verdict
    evidence: Evidence
    p: float
    level: float

    @property
    def more(self) -> int | None:
        """Replications more, in each run, that would decide what is inconclusive; None where no number would."""
        is_open = self.verdict is Verdict.INCONCLUSIVE and not math.isnan(self.p)
        return _more(self.pair, self.evidence, self.level) if is_open else None

    @property
    def detectable(self) -> float:
        """The worsening that makes a check like this one fail with probability `POWER`; NaN where there is no error."""
        return self.pair.margin + detectable_errors(self.evidence.degrees, self.level) * self.evidence.error

    @property
    def is_changed(self) -> bool:
        """Whether the two runs differ here at all."""
        return self.evidence.method is not Method.EQUAL

    @property
    def fails_strictly(self) -> bool:
        """Whether it fails where certainty is asked for: an improvement never does, however uncertain."""
        if self.verdict is Verdict.INCONCLUSIVE:
            return not self.evidence.worse <= 0.0
        return self.verdict is Verdict.FAIL

    @property
    def kind(self) -> str:
        """same, new, gone, improved, worse or changed."""
        before, now = self.pair.before, self.pair.now
        if before is None or now is None:
            return "new" if before is None else "gone"
        if not self.is_changed:
            return "same"
        worse = self.evidence.worse
        if not self.pair.better or math.isnan(worse) or worse == 0.0:
            return "changed"
        return "worse" if worse > 0.0 else "improved"


def overall(rows: Sequence[Judged]) -> Verdict:
    """The verdict of a whole check."""
    found = [row.verdict for row in rows]
    return next((each for each in (Verdict.FAIL, Verdict.INCONCLUSIVE) if each in found), Verdict.PASS)


def judge_pairs(pairs: Sequence[Pair], *, paired: bool) -> list[Judged]:
    """The verdict on every pair, in order; `paired` says that replication k met the same streams in both runs."""
    found = [_evidence(pair, paired) for pair in pairs]
    tested = [index for index, evidence in enumerate(found) if not math.isnan(evidence.p)]
    adjusted = dict(zip(tested, holm([found[index].p for index in tested]), strict=True))
    level = FALSE_ALARMS / max(len(tested), 1)
    judged = []
    for index, (pair, evidence) in enumerate(zip(pairs, found, strict=True)):
        p = adjusted.get(index, math.nan)
        verdict = _verdict(pair, evidence, p, paired)
        judged.append(Judged(pair=pair, verdict=verdict, evidence=evidence, p=p, level=level))
    return judged


def holm(p_values: Sequence[float]) -> list[float]:
    """P-values after Holm's rule: rejecting those up to alpha keeps the chance of any false rejection at alpha."""
    count, running = len(p_values), 0.0
    adjusted = [0.0] * count
    for rank, index in enumerate(sorted(range(count), key=lambda number: p_values[number])):
        running = max(running, min(1.0, (count - rank) * p_values[index]))
        adjusted[index] = running
    return adjusted


def _evidence(pair: Pair, paired: bool) -> Evidence:
    before, now = pair.before, pair.now
    if before is None or now is None:
        return Evidence(method=Method.NONE)
    is_tested = bool(pair.better) and min(len(before.replications), len(now.replications)) > 1
    if before.equals(now):
        return Evidence(method=Method.EQUAL, worse=0.0, p=1.0 if is_tested else math.nan)
    sign = -1.0 if pair.better == "lower" else 1.0
    if is_tested and not any(each.is_infinite for each in (before, now)):
        tell = _paired_evidence if paired else _welch_evidence
        evidence = tell(sign * before.replications, sign * now.replications, pair.margin)
        if evidence is not None:
            return evidence
    if before.value == now.value or (math.isnan(before.value) and math.isnan(now.value)):
        return Evidence(method=Method.VALUES, worse=0.0)
    return Evidence(method=Method.VALUES, worse=sign * (before.value - now.value))


def _paired_evidence(before: Floats, now: Floats, margin: float) -> Evidence | None:
    """Student's t-test on the differences of replications that both runs have; None with less than two of them."""
    n = min(len(before), len(now))
    both = np.isfinite(before[:n]) & np.isfinite(now[:n])
    before, now = before[:n][both], now[:n][both]
    n = len(before)
    if n < 2:
        return None
    worse = before - now
    mean, error = float(worse.mean()), float(worse.std(ddof=1)) / math.sqrt(n)
    if np.ptp(worse) <= DIGITS * max(np.abs(before).max(), np.abs(now).max()):
        return Evidence(method=Method.PAIRED, worse=mean, error=0.0, n=n, p=0.0 if mean > margin else 1.0)
    p = float(special.stdtr(n - 1, (margin - mean) / error))
    return Evidence(method=Method.PAIRED, worse=mean, error=error, degrees=n - 1.0, n=n, p=p)


def _welch_evidence(before: Floats, now: Floats, margin: float) -> Evidence | None:
    """Welch's t-test on the replications of two runs; None with less than two of either.

    Without any variation the p-value is that of a permutation of the replications: 1 over the number of ways.
    """
    before, now = before[np.isfinite(before)], now[np.isfinite(now)]
    n = min(len(before), len(now))
    if n < 2:
        return None
    worse = float(before.mean() - now.mean())
    squares = [float(each.var(ddof=1)) / len(each) if np.ptp(each) > 0.0 else 0.0 for each in (before, now)]
    error = math.sqrt(sum(squares))
    if error == 0.0:
        p = 1.0 / math.comb(len(before) + len(now), len(now)) if worse > margin else 1.0
        return Evidence(method=Method.WELCH, worse=worse, error=0.0, n=n, p=p)
    degrees = error**4 / sum(square**2 / (len(each) - 1) for square, each in zip(squares, (before, now), strict=True))
    p = float(special.stdtr(degrees, (margin - worse) / error))
    return Evidence(method=Method.WELCH, worse=worse, error=error, degrees=degrees, n=n, p=p)


def _verdict(pair: Pair, evidence: Evidence, p: float, paired: bool) -> Verdict:
    if pair.before is None:
        return Verdict.NEW
    if not pair.better:
        return Verdict.NOT_JUDGED
    if pair.now is None:
        return Verdict.FAIL
    if evidence.method is Method.EQUAL:
        return Verdict.PASS
    if evidence.method is Method.VALUES:
        slack = DIGITS * abs(pair.before.value) if math.isfinite(pair.before.value) else 0.0
        if evidence.worse <= pair.margin + slack:
            return Verdict.PASS
        return Verdict.FAIL if paired and not math.isnan(evidence.worse) else Verdict.INCONCLUSIVE
    if p <= FALSE_ALARMS:
        return Verdict.FAIL
    return Verdict.PASS if evidence.p >= 1.0 - PASS_ERROR else Verdict.INCONCLUSIVE


def detectable_errors(degrees: float, level: float) -> float:
    """Standard errors beyond the margin at which a test at `level` fails with probability `POWER` (noncentral t)."""
    if math.isnan(degrees):
        return math.nan
    critical = float(special.stdtrit(degrees, 1.0 - level))
    return float(special.nctdtrinc(degrees, 1.0 - POWER, critical))


def _more(pair: Pair, evidence: Evidence, level: float) -> int | None:
    """Replications more, in each run, with which values like these would be decided; None where no number would."""
    if evidence.error == 0.0:
        wanted = next(n for n in range(2, MOST_REPLICATIONS) if 1.0 / math.comb(2 * n, n) <= level)
        return max(1, wanted - evidence.n)
    distance = abs(pair.margin - evidence.worse)
    error = level if evidence.worse > pair.margin else PASS_ERROR
    per_replication = 1 if evidence.method is Method.PAIRED else 2
    deviation = evidence.error * math.sqrt(evidence.n)

    def is_enough(n: int) -> bool:
        quantile = float(special.stdtrit(per_replication * (n - 1), 1.0 - error))
        return quantile * deviation / math.sqrt(n) <= distance

    enough = next((n for n in _growing(evidence.n + 1) if is_enough(n)), None)
    if enough is None:
        return None
    low = evidence.n
    while enough - low > 1:
        middle = (low + enough) // 2
        low, enough = (low, middle) if is_enough(middle) else (middle, enough)
    return enough - evidence.n


def _growing(first: int) -> list[int]:
    """Numbers of replications, each twice the last."""
    return [first << step for step in range(64) if first << step <= MOST_REPLICATIONS]
