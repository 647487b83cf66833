"""Laws of lives and repairs: plug-ins whose fields are their YAML, as in `{kind: weibull, shape: 0.7, mean: 50 d}`.

A law gives its mean, its quantile function (a draw is one uniform, inverted) and the quantile function of its
equilibrium residual: the time that is left of a life seen at a random instant, with density (1 - F(x)) / mean. A
stationary start needs the residual; it has a closed form for exponential, Weibull and empirical laws and is inverted
numerically for the others.

`mean` may be left out where something else fixes it (see `sim.histories.failure_mode`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Annotated, Literal, Protocol, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from pydantic import Field
from scipy import special

from topology.units import PositiveSeconds, Share

Floats = NDArray[np.float64]

_BISECTIONS = 100
_MOST_NEWTON_STEPS = 1000


class LifeLaw(Protocol):
    """What every law of lives or repairs offers; times in seconds, `u` are uniforms in [0, 1)."""

    @property
    def kind(self) -> str:
        """The name of the law in YAML."""

    @property
    def mean_s(self) -> float:
        """Mean in seconds; ValueError when the law has no mean of its own and none was derived."""

    def quantile_s(self, u: ArrayLike) -> Floats:
        """The time that a share `u` of lives does not reach, an array in the shape of `u`."""

    def residual_quantile_s(self, u: ArrayLike) -> Floats:
        """The same for what is left of a life that is found in progress at a random instant."""

    def survival(self, time_s: ArrayLike) -> Floats:
        """Share of lives longer than `time_s`."""

    def residual_survival(self, time_s: ArrayLike) -> Floats:
        """Share of lives found in progress of which more than `time_s` is left."""

    def with_mean(self, mean_s: float) -> Self:
        """The same law, stretched to the mean `mean_s`."""


def invert_survival(survival: Callable[[Floats], Floats], u: Floats, low: Floats, high: Floats) -> Floats:
    """Times x with survival(x) = 1 - u, by bisection of the logarithm between `low` and `high` (all in one shape).

    `high` is doubled where it does not bracket the answer yet. Quantiles below 1e-300 s come out as that.
    """
    target = 1.0 - u
    low, high = np.maximum(low, 1e-300), np.maximum(high, 1e-290)
    for _ in range(2000):
        short = survival(high) > target
        if not short.any():
            break
        high = np.where(short, 2.0 * high, high)
    for _ in range(_BISECTIONS):
        middle = np.sqrt(low) * np.sqrt(high)
        beyond = survival(middle) > target
        low, high = np.where(beyond, middle, low), np.where(beyond, high, middle)
        if np.all(high - low <= 4e-16 * high):
            break
    return np.asarray(high, dtype=np.float64)


def invert_residual(law: LifeLaw, u: Floats) -> Floats:
    """Times x with residual_survival(x) = 1 - u, by Newton's method.

    The residual survival is convex with slope -survival / mean, and u x mean is no further than the answer: steps from
    there never overshoot.
    """
    mean_s = law.mean_s
    flat = np.asarray(u * mean_s, dtype=np.float64).ravel()
    target = (1.0 - u).ravel()
    going = np.arange(len(flat))
    for _ in range(_MOST_NEWTON_STEPS):
        time = flat[going]
        slope = np.maximum(law.survival(time) / mean_s, 1e-300)
        step = (law.residual_survival(time) - target[going]) / slope
        moves = step > 4e-16 * time
        going = going[moves]
        if not len(going):
            break
        flat[going] = time[moves] + step[moves]
    return flat.reshape(np.shape(u))


def _uniforms(u: ArrayLike) -> Floats:
    return np.asarray(u, dtype=np.float64)


def _check_mean(mean: float | None) -> None:
    if mean is not None and not (math.isfinite(mean) and mean > 0.0):
        raise ValueError(f"mean of {mean:g} s: write a time above 0, such as `mean: 24 h`")


def _check_positive(name: str, value: float, example: str) -> None:
    if not (math.isfinite(value) and value > 0.0):
        raise ValueError(f"{name} of {value:g}: write a number above 0, such as `{example}`")


def _known(mean: float | None) -> float:
    if mean is None:
        raise ValueError("the law has no mean and nothing else fixes it: write one, such as `mean: 24 h`")
    return mean


CV_MAX = 1e9
"""A greater variation is beyond what floats can square and draw."""


@dataclass(frozen=True, kw_only=True)
class Exponential:
    """Without memory: a new and an old component fail alike. `mean` in seconds."""

    kind: Literal["exponential"] = "exponential"
    mean: PositiveSeconds | None = None

    def __post_init__(self) -> None:
        """Refuse a mean that is not a time."""
        _check_mean(self.mean)

    @property
    def mean_s(self) -> float:
        """Mean in seconds."""
        return _known(self.mean)

    def quantile_s(self, u: ArrayLike) -> Floats:
        """-mean ln(1 - u)."""
        return -self.mean_s * np.log1p(-_uniforms(u))

    def residual_quantile_s(self, u: ArrayLike) -> Floats:
        """The same as a whole life."""
        return self.quantile_s(u)

    def survival(self, time_s: ArrayLike) -> Floats:
        """exp(-t / mean)."""
        return np.exp(-_uniforms(time_s) / self.mean_s)

    def residual_survival(self, time_s: ArrayLike) -> Floats:
        """The same as of a whole life."""
        return self.survival(time_s)

    def with_mean(self, mean_s: float) -> Self:
        """The same law with another mean."""
        return replace(self, mean=mean_s)


@dataclass(frozen=True, kw_only=True)
class Weibull:
    """Shape below 1: early failures; above 1: wear. Survival exp(-(t / scale)^shape)."""

    kind: Literal["weibull"] = "weibull"
    shape: float
    mean: PositiveSeconds | None = None

    def __post_init__(self) -> None:
        """Refuse a shape or mean that is no positive number."""
        _check_mean(self.mean)
        _check_positive("shape", self.shape, "shape: 0.7")
        if self.shape < 0.1:
            raise ValueError(f"shape of {self.shape:g}: write a number of at least 0.1")

    @property
    def mean_s(self) -> float:
        """Mean in seconds."""
        return _known(self.mean)

    @property
    def scale_s(self) -> float:
        """Scale in seconds, mean / Gamma(1 + 1/shape): 63 % of lives are shorter."""
        return self.mean_s / math.gamma(1.0 + 1.0 / self.shape)

    def quantile_s(self, u: ArrayLike) -> Floats:
        """Scale (-ln(1 - u))^(1/shape)."""
        return np.asarray(self.scale_s * (-np.log1p(-_uniforms(u))) ** (1.0 / self.shape))

    def residual_quantile_s(self, u: ArrayLike) -> Floats:
        """Closed form: (residual / scale)^shape has the gamma law of shape 1/shape."""
        return np.asarray(self.scale_s * special.gammaincinv(1.0 / self.shape, _uniforms(u)) ** (1.0 / self.shape))

    def survival(self, time_s: ArrayLike) -> Floats:
        """exp(-(t / scale)^shape)."""
        return np.asarray(np.exp(-((_uniforms(time_s) / self.scale_s) ** self.shape)))

    def residual_survival(self, time_s: ArrayLike) -> Floats:
        """Upper regularised incomplete gamma function Q(1/shape, (t / scale)^shape)."""
        return np.asarray(special.gammaincc(1.0 / self.shape, (_uniforms(time_s) / self.scale_s) ** self.shape))

    def with_mean(self, mean_s: float) -> Self:
        """The same shape with another mean."""
        return replace(self, mean=mean_s)


@dataclass(frozen=True, kw_only=True)
class Lognormal:
    """The logarithm is normal. `cv` is the coefficient of variation: sigma^2 = ln(1 + cv^2)."""

    kind: Literal["lognormal"] = "lognormal"
    cv: float
    mean: PositiveSeconds | None = None

    def __post_init__(self) -> None:
        """Refuse a coefficient of variation or mean that is no positive number."""
        _check_mean(self.mean)
        _check_positive("cv", self.cv, "cv: 2")
        if self.cv > CV_MAX:
            raise ValueError(f"cv of {self.cv:g}: write a number of at most {CV_MAX:g}")

    @property
    def mean_s(self) -> float:
        """Mean in seconds."""
        return _known(self.mean)

    @property
    def sigma(self) -> float:
        """Standard deviation of the logarithm."""
        return math.sqrt(math.log1p(self.cv**2))

    @property
    def median_s(self) -> float:
        """Median in seconds: mean exp(-sigma^2 / 2)."""
        return self.mean_s * math.exp(-0.5 * self.sigma**2)

    def quantile_s(self, u: ArrayLike) -> Floats:
        """Median exp(sigma z(u))."""
        return np.asarray(self.median_s * np.exp(self.sigma * special.ndtri(_uniforms(u))))

    def residual_quantile_s(self, u: ArrayLike) -> Floats:
        """Numerically, by Newton's method."""
        return invert_residual(self, _uniforms(u))

    def survival(self, time_s: ArrayLike) -> Floats:
        """Phi(-ln(t / median) / sigma)."""
        with np.errstate(divide="ignore"):
            z = np.log(_uniforms(time_s) / self.median_s) / self.sigma
        return np.asarray(special.ndtr(-z))

    def residual_survival(self, time_s: ArrayLike) -> Floats:
        """Phi(sigma - z) - (t / mean) Phi(-z) with z = ln(t / median) / sigma."""
        time = _uniforms(time_s)
        with np.errstate(divide="ignore"):
            z = np.log(time / self.median_s) / self.sigma
        return np.maximum(special.ndtr(self.sigma - z) - time / self.mean_s * special.ndtr(-z), 0.0)

    def with_mean(self, mean_s: float) -> Self:
        """The same coefficient of variation with another mean."""
        return replace(self, mean=mean_s)


@dataclass(frozen=True, kw_only=True)
class Gamma:
    """A sum of `shape` exponential stages (any positive number); coefficient of variation 1 / sqrt(shape)."""

    kind: Literal["gamma"] = "gamma"
    shape: float
    mean: PositiveSeconds | None = None

    def __post_init__(self) -> None:
        """Refuse a shape or mean that is no positive number."""
        _check_mean(self.mean)
        _check_positive("shape", self.shape, "shape: 2")

    @property
    def mean_s(self) -> float:
        """Mean in seconds."""
        return _known(self.mean)

    @property
    def scale_s(self) -> float:
        """Mean of one stage in seconds."""
        return self.mean_s / self.shape

    def quantile_s(self, u: ArrayLike) -> Floats:
        """Scale times the inverse of the regularised incomplete gamma function."""
        return np.asarray(self.scale_s * special.gammaincinv(self.shape, _uniforms(u)))

    def residual_quantile_s(self, u: ArrayLike) -> Floats:
        """Numerically, by Newton's method."""
        return invert_residual(self, _uniforms(u))

    def survival(self, time_s: ArrayLike) -> Floats:
        """Q(shape, t / scale)."""
        return np.asarray(special.gammaincc(self.shape, _uniforms(time_s) / self.scale_s))

    def residual_survival(self, time_s: ArrayLike) -> Floats:
        """Q(shape + 1, t / scale) - (t / mean) Q(shape, t / scale)."""
        time = _uniforms(time_s)
        whole = special.gammaincc(self.shape + 1.0, time / self.scale_s)
        return np.maximum(whole - time / self.mean_s * special.gammaincc(self.shape, time / self.scale_s), 0.0)

    def with_mean(self, mean_s: float) -> Self:
        """The same shape with another mean."""
        return replace(self, mean=mean_s)


@dataclass(frozen=True, kw_only=True)
class Empirical:
    """Measured times, each as likely as the next: `values` in seconds, in any order, none negative."""

    kind: Literal["empirical"] = "empirical"
    values: tuple[PositiveSeconds, ...]

    def __post_init__(self) -> None:
        """Refuse an empty list and values that are no times."""
        if not self.values:
            raise ValueError("no values: write a list of times, such as `values: [2 h, 30 min]`")
        for value in self.values:
            _check_positive("a value", value, "values: [2 h, 30 min]")

    @property
    def mean_s(self) -> float:
        """Mean of the values in seconds."""
        return math.fsum(self.values) / len(self.values)

    def _sorted(self) -> Floats:
        return np.sort(np.asarray(self.values, dtype=np.float64))

    def quantile_s(self, u: ArrayLike) -> Floats:
        """The value of rank floor(n u): no interpolation, so that only measured times occur."""
        values = self._sorted()
        ranks = np.floor(_uniforms(u) * len(values)).astype(np.int64)
        return np.asarray(values[np.minimum(ranks, len(values) - 1)])

    def _residual_knots(self) -> tuple[Floats, Floats]:
        values = self._sorted()
        knots = np.concatenate(([0.0], values))
        longer = np.arange(len(values), 0, -1) / len(values)
        share = np.concatenate(([0.0], np.cumsum(np.diff(knots) * longer)))
        return knots, share / share[-1]

    def residual_quantile_s(self, u: ArrayLike) -> Floats:
        """Closed form: the residual's distribution is a polygon through the values."""
        knots, share = self._residual_knots()
        return np.asarray(np.interp(_uniforms(u), share, knots))

    def survival(self, time_s: ArrayLike) -> Floats:
        """Share of values greater than `time_s`."""
        values = self._sorted()
        return np.asarray(1.0 - np.searchsorted(values, _uniforms(time_s), side="right") / len(values))

    def residual_survival(self, time_s: ArrayLike) -> Floats:
        """One minus the polygon."""
        knots, share = self._residual_knots()
        return np.asarray(1.0 - np.interp(_uniforms(time_s), knots, share))

    def with_mean(self, mean_s: float) -> Self:
        """All values stretched alike."""
        factor = mean_s / self.mean_s
        return replace(self, values=tuple(value * factor for value in self.values))


LawOfOneKind = Annotated[Exponential | Weibull | Lognormal | Gamma | Empirical, Field(discriminator="kind")]
"""A law that is no mixture."""


@dataclass(frozen=True, kw_only=True)
class MixturePart:
    """One of several causes: the share of lives that follow `law`."""

    weight: Share
    law: LawOfOneKind


@dataclass(frozen=True, kw_only=True)
class Mixture:
    """Several causes, such as transient, soft and hard failures: a life follows part i with probability weight i."""

    kind: Literal["mixture"] = "mixture"
    parts: tuple[MixturePart, ...]

    def __post_init__(self) -> None:
        """Refuse fewer than two parts and weights that do not add up to 1."""
        if len(self.parts) < 2:
            raise ValueError("a mixture of fewer than two parts: write at least two entries of `weight` and `law`")
        total = math.fsum(part.weight for part in self.parts)
        if abs(total - 1.0) > 1e-9:
            raise ValueError(f"weights of the parts add up to {total:g}: write weights that add up to 1")

    @property
    def mean_s(self) -> float:
        """Weighted mean in seconds."""
        return math.fsum(part.weight * part.law.mean_s for part in self.parts)

    def quantile_s(self, u: ArrayLike) -> Floats:
        """By bisection between the least and the greatest quantile of the parts."""
        uniforms = _uniforms(u)
        each = np.stack([part.law.quantile_s(uniforms) for part in self.parts])
        return invert_survival(self.survival, uniforms, each.min(axis=0), each.max(axis=0))

    def residual_quantile_s(self, u: ArrayLike) -> Floats:
        """Numerically, by Newton's method."""
        return invert_residual(self, _uniforms(u))

    def survival(self, time_s: ArrayLike) -> Floats:
        """Weighted mean over the parts."""
        return np.asarray(sum(part.weight * part.law.survival(time_s) for part in self.parts))

    def residual_survival(self, time_s: ArrayLike) -> Floats:
        """Mean over the parts, weighted by weight x mean (long lives are met more often)."""
        mean_s = self.mean_s
        shares = [(part.weight * part.law.mean_s / mean_s, part.law) for part in self.parts]
        return np.asarray(sum(share * law.residual_survival(time_s) for share, law in shares))

    def with_mean(self, mean_s: float) -> Self:
        """All parts stretched alike."""
        factor = mean_s / self.mean_s
        stretched = tuple(replace(p, law=p.law.with_mean(p.law.mean_s * factor)) for p in self.parts)
        return replace(self, parts=stretched)


Law = Annotated[Exponential | Weibull | Lognormal | Gamma | Empirical | Mixture, Field(discriminator="kind")]
"""Any shipped law, as a tagged union for scenario files."""


def has_mean(law: LifeLaw) -> bool:
    """Whether the law knows its mean, or waits for one to be derived."""
    try:
        law.mean_s  # noqa: B018
    except ValueError:
        return False
    return True
