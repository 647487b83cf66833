"""Measures of jobs and of the machine, from the log alone: what was delivered, and where every chip-hour went."""

from __future__ import annotations

from sim.trace import Stage, Trace


def delivered_chip_us(trace: Trace, warmup_us: int = 0) -> int:
    """Chip-microseconds of slices that run, from the end of restore to the instant of failure, after the warm-up."""
    running_us = sum(
        interval.end_us - max(interval.start_us, warmup_us)
        for interval in trace.stage_intervals()
        if interval.stage is Stage.RUNNING and interval.end_us > warmup_us
    )
    return running_us * trace.slice_chips


def delivered_share(trace: Trace, warmup_us: int = 0) -> float:
    """`delivered`: share of the pod's chip-time after the warm-up in which slices run (design: measures, section 1)."""
    if not 0 <= warmup_us < trace.horizon_us:
        raise ValueError(f"a warm-up of {warmup_us} us does not lie within the horizon of {trace.horizon_us} us")
    return delivered_chip_us(trace, warmup_us) / (trace.chips * (trace.horizon_us - warmup_us))
