"""Fits of laws: the law that made the data is found again, also from data that was cut off."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import yaml
from pydantic import TypeAdapter

from sim.histories import ComponentKind, Lives, draw_outages, failure_mode
from sim.law_fits import fitted_laws
from sim.lifetimes import Exponential, Gamma, Law, LifeLaw, Lognormal, Weibull
from sim.log_analysis import failures_block
from sim.streams import Streams


@pytest.mark.parametrize(
    "law",
    [
        Exponential(mean=3600.0),
        Weibull(shape=0.6, mean=1e5),
        Lognormal(cv=2.0, mean=1e4),
        Gamma(shape=3.0, mean=5e4),
    ],
    ids=lambda law: law.kind,
)
@pytest.mark.parametrize("cut_share", [0.0, 0.4])
def test_the_law_is_found_again(law: LifeLaw, cut_share: float) -> None:
    """Goal: maximum likelihood with times cut off. Method: 3,000 draws, cut at a random or no instant."""
    streams = Streams(1, 0)
    times = law.quantile_s(streams.uniforms("test.lives", 0, 3000))
    stop = np.full(3000, np.inf)
    if cut_share:
        chosen = streams.uniforms("test.cut", 0, 3000) < cut_share
        stop[chosen] = law.quantile_s(streams.uniforms("test.stop", 0, 3000))[chosen]
    fits = fitted_laws(times[times <= stop], stop[times > stop])
    assert [fit.aic for fit in fits] == sorted(fit.aic for fit in fits)
    found = next(fit.law for fit in fits if fit.law.kind == law.kind)
    assert found.mean_s == pytest.approx(law.mean_s, rel=0.1)
    for name in ("shape", "cv"):
        if hasattr(law, name):
            assert getattr(found, name) == pytest.approx(getattr(law, name), rel=0.12)
    if not isinstance(law, Exponential):
        assert fits[0].law.kind == law.kind


def test_too_little_to_fit() -> None:
    """Goal: no fit from nothing. Method: two times; times that are all alike; times of zero."""
    none = np.zeros(0)
    assert fitted_laws(np.array([1.0, 2.0]), none) == ()
    (only,) = fitted_laws(np.full(5, 60.0), none)
    assert only.law == Exponential(mean=60.0)
    assert len(fitted_laws(np.array([0.0, 0.0, 5.0, 8.0]), np.array([9.0]))) == 4


def test_the_block_is_a_population() -> None:
    """Goal: the ready `failures:` block gives back rate and availability. Method: read it, build it, draw from it."""
    text = failures_block("host", 0.98, 490.0, Weibull(shape=0.7, mean=1.0), Lognormal(cv=2.0, mean=1.0))
    section: dict[str, Any] = yaml.safe_load(text)["failures"]["host"]
    rate = float(section["failure_rate"].removesuffix(" %/day")) / 100.0 / 86400.0
    mode = failure_mode(
        ComponentKind.HOST,
        2000,
        failure_rate_per_s=rate,
        availability=float(section["availability"].removesuffix(" %")) / 100.0,
        life=TypeAdapter(Law).validate_python(section["life"]),
        repair=TypeAdapter(Law).validate_python(section["repair"]),
    )
    assert mode.availability == pytest.approx(0.98)
    assert mode.life.mean_s == pytest.approx(490.0 * 3600.0, rel=1e-5)
    assert mode.outage_mean_s == pytest.approx(10.0 * 3600.0, rel=1e-5)
    assert len(draw_outages(Lives(mode, Streams(1, 0)), 86_400_000_000)) > 0
    assert "never fails" in failures_block("host", 1.0, 10.0, None, None)
