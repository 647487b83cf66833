"""Laws of lives and repairs: inverses, means, residuals, refusals."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter

from sim.lifetimes import (
    Empirical,
    Exponential,
    Gamma,
    Law,
    LifeLaw,
    Lognormal,
    Mixture,
    MixturePart,
    Weibull,
    has_mean,
)

MEANS = st.floats(1.0, 1e8)
SIMPLE: list[st.SearchStrategy[LifeLaw]] = [
    st.builds(Exponential, mean=MEANS),
    st.builds(Weibull, mean=MEANS, shape=st.floats(0.3, 5.0)),
    st.builds(Lognormal, mean=MEANS, cv=st.floats(0.1, 5.0)),
    st.builds(Gamma, mean=MEANS, shape=st.floats(0.2, 20.0)),
]
SMOOTH = st.one_of(*SIMPLE) | st.builds(
    lambda weight, a, b: Mixture(parts=(MixturePart(weight=weight, law=a), MixturePart(weight=1.0 - weight, law=b))),
    st.floats(0.05, 0.95),
    SIMPLE[0],
    st.one_of(*SIMPLE),
)
ONE_OF_EACH: list[LifeLaw] = [
    Exponential(mean=10.0),
    Weibull(shape=0.7, mean=10.0),
    Weibull(shape=3.0, mean=10.0),
    Lognormal(cv=1.5, mean=10.0),
    Gamma(shape=0.5, mean=10.0),
    Empirical(values=(7.0, 1.0, 2.0, 2.0)),
    Mixture(
        parts=(
            MixturePart(weight=0.8, law=Exponential(mean=1.0)),
            MixturePart(weight=0.2, law=Lognormal(cv=1.0, mean=50.0)),
        )
    ),
]


@given(law=SMOOTH, u=st.floats(1e-6, 1.0 - 1e-6))
@settings(deadline=None, max_examples=100)
def test_quantile_inverts_the_survival(law: LifeLaw, u: float) -> None:
    """Goal: a draw is one uniform inverted. Method: survival(quantile(u)) = 1 - u for lives and residuals."""
    assert law.survival(law.quantile_s(u)) == pytest.approx(1.0 - u, rel=1e-6, abs=1e-9)
    assert law.residual_survival(law.residual_quantile_s(u)) == pytest.approx(1.0 - u, rel=1e-6, abs=1e-9)


@pytest.mark.parametrize("law", ONE_OF_EACH, ids=lambda law: law.kind)
def test_mean_and_residual_mean(law: LifeLaw) -> None:
    """Goal: the mean is the mean, the residual is the equilibrium one.

    Method: average quantiles over a fine grid; the mean residual is E[X^2] / (2 E[X]), by the same grid of lives.
    """
    u = (np.arange(40_000) + 0.5) / 40_000
    lives = law.quantile_s(u)
    assert lives.mean() == pytest.approx(law.mean_s, rel=5e-3)
    assert law.residual_quantile_s(u).mean() == pytest.approx((lives**2).mean() / (2.0 * law.mean_s), rel=3e-2)


@pytest.mark.parametrize("law", ONE_OF_EACH, ids=lambda law: law.kind)
def test_residual_density_is_the_survival_over_the_mean(law: LifeLaw) -> None:
    """Goal: the residual law by its definition. Method: integrate the survival numerically from 0 to t."""
    for t in (0.5, 5.0, 20.0):
        # midpoints, and the jumps of the empirical law fall on edges
        steps = 20_000
        grid = (np.arange(steps) + 0.5) * t / steps
        share = law.survival(grid).mean() * t / law.mean_s
        assert 1.0 - law.residual_survival(t) == pytest.approx(share, abs=1e-4)


@pytest.mark.parametrize("law", ONE_OF_EACH, ids=lambda law: law.kind)
def test_extreme_uniforms_and_stretching(law: LifeLaw) -> None:
    """Goal: no infinite or negative draw; a stretched law is the same law. Method: the least and greatest uniform."""
    u = np.array([0.0, 2.0**-53, 0.5, 1.0 - 2.0**-53])
    for draws in (law.quantile_s(u), law.residual_quantile_s(u)):
        assert np.all(np.isfinite(draws))
        assert np.all(draws >= 0.0)
        assert np.all(np.diff(draws) >= 0.0)
    wide = law.with_mean(7.0 * law.mean_s)
    assert wide.mean_s == pytest.approx(7.0 * law.mean_s)
    assert wide.quantile_s(u) == pytest.approx(7.0 * law.quantile_s(u), rel=1e-9)


@pytest.mark.parametrize(
    "given_law",
    [
        {"kind": "exponential", "mean": 3.0},
        {"kind": "weibull", "shape": 0.7},
        {"kind": "lognormal", "cv": 2.0, "mean": 3600.0},
        {"kind": "gamma", "shape": 2.0, "mean": 3600.0},
        {"kind": "empirical", "values": [3.0, 4.0]},
        {
            "kind": "mixture",
            "parts": [
                {"weight": 0.5, "law": {"kind": "exponential", "mean": 3.0}},
                {"weight": 0.5, "law": {"kind": "gamma", "shape": 2.0, "mean": 3.0}},
            ],
        },
    ],
    ids=lambda law: law["kind"],
)
def test_fields_are_the_yaml(given_law: dict[str, object]) -> None:
    """Goal: a law is its YAML. Method: read plain values as the tagged union and look at kind and mean."""
    law = TypeAdapter(Law).validate_python(given_law)
    assert law.kind == given_law["kind"]
    assert has_mean(law) is (given_law["kind"] != "weibull")


def test_impossible_laws_are_refused() -> None:
    """Goal: a law that can not be says what to write. Method: one of each fault."""
    with pytest.raises(ValueError, match="mean"):
        Exponential(mean=0.0)
    with pytest.raises(ValueError, match="mean"):
        Exponential(mean=float("nan"))
    with pytest.raises(ValueError, match="shape"):
        Weibull(shape=-1.0, mean=1.0)
    with pytest.raises(ValueError, match=r"at least 0\.1"):
        Weibull(shape=0.01, mean=1.0)
    with pytest.raises(ValueError, match="shape"):
        Gamma(shape=0.0, mean=1.0)
    with pytest.raises(ValueError, match="cv"):
        Lognormal(cv=float("inf"), mean=1.0)
    with pytest.raises(ValueError, match="no values"):
        Empirical(values=())
    with pytest.raises(ValueError, match="above 0"):
        Empirical(values=(1.0, -2.0))
    half = MixturePart(weight=0.5, law=Exponential(mean=1.0))
    with pytest.raises(ValueError, match="two parts"):
        Mixture(parts=(half,))
    with pytest.raises(ValueError, match="add up to 1"):
        Mixture(parts=(half, MixturePart(weight=0.4, law=Exponential(mean=1.0))))
    with pytest.raises(ValueError, match="no mean"):
        _ = Weibull(shape=0.7).mean_s
