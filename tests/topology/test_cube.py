"""Inside a cube: hosts, links, aligned blocks."""

from __future__ import annotations

from collections import Counter

import pytest

from topology.cube import board_traces, host_of_chip, in_rack_links, inner_links
from topology.pod import places_of


def test_links_of_a_cube() -> None:
    """Goal: 144 inner links, of which 64 board traces and 80 cables. Method: count, and count traces per host."""
    assert (len(inner_links()), len(board_traces()), len(in_rack_links())) == (144, 64, 80)
    assert set(inner_links()) == set(board_traces()) | set(in_rack_links())
    assert Counter(host_of_chip(link.low) for link in board_traces()) == dict.fromkeys(range(16), 4)


def test_hosts_of_a_cube() -> None:
    """Goal: 16 hosts of 4 chips. Method: count the chips of each."""
    assert Counter(host_of_chip(chip) for chip in places_of((4, 4, 4))) == dict.fromkeys(range(16), 4)


@pytest.mark.parametrize(("hosts", "box"), [(1, (2, 2, 1)), (2, (2, 2, 2)), (4, (2, 2, 4)), (8, (2, 4, 4))])
def test_aligned_blocks_are_boxes(hosts: int, box: tuple[int, int, int]) -> None:
    """Goal: runs of 1, 2, 4, 8 hosts are boxes of chips. Method: the chips of each run fill the box they span."""
    for first in range(0, 16, hosts):
        chips = [chip for chip in places_of((4, 4, 4)) if host_of_chip(chip) in range(first, first + hosts)]
        span = tuple(max(c[axis] for c in chips) - min(c[axis] for c in chips) + 1 for axis in range(3))
        assert span == box
        assert len(chips) == box[0] * box[1] * box[2]
