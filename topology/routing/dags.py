"""Flows of one source without rounds: cancelling rounds, exact loads from arrival shares, order of chips; compiled."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from topology.compilation import compiled
from topology.routing.channels import CHANNELS_PER_CHIP

LEAST_FLOW = 1e-7
"""Flows below this share of a unit are rounding."""


@compiled
def order_of_chips(head: NDArray[np.int32], used: NDArray[np.bool_], order: NDArray[np.int32]) -> int:
    """Put chips into an order in which all used channels (N * 6,) lead onwards; how many fit (N: no rounds)."""
    chips = head.size // CHANNELS_PER_CHIP
    waiting = np.zeros(chips, dtype=np.int32)
    for channel in range(head.size):
        if used[channel]:
            waiting[head[channel]] += 1
    count = 0
    for chip in range(chips):
        if waiting[chip] == 0:
            order[count] = chip
            count += 1
    at = 0
    while at < count:
        chip = order[at]
        at += 1
        for channel in range(chip * CHANNELS_PER_CHIP, (chip + 1) * CHANNELS_PER_CHIP):
            if used[channel]:
                waiting[head[channel]] -= 1
                if waiting[head[channel]] == 0:
                    order[count] = head[channel]
                    count += 1
    return count


@compiled
def _cancel_rounds(head: NDArray[np.int32], flow: NDArray[np.float64], used: NDArray[np.bool_]) -> None:
    """Take the least flow of each round off all of its channels, until there is no round."""
    chips = head.size // CHANNELS_PER_CHIP
    order = np.empty(chips, dtype=np.int32)
    while order_of_chips(head, used, order) < chips:
        # every chip that is left over has a used channel from another such chip: walk back until one comes twice
        left = np.ones(chips, dtype=np.bool_)
        for i in range(order_of_chips(head, used, order)):
            left[order[i]] = False
        by = np.full(chips, -1, dtype=np.int32)
        for channel in range(head.size):
            if used[channel] and left[channel // CHANNELS_PER_CHIP] and left[head[channel]]:
                by[head[channel]] = channel
        chip = 0
        while not left[chip]:
            chip += 1
        for _ in range(chips):
            chip = by[chip] // CHANNELS_PER_CHIP
        least, start = flow[by[chip]], chip
        at = by[chip] // CHANNELS_PER_CHIP
        while at != start:
            least = min(least, flow[by[at]])
            at = by[at] // CHANNELS_PER_CHIP
        at = start
        while True:
            channel = by[at]
            flow[channel] -= least
            if flow[channel] <= LEAST_FLOW:
                flow[channel], used[channel] = 0.0, False
            at = channel // CHANNELS_PER_CHIP
            if at == start:
                break


@compiled
def clean_flow(head: NDArray[np.int32], source: int, flow: NDArray[np.float64]) -> bool:
    """Make a flow (N * 6,) of a unit from `source` to every chip exact, in place; False where a chip gets nothing.

    Traces and rounds go; the shares in which each chip's traffic arrives by its channels stay, and fix all flows.
    """
    chips = head.size // CHANNELS_PER_CHIP
    used = flow > LEAST_FLOW
    for channel in range(head.size):
        if head[channel] == source:
            used[channel] = False
        if not used[channel]:
            flow[channel] = 0.0
    _cancel_rounds(head, flow, used)
    order = np.empty(chips, dtype=np.int32)
    order_of_chips(head, used, order)
    arriving, leaving = np.zeros(chips), np.ones(chips)
    for channel in range(head.size):
        if used[channel]:
            arriving[head[channel]] += flow[channel]
    for back in range(chips - 1, -1, -1):
        chip = order[back]
        for channel in range(chip * CHANNELS_PER_CHIP, (chip + 1) * CHANNELS_PER_CHIP):
            if used[channel]:
                flow[channel] *= leaving[head[channel]] / arriving[head[channel]]
                leaving[chip] += flow[channel]
        if chip != source and arriving[chip] <= 0.0:
            return False
    return True
