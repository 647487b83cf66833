"""Fits of laws of lives and repairs by maximum likelihood, with times that were cut off by the end of the log.

A complete time t adds log f(t), one that was still running adds log S(t). Times under a second count as one second: the
logarithm of zero would decide everything.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import special

from sim.lifetimes import Exponential, Gamma, LifeLaw, Lognormal, Weibull

Floats = NDArray[np.float64]

SHORTEST_S = 1.0


@dataclass(frozen=True, kw_only=True)
class Fit:
    """A law fitted to `n` complete and `cut` unfinished times; the least `aic` fits best."""

    law: LifeLaw
    parameters: int
    log_likelihood: float
    n: int
    cut: int

    @property
    def aic(self) -> float:
        """Akaike's criterion: 2 x parameters - 2 log likelihood."""
        return 2.0 * self.parameters - 2.0 * self.log_likelihood


def _exponential(whole: Floats, cut: Floats) -> Fit:
    mean_s = float((whole.sum() + cut.sum()) / len(whole))
    likelihood = -len(whole) * (math.log(mean_s) + 1.0)
    return _fit(Exponential(mean=mean_s), 1, likelihood, whole, cut)


def _fit(law: LifeLaw, parameters: int, log_likelihood: float, whole: Floats, cut: Floats) -> Fit:
    return Fit(law=law, parameters=parameters, log_likelihood=log_likelihood, n=len(whole), cut=len(cut))


def _weibull(whole: Floats, cut: Floats) -> Fit:
    """The scale follows from the shape; the shape by one-dimensional search."""
    from scipy import optimize

    logs, all_logs = np.log(whole), np.log(np.concatenate((whole, cut)))
    top, n = float(all_logs.max()), len(whole)

    def minus_likelihood(log_shape: float) -> float:
        shape = math.exp(log_shape)
        # log of sum t^shape, scaled by the longest time so that nothing overflows
        log_power = shape * top + math.log(np.exp(shape * (all_logs - top)).sum())
        return -float(n * log_shape + (shape - 1.0) * logs.sum() - n * (log_power - math.log(n)) - n)

    found = optimize.minimize_scalar(minus_likelihood, bounds=(math.log(0.1), math.log(20.0)), method="bounded")
    shape = math.exp(float(found.x))
    log_power = shape * top + math.log(np.exp(shape * (all_logs - top)).sum())
    mean_s = math.exp((log_power - math.log(n)) / shape) * math.gamma(1.0 + 1.0 / shape)
    return _fit(Weibull(shape=shape, mean=mean_s), 2, -float(found.fun), whole, cut)


def _search(minus_likelihood: Callable[[Floats], float], start: tuple[float, float]) -> tuple[Floats, float]:
    from scipy import optimize

    found = optimize.minimize(
        minus_likelihood, np.array(start), method="Nelder-Mead", options={"xatol": 1e-6, "fatol": 1e-6, "maxiter": 2000}
    )
    return np.asarray(found.x, dtype=np.float64), -float(found.fun)


def _lognormal(whole: Floats, cut: Floats) -> Fit:
    logs, cut_logs = np.log(whole), np.log(cut)

    def minus_likelihood(parameters: Floats) -> float:
        mu, sigma = float(parameters[0]), math.exp(min(float(parameters[1]), 3.0))
        z = (logs - mu) / sigma
        complete = -logs - math.log(sigma) - 0.5 * math.log(2.0 * math.pi) - 0.5 * z**2
        return -float(complete.sum() + special.log_ndtr(-(cut_logs - mu) / sigma).sum())

    start = (float(logs.mean()), math.log(max(float(logs.std()), 1e-3)))
    found, likelihood = _search(minus_likelihood, start)
    sigma = math.exp(min(float(found[1]), 3.0))
    mean_s = math.exp(float(found[0]) + 0.5 * sigma**2)
    law = Lognormal(cv=max(math.sqrt(math.expm1(sigma**2)), 1e-6), mean=mean_s)
    return _fit(law, 2, likelihood, whole, cut)


def _gamma(whole: Floats, cut: Floats) -> Fit:
    logs = np.log(whole)

    def minus_likelihood(parameters: Floats) -> float:
        shape, scale_s = (math.exp(float(p)) for p in np.clip(parameters, -8.0, 60.0))
        complete = (shape - 1.0) * logs - whole / scale_s - special.gammaln(shape) - shape * math.log(scale_s)
        with np.errstate(divide="ignore"):
            still = np.log(special.gammaincc(shape, cut / scale_s))
        return -float(complete.sum() + np.maximum(still, -1e6).sum())

    shape = 1.0 / max(float(np.var(whole)) / float(np.mean(whole)) ** 2, 1e-3)
    found, likelihood = _search(minus_likelihood, (math.log(shape), math.log(float(np.mean(whole)) / shape)))
    shape, scale_s = (math.exp(float(p)) for p in np.clip(found, -8.0, 60.0))
    return _fit(Gamma(shape=shape, mean=shape * scale_s), 2, likelihood, whole, cut)


def fitted_laws(whole_s: Floats, cut_s: Floats) -> tuple[Fit, ...]:
    """Exponential, Weibull, lognormal and gamma fits to complete and cut times, the best first; none from under 3."""
    if len(whole_s) < 3:
        return ()
    whole, cut = np.maximum(whole_s, SHORTEST_S), np.maximum(cut_s, SHORTEST_S)
    if np.all(whole == whole[0]):
        return (_exponential(whole, cut),)
    fits = [_exponential(whole, cut), _weibull(whole, cut), _lognormal(whole, cut), _gamma(whole, cut)]
    return tuple(sorted(fits, key=lambda fit: fit.aic))
