"""Collectives against the formulas and worked examples of the JAX scaling book."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from topology.bounds import twist_gain
from topology.errors import InputError
from topology.shape import Shape
from workloads.catalogue.gpus import A100_80GB, RTX_4090
from workloads.catalogue.tpus import TPU_V4
from workloads.collectives import (
    SliceNetwork,
    all_gather_s,
    all_reduce_s,
    all_to_all_s,
    cabled_slice,
    circuit_slice,
    hops,
    reduce_scatter_s,
)

W = 9e10
CUBE = circuit_slice((4, 4, 4))


def one(seconds: np.ndarray) -> float:
    """The single number of an array of one."""
    return float(seconds[0])


@pytest.mark.parametrize("axes", [(4,), (4, 4), (4, 4, 4), (8, 8, 16)])
def test_all_gather_over_m_rings_takes_v_over_m_w(axes: tuple[int, ...]) -> None:
    """Goal: V/(m W), times (n-1)/n if exact. Method: a large array, so that latency does not count."""
    network = SliceNetwork(axes, (True,) * len(axes))
    volume, n = 1e12, network.chips
    expected = volume / (len(axes) * W) * (n - 1) / n
    assert one(all_gather_s(TPU_V4, network, np.array([volume]))) == pytest.approx(expected)
    assert one(reduce_scatter_s(TPU_V4, network, np.array([volume]))) == pytest.approx(expected)
    assert one(all_reduce_s(TPU_V4, network, np.array([volume]))) == pytest.approx(2 * expected)


def test_small_collectives_take_half_of_each_ring_in_hops() -> None:
    """Goal: the floor T_hop x sum(k)/2, and latency-bound below 45 kB per hop. Method: a byte, and 44 against 46 kB."""
    assert one(all_gather_s(TPU_V4, circuit_slice((4, 4, 8)), np.array([1.0]))) == pytest.approx(8e-6)
    ring = SliceNetwork((1000,), (True,))
    floor = hops(TPU_V4, ring) * TPU_V4.hop_s
    assert one(all_gather_s(TPU_V4, ring, np.array([44e3 * 1000]))) == floor
    assert one(all_gather_s(TPU_V4, ring, np.array([46e3 * 1000]))) > floor


def test_without_wraparound_a_collective_takes_twice_as_long() -> None:
    """Goal: slices under a cube are meshes and half as fast. Method: same axes, wraps off; mixed wraps lie between."""
    volume = np.array([1e12])
    ring, mesh = SliceNetwork((8, 8, 8), (True,) * 3), SliceNetwork((8, 8, 8), (False,) * 3)
    mixed = SliceNetwork((8, 8, 8), (True, False, False))
    assert one(all_gather_s(TPU_V4, mesh, volume)) == pytest.approx(2 * one(all_gather_s(TPU_V4, ring, volume)))
    assert one(all_gather_s(TPU_V4, mixed, volume)) == pytest.approx(1.5 * one(all_gather_s(TPU_V4, ring, volume)))
    assert one(all_to_all_s(TPU_V4, mesh, volume)) == pytest.approx(2 * one(all_to_all_s(TPU_V4, ring, volume)))


def test_worked_example_all_gather_on_four_unwrapped_chips() -> None:
    """Goal: 34 MB bf16 over 4 unwrapped v5e chips: 560 us computed in the scaling book. Method: within 2 %."""
    seconds = one(all_gather_s(TPU_V4, SliceNetwork((4,), (False,)), np.array([34e6])))
    assert seconds == pytest.approx(560e-6, rel=0.02)


def test_all_to_all_on_a_ring_is_a_quarter_of_the_all_gather() -> None:
    """Goal: the ratio of the scaling book for a bidirectional ring. Method: V/(4 W) against V/W."""
    ring, volume = SliceNetwork((16,), (True,)), 1e12
    assert one(all_to_all_s(TPU_V4, ring, np.array([volume]))) == pytest.approx(volume / W / 4)


def test_longest_axis_binds_an_all_to_all() -> None:
    """Goal: 8x8x16 is bound by its axis of 16. Method: V k / (4 n W)."""
    assert one(all_to_all_s(TPU_V4, circuit_slice((8, 8, 16)), np.array([1e12]))) == pytest.approx(
        1e12 * 16 / (4 * 1024 * W)
    )


def test_a_switch_gives_every_chip_its_full_rate() -> None:
    """Goal: eight A100s: V (n-1)/n over 300 GB/s, log2 steps of latency: 30 us for an all-reduce (Vidur
    profiles: 32 us below 1 MB, 10 us on two). Method: large and small arrays."""
    eight = SliceNetwork((8,), (False,))
    assert one(all_gather_s(A100_80GB, eight, np.array([3e11]))) == pytest.approx(7 / 8)
    assert one(all_reduce_s(A100_80GB, eight, np.array([8.0]))) == pytest.approx(30e-6)
    assert one(all_reduce_s(A100_80GB, SliceNetwork((2,), (False,)), np.array([8.0]))) == pytest.approx(10e-6)
    assert one(all_to_all_s(A100_80GB, eight, np.array([8e12]))) == pytest.approx(8e12 * 7 / 64 / 3e11)


def test_published_all_reduce_times_of_a_dgx() -> None:
    """Goal: 64 MB over 2/4/8 A100s: 0.43/0.60/0.67 ms (Vidur profiles, V). Method: efficiency 0.56, within 10 %."""
    for chips, milliseconds in ((2, 0.43), (4, 0.60), (8, 0.67)):
        seconds = one(all_reduce_s(A100_80GB, SliceNetwork((chips,), (False,)), np.array([64 * 2**20]), 0.56))
        assert seconds == pytest.approx(milliseconds * 1e-3, rel=0.1)


def test_wraps_of_slices() -> None:
    """Goal: circuits wrap whole cubes only; cables wrap axes that span the pod. Method: named shapes."""
    assert circuit_slice((4, 4, 8)).wraps == (True,) * 3
    assert circuit_slice((2, 4, 4)).wraps == (False,) * 3
    assert cabled_slice((4, 16, 16), (16, 16, 16)).wraps == (False, True, True)
    assert SliceNetwork(Shape(8, 8, 16).dimensions, Shape(8, 8, 16).wraps) == circuit_slice((8, 8, 16))
    with pytest.raises(InputError, match="does not fit"):
        cabled_slice((4, 16, 32), (16, 16, 16))
    with pytest.raises(ValueError, match="wrap flag"):
        SliceNetwork((4, 4), (True,))


def test_one_chip_moves_nothing() -> None:
    """Goal: no collective on a single chip. Method: all three."""
    alone = SliceNetwork((1, 1, 1), (False,) * 3)
    for collective in (all_gather_s, all_reduce_s, all_to_all_s):
        assert one(collective(TPU_V4, alone, np.array([1e9]))) == 0.0


AXES = st.lists(st.sampled_from([1, 2, 4, 8, 16]), min_size=1, max_size=3).map(tuple)


@settings(deadline=None, max_examples=60)
@given(axes=AXES, volume=st.floats(1.0, 1e12), more=st.floats(1.0, 1e12))
def test_more_bytes_slower_links_or_open_axes_never_help(axes: tuple[int, ...], volume: float, more: float) -> None:
    """Goal: directions. Method: compare with more bytes, half the link rate, no wraparound."""
    ring, mesh = SliceNetwork(axes, (True,) * len(axes)), SliceNetwork(axes, (False,) * len(axes))
    slow = replace(TPU_V4, link_bytes_per_s=TPU_V4.link_bytes_per_s / 2)
    for collective in (all_gather_s, all_to_all_s):
        base = one(collective(TPU_V4, ring, np.array([volume])))
        assert one(collective(TPU_V4, ring, np.array([volume + more]))) >= base
        assert one(collective(slow, ring, np.array([volume]))) >= base
        assert one(collective(TPU_V4, mesh, np.array([volume]))) >= base


def test_a_replica_of_several_nodes_goes_over_their_network() -> None:
    """Goal: 16 A100s share 200 GB/s per node and add a step between nodes; of an all-to-all the half goes there; an
    unknown network is refused. Method: large and small arrays."""
    two = SliceNetwork((16,), (False,))
    assert one(all_gather_s(A100_80GB, two, np.array([2e11]))) == pytest.approx(15 / 16)
    assert one(all_reduce_s(A100_80GB, two, np.array([8.0]))) == pytest.approx(2 * (3 * 5e-6 + 24e-6))
    assert one(all_to_all_s(A100_80GB, two, np.array([16e12]))) == pytest.approx(8 / 16 * 1e12 / 25e9)
    with pytest.raises(InputError, match="network is unknown"):
        all_gather_s(RTX_4090, two, np.array([8.0]))


def test_twists_and_faults_come_from_the_topology() -> None:
    """Goal: a twisted 4x4x8 does all-to-all 1.75 times as fast as the plain one (bound); faults slow what they hit.
    Method: ratios of large arrays."""
    volume, plain = np.array([1e12]), circuit_slice((4, 4, 8))
    twisted = SliceNetwork((4, 4, 8), (True,) * 3, twisted=True)
    gain = one(all_to_all_s(TPU_V4, plain, volume)) / one(all_to_all_s(TPU_V4, twisted, volume))
    assert gain == pytest.approx(twist_gain(Shape(4, 4, 8, True)))
    hurt = SliceNetwork((4, 4, 8), (True,) * 3, ring_kept=(0.5, 1.0, 1.0), all_to_all_kept=0.8)
    assert one(all_to_all_s(TPU_V4, hurt, volume)) == pytest.approx(one(all_to_all_s(TPU_V4, plain, volume)) / 0.8)
    assert one(all_gather_s(TPU_V4, hurt, volume)) == pytest.approx(one(all_gather_s(TPU_V4, plain, volume)) * 6 / 5)
    assert hurt.part((0,)).ring_kept == (0.5,)
