"""Very long runs: requests drawn while others are simulated, in memory that does not grow."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from sim.streams import Streams
from tests.bench.long import LAW, LOAD, drawn_ahead, long_config, long_run
from workloads.load import laws
from workloads.load.laws import request_pieces
from workloads.requests import Requests
from workloads.serving.service import Service

COUNT = 100_000


@pytest.fixture(autouse=True)
def _small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Several pieces in a short run."""
    monkeypatch.setattr(laws, "BLOCK", 1 << 14)


def pieces(count: int = COUNT) -> Iterator[Requests]:
    """Requests of the long runs, piece by piece."""
    return request_pieces(LAW, 10.0, count, Streams(1, 0).uniforms)


def test_pieces_are_drawn_ahead_by_one() -> None:
    """Goal: drawing beside the simulation changes no request and holds no more than the next piece.

    Method: pieces drawn ahead and as they come; which thread drew, and how many were drawn when one was taken.
    """
    drawn: list[int] = []

    def watched() -> Iterator[Requests]:
        for piece in pieces():
            drawn.append(threading.get_ident())
            yield piece

    taken = 0
    for ahead, plain in zip(drawn_ahead(watched()), pieces(), strict=True):
        taken += 1
        assert len(drawn) <= taken + 1
        for name in ("arrival_ns", "input_tokens", "output_tokens"):
            assert (getattr(ahead, name) == getattr(plain, name)).all()
    assert taken == len(drawn) > 1
    assert threading.get_ident() not in drawn


def test_what_fails_while_drawing_ends_the_run() -> None:
    """Goal: an error in the thread that draws is the run's. Method: a source that fails at its second piece."""

    def failing() -> Iterator[Requests]:
        yield next(pieces())
        raise ValueError("no more luck")

    with pytest.raises(ValueError, match="no more luck"):
        list(drawn_ahead(failing()))


def test_a_long_run_is_a_run() -> None:
    """Goal: `make bench-long` measures the ordinary simulation. Method: its run, and the same requests drawn at once:
    equal measures, and its figures make sense."""
    config = long_config()
    assert config.saturated_requests_per_s is not None
    rate_per_s = LOAD * config.saturated_requests_per_s
    whole = Service(config, LAW.draw(rate_per_s, COUNT, Streams(1, 0).uniforms, "requests")).finish()
    source = request_pieces(LAW, rate_per_s, COUNT, Streams(1, 0).uniforms)
    streamed = Service(config, drawn_ahead(source)).finish()
    assert streamed.totals == whole.totals
    assert streamed.ledger_ns == whole.ledger_ns
    assert (streamed.histograms == whole.histograms).all()
    figures = long_run(COUNT, config)
    assert figures["simulated_days"] == pytest.approx(COUNT / rate_per_s / 86_400, rel=0.02)
    assert figures["wall_s"] == pytest.approx(figures["per_request_ns"] * COUNT * 1e-9)
