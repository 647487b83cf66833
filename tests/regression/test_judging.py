"""Verdicts with stated error rates: false alarms and power by simulation on drawn replications, rules by hand."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from sim.regression.judging import (
    FALSE_ALARMS,
    PASS_ERROR,
    POWER,
    Judged,
    Method,
    Pair,
    Series,
    Verdict,
    detectable_errors,
    holm,
    judge_pairs,
    overall,
)
from sim.regression.wording import detectable_text, line_of

MARGIN = 0.005
MEASURES = 10
CHECKS = 600
MOST_FALSE = int(stats.binom.ppf(0.999, CHECKS, FALSE_ALARMS))
"""False alarms in so many checks that a rate of 1 % exceeds once in a thousand tests: 15 of 600."""


def series(values: Sequence[float] | np.ndarray, value: float | None = None) -> Series:
    """Replications with their mean."""
    own = np.asarray(values, dtype=np.float64)
    return Series(value=float(own.mean()) if value is None else value, replications=own)


def pair(before: Series | None, now: Series | None, *, better: str = "higher", margin: float = MARGIN) -> Pair:
    """A share at one place."""
    place = {"fabric": "reconfigurable"}
    return Pair(
        measure="expected", place=place, unit="1", better=better, margin=margin, before=before, now=now
    )  # fmt: skip


def one(before: Series | None, now: Series | None, *, paired: bool = True, better: str = "higher") -> Judged:
    """The verdict on one pair alone."""
    return judge_pairs([pair(before, now, better=better)], paired=paired)[0]


def simulated(rng: np.random.Generator, law: str, shift: float, n: int, deviation: float, *, paired: bool) -> Verdict:
    """The verdict of a check of `MEASURES` measures, each worse by `shift`; measures of one replication go together.

    Unpaired runs have replications of their own; paired ones share all but `deviation` of the differences.
    """

    def noise() -> np.ndarray:
        size = (MEASURES, n)
        if law == "skewed":
            return (rng.exponential(size=size) - 1.0) * deviation
        if law == "counts":
            return (rng.binomial(20, 0.1, size=size) - 2.0) / math.sqrt(1.8) * deviation
        together = rng.normal(size=n)
        return (0.6 * together + 0.8 * rng.normal(size=size)) * deviation

    history = rng.normal(0.8, 0.05, size=(MEASURES, n)) if paired else np.full((MEASURES, n), 0.8)
    part = 1.0 / math.sqrt(2.0) if paired else 1.0
    before, now = history + part * noise(), history + part * noise() - shift
    return overall(judge_pairs([pair(series(a), series(b)) for a, b in zip(before, now, strict=True)], paired=paired))


@pytest.mark.parametrize("paired", [True, False])
@pytest.mark.parametrize(("law", "shift"), [("normal", MARGIN), ("normal", 0.0), ("skewed", 0.0), ("counts", 0.0)])
def test_at_most_one_percent_of_checks_alarm_falsely(law: str, shift: float, paired: bool) -> None:
    """Goal: at most 1 % false alarms per check, all measures together. Method: 600 simulated checks of ten measures
    with eight replications, without a change for normal, skewed and discrete values and, the worst case that counts as
    no alarm, with all of them worse by exactly their margin; a rate of 1 % exceeds 15 once in a thousand."""
    rng = np.random.default_rng([1, paired, len(law)])
    verdicts = [simulated(rng, law, shift, 8, 0.01, paired=paired) for _ in range(CHECKS)]
    assert verdicts.count(Verdict.FAIL) <= MOST_FALSE == 15


def test_a_shift_of_one_point_is_found_when_paired() -> None:
    """Goal: 95 % power for a shift of one point when paired. Method: one measure of ten worse by a point (margin half a
    point), 16 replications whose differences vary by 0.25 points: at least 95 % of 400 checks fail. Unpaired, with
    histories that vary by 5 points, hardly any do."""
    rng = np.random.default_rng(7)

    def check(*, paired: bool) -> Verdict:
        history = rng.normal(0.8, 0.05, size=(MEASURES, 16))
        now = history if paired else rng.normal(0.8, 0.05, size=(MEASURES, 16))
        now = now + rng.normal(0.0, 0.0025, size=history.shape)
        now[3] -= 0.01
        rows = [pair(series(a), series(b)) for a, b in zip(history, now, strict=True)]
        return overall(judge_pairs(rows, paired=paired))

    paired = [check(paired=True) for _ in range(400)]
    assert paired.count(Verdict.FAIL) >= 0.95 * 400
    alone = [check(paired=False) for _ in range(100)]
    assert alone.count(Verdict.FAIL) <= 5


@pytest.mark.parametrize("paired", [True, False])
def test_what_is_worse_by_its_margin_seldom_passes(paired: bool) -> None:
    """Goal: `pass` means something. Method: a measure that is worse by exactly its margin passes in at most 5 % of
    1,000 checks (a rate of 5 % exceeds 73 once in a thousand tests)."""
    rng = np.random.default_rng(3)
    found = []
    for _ in range(1_000):
        before, noise = rng.normal(0.8, 0.01, size=12), rng.normal(0.0, 0.01, size=12)
        now = before + noise - MARGIN if paired else 0.8 + noise - MARGIN
        found.append(one(series(before), series(now), paired=paired).verdict)
    assert found.count(Verdict.PASS) <= int(stats.binom.ppf(0.999, 1_000, PASS_ERROR)) == 73


def test_the_detectable_shift_is_detected() -> None:
    """Goal: the shift that a check is said to detect is right. Method: the power of the noncentral t (scipy's
    distribution, a second route) at that shift is 95 %; a simulated check at it fails in 95 +- 3 % of 1,000 runs."""
    for degrees, level in ((7, 0.001), (15, 0.01), (63, 0.0001)):
        errors = detectable_errors(degrees, level)
        critical = stats.t.ppf(1.0 - level, degrees)
        assert stats.nct.sf(critical, degrees, errors) == pytest.approx(POWER, abs=1e-6)
    rng = np.random.default_rng(5)
    shift = MARGIN + detectable_errors(15, FALSE_ALARMS) * 0.01 / 4.0
    before = np.full((1_000, 16), 0.8)
    now = before - shift + rng.normal(0.0, 0.01, size=before.shape)
    found = [one(series(a), series(b)).verdict for a, b in zip(before, now, strict=True)]
    assert found.count(Verdict.FAIL) / 1_000 == pytest.approx(POWER, abs=0.03)


@settings(deadline=None, max_examples=60)
@given(st.lists(st.floats(0.0, 1.0), min_size=1, max_size=6), st.floats(0.001, 0.999))
def test_holm_is_the_closure_of_bonferroni(p_values: list[float], level: float) -> None:
    """Goal: Holm's rule is right. Method: a hypothesis is rejected exactly when every set of hypotheses that holds it
    is rejected by Bonferroni (closed testing, the definition that makes it safe)."""
    count = len(p_values)
    sets = [group for size in range(1, count + 1) for group in itertools.combinations(range(count), size)]
    for index, adjusted in enumerate(holm(p_values)):
        closed = all(min(p_values[k] for k in group) * len(group) <= level for group in sets if index in group)
        assert (adjusted <= level) == closed or math.isclose(adjusted, level)


def test_the_tests_are_those_of_scipy() -> None:
    """Goal: p-values and intervals are textbook ones. Method: a shifted paired and Welch test written out by hand."""
    rng = np.random.default_rng(2)
    before, now = rng.normal(0.8, 0.02, size=10), rng.normal(0.79, 0.03, size=7)
    paired = one(series(before[:7]), series(now))
    worse = before[:7] - now
    t = (worse.mean() - MARGIN) / (worse.std(ddof=1) / math.sqrt(7))
    assert paired.evidence.p == pytest.approx(stats.t.sf(t, 6))
    low, high = stats.ttest_1samp(worse, 0.0).confidence_interval(0.95)
    assert paired.evidence.half_width == pytest.approx((high - low) / 2)
    welch = one(series(before), series(now), paired=False)
    parts = before.var(ddof=1) / 10, now.var(ddof=1) / 7
    degrees = sum(parts) ** 2 / (parts[0] ** 2 / 9 + parts[1] ** 2 / 6)
    t = (before.mean() - now.mean() - MARGIN) / math.sqrt(sum(parts))
    assert welch.evidence.p == pytest.approx(stats.t.sf(t, degrees))
    assert welch.evidence.degrees == pytest.approx(degrees)
    low, high = stats.ttest_ind(before, now, equal_var=False).confidence_interval(0.95)
    assert welch.evidence.half_width == pytest.approx((high - low) / 2)
    assert welch.evidence.n == 7


def test_more_replications_are_enough_and_no_more() -> None:
    """Goal: the number of replications that an inconclusive measure needs is the least one. Method: an unclear value;
    the same spread with so many replications more decides it, with one less it does not."""
    spread = np.array([-0.02, 0.02, -0.01, 0.01, 0.03, -0.03, 0.0, 0.0])
    row = one(series(np.full(8, 0.8)), series(0.8 + spread))
    assert row.verdict is Verdict.INCONCLUSIVE
    assert row.more is not None
    deviation = float(spread.std(ddof=1))
    enough = [stats.t.ppf(1 - PASS_ERROR, n - 1) * deviation / math.sqrt(n) <= MARGIN for n in range(2, 500)]
    assert row.more + 8 == 2 + enough.index(True)
    assert f"about {row.more} replications more would tell" in line_of(row)
    close = one(series(np.full(8, 0.8)), series(0.8 + spread - MARGIN))
    assert (close.verdict, close.more) == (Verdict.INCONCLUSIVE, None)
    assert "too close to its margin" in line_of(close)


def test_without_variation() -> None:
    """Goal: values that do not vary are no trap. Method: a constant shift on the same streams is certain; between other
    streams four alike against four alike is one chance in 70, not none; rounding is no change."""
    four, three = series([0.8] * 4), series([0.7] * 4)
    assert one(four, three).verdict is Verdict.FAIL
    assert one(three, four).verdict is Verdict.PASS
    other = one(four, three, paired=False)
    assert other.evidence.p == pytest.approx(1 / 70)
    assert (other.verdict, other.more) == (Verdict.INCONCLUSIVE, 1)
    assert one(series([0.8] * 5), series([0.7] * 5), paired=False).verdict is Verdict.FAIL
    assert one(series([0.1 + k for k in range(4)]), series([0.1 + k - 0.3 for k in range(4)])).verdict is Verdict.FAIL
    assert one(series([0.8] * 4), series([0.7, 0.7, 0.7, 0.71]), paired=False).verdict is Verdict.FAIL


def test_verdicts_on_what_is_not_a_plain_pair() -> None:
    """Goal: every case has its verdict. Method: equal, new, gone, undefined, infinite, no direction, by value alone on
    the same and on other streams, replications that are undefined or fewer."""
    some, value = series([0.8, 0.81, 0.79]), series([], 0.8)
    nothing, infinite = series([], math.nan), series([1.0, 2.0, 3.0], math.inf)
    equal = one(some, series([0.8, 0.81, 0.79]))
    assert (equal.verdict, equal.kind, equal.evidence.method) == (Verdict.PASS, "same", Method.EQUAL)
    assert (one(None, some).verdict, one(None, some).kind) == (Verdict.NEW, "new")
    assert (one(some, None).verdict, one(some, None).kind) == (Verdict.FAIL, "gone")
    assert one(some, None, better="").verdict is Verdict.NOT_JUDGED
    assert one(some, value, better="").kind == "changed"
    assert one(nothing, nothing).verdict is Verdict.PASS
    assert one(value, nothing).verdict is Verdict.INCONCLUSIVE
    assert one(value, nothing).fails_strictly
    assert "undefined in one of the two" in line_of(one(nothing, value))
    assert one(value, series([], 0.794)).verdict is Verdict.FAIL
    assert one(value, series([], 0.796)).verdict is Verdict.PASS
    other = one(value, series([], 0.794), paired=False)
    assert (other.verdict, other.more) == (Verdict.INCONCLUSIVE, None)
    assert "no replications to tell chance from change by" in line_of(other)
    finite = series([1.0, 2.0, 3.0])
    assert one(finite, infinite, better="lower").verdict is Verdict.FAIL
    assert one(infinite, finite, better="lower").verdict is Verdict.PASS
    gaps = one(series([0.8, math.nan, 0.81, 0.8], 0.8), series([0.7, 0.7, 0.71, math.nan], 0.7))
    assert (gaps.verdict, gaps.evidence.n) == (Verdict.FAIL, 2)


def test_an_improvement_never_fails() -> None:
    """Goal: better is never worse. Method: a sure and an unsure improvement, either way round; only what is not sure
    and looks worse fails where certainty is asked for."""
    low, high = series([0.1, 0.3, 0.2, 0.4]), series([0.3, 0.2, 0.5, 0.6])
    for before, now, better in ((low, high, "higher"), (high, low, "lower")):
        row = one(before, now, better=better)
        assert (row.kind, row.fails_strictly) == ("improved", False)
        assert row.verdict is Verdict.INCONCLUSIVE
        assert one(now, before, better=better).fails_strictly
    assert one(low, series([0.9, 1.1, 1.0, 1.2])).verdict is Verdict.PASS


def test_a_check_in_words() -> None:
    """Goal: people read what was found. Method: the lines of a failure, and the shift that other streams can tell."""
    row = one(series([0.80, 0.81, 0.79, 0.80]), series([0.70, 0.712, 0.69, 0.70]))
    assert line_of(row) == (
        "fail: expected at fabric=reconfigurable: 80 % -> 70.05 %; worse by 9.95 pp (± 0.159 pp at 95 %, paired, "
        "4 replications); margin 0.5 pp"
    )
    assert detectable_text([row]).startswith(
        "a worsening that such a check detects (95%), in the least certain place: "
    )
    assert detectable_text([]) == "nothing has an error by which a shift could be told"
    assert overall([]) is Verdict.PASS
