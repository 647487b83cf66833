"""Slices of disaggregated replicas: how they are cut, what their links carry, how many sequences a part holds."""

from __future__ import annotations

import pytest

from sim.scenario_batching import Part
from sim.studies.service_parts import service_config
from tests.scenario.bad_scenarios import BASE
from tests.scenario.test_scenarios import loaded
from topology.shape import parse_shape
from workloads.catalogue.tpus import TPU_V4, TPU_V5P
from workloads.kv_cache import Paged
from workloads.serving.batching import Disaggregated


def test_a_part_of_a_slice_is_open_where_it_was_cut() -> None:
    """Goal: a slice of its own is a torus; half of one slice is open along the cut, and its links are those of two
    faces. Method: 4x4x8 cut in two, by hand: 16 chips a face, 45 GB/s a link; v5p: 6.25 GB/s of network a chip."""
    shape = parse_shape("4x4x8")
    part = Part.of(shape, 2)
    assert part is not None
    assert (part.axes, part.cut_axis) == ((4, 4, 4), 2)
    assert part.network("network", shape).wraps == (True, True, True)
    assert part.network("ici", shape).wraps == (True, True, False)
    assert part.link_bytes_per_s("ici", TPU_V4) == pytest.approx(2 * 16 * 45e9)
    assert part.link_bytes_per_s("network", TPU_V4) is None
    assert part.link_bytes_per_s("network", TPU_V5P) == pytest.approx(64 * 6.25e9)
    assert Part.of(shape, 3) is None


def test_a_part_holds_as_many_sequences_as_pieces() -> None:
    """Goal: of a contiguous cache a part serves as many sequences as pieces fit it, of a paged one as many as are
    allowed. Method: the kernel's configuration of a service on 4x4x8, pieces of 8,192 and of 200,000 tokens."""
    batching = "serving.services.0.batching={kind: disaggregated, link: 400 GB/s}"
    for cache, most in (("{kind: paged}", 256), ("{kind: contiguous, max_model_len: 200000}", None)):
        scenario = loaded(BASE, batching, f"serving.services.0.cache={cache}", "serving.services.0.slice=4x4x8")
        assert scenario.serving is not None
        config = service_config(scenario, scenario.serving.services[0], parse_shape("4x4x8"), 3)
        assert config is not None
        assert config.kv == Paged()
        rule = config.batching
        assert isinstance(rule, Disaggregated)
        assert (config.replicas, rule.prefill_replicas) == (6, 3)
        assert rule.max_batch == (config.blocks // 12_500 if most is None else most)
