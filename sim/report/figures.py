"""`Result.plot`: every picture of a run as a method that returns matplotlib axes."""

from __future__ import annotations

from sim.report.bars import chip_hours_by_use, request_ledger
from sim.report.context import ReportContext, Tables
from sim.report.curves import availability_curves, promise_cubes
from sim.report.disturbance_pictures import answered_over_time
from sim.report.effect_pictures import effects_of_changes
from sim.report.fleet_pictures import waits_of_fleet
from sim.report.ladder import slice_size_ladder
from sim.report.life_pictures import life_of_request
from sim.report.load_pictures import goodput_over_load, latency_distributions
from sim.report.operations import cubes_over_time, operations_chip_hours, recovery_waterfall, wait_over_load
from sim.report.pass_pictures import errors_of_times, passes_over_contexts, passes_over_models
from sim.report.shared_pictures import shared_pod_day
from sim.report.story import failure_story
from sim.report.style import Panels
from sim.report.token_pictures import time_over_chips, traffic_by_level
from sim.report.variants import variants_of
from sim.report.waterfall import tokens_waterfall


class Plots:
    """The pictures of one run. Each method draws anew and returns its axes; `axes.figure.savefig(...)` keeps them.

    Where other keys than fabric and host availability are swept, they show the first combination of these.
    """

    def __init__(self, tables: Tables, context: ReportContext) -> None:
        self._whole, self._tables, self._context = tables, variants_of(tables)[0].tables, context

    def availability(self) -> Panels:
        """Availability over slice size, a panel per host availability."""
        return availability_curves(self._tables)

    def waterfall(self) -> Panels:
        """Tokens per second of each service, from the peak of its chips to tokens in time."""
        return tokens_waterfall(self._tables)

    def promise(self) -> Panels:
        """Cubes that a promise takes over slice size, all fabrics."""
        return promise_cubes(self._tables)

    def failure(self, service: str | None = None) -> Panels:
        """Tokens per second through one failure, on static and reconfigurable pods, and the requests caught in it."""
        return failure_story(self._tables, service=service)

    def slice_sizes(self) -> Panels:
        """Time to first token and cost per token over slice sizes."""
        return slice_size_ladder(self._tables, limits=self._context.limits)

    def effects(self) -> Panels:
        """What changes do alone and together: every combination of swept values, and where its changes would lead."""
        return effects_of_changes(self._tables)

    def disturbance(self) -> Panels:
        """Who is answered before, in and after a slowdown, by the instant of arrival."""
        return answered_over_time(self._tables)

    def goodput(self) -> Panels:
        """Requests in time over the rate at which they arrive, and the goodput rate."""
        return goodput_over_load(self._tables, limits=self._context.limits)

    def latencies(self) -> Panels:
        """Distributions of the latencies, a line per load."""
        return latency_distributions(self._tables, limits=self._context.limits)

    def life(self, service: str | None = None) -> Panels:
        """One recorded request, token by token: the one with the longest gap between two tokens."""
        return life_of_request(self._tables, service=service)

    def traffic(self) -> Panels:
        """Bytes and seconds of a token by level of memory."""
        return traffic_by_level(self._tables)

    def floor(self) -> Panels:
        """Time per token over chips, down to what no number of chips takes away."""
        return time_over_chips(self._tables)

    def ledger(self) -> Panels:
        """Where the seconds of a request go."""
        return request_ledger(self._tables)

    def chip_hours(self) -> Panels:
        """What the chips did."""
        return chip_hours_by_use(self._tables)

    def operations(self) -> Panels:
        """What the chips of a pod in operation did."""
        return operations_chip_hours(self._tables)

    def cubes(self) -> Panels:
        """Every cube of a pod in operation over time."""
        return cubes_over_time(self._tables)

    def measured_times(self) -> Panels:
        """Errors of computed times against measured ones."""
        return errors_of_times(self._tables)

    def models(self) -> Panels:
        """Models by size: the slice that fits, time and cost per token, longest context, cache per token."""
        return passes_over_models(self._tables)

    def contexts(self) -> Panels:
        """A token over the context: its time, its bytes from memory, the smallest slice."""
        return passes_over_contexts(self._tables)

    def shared_day(self) -> Panels:
        """Two days of a pod that serves and trains."""
        return shared_pod_day(self._tables)

    def fleet_waits(self) -> Panels:
        """Shares of jobs that wait longer than a time, with own queues and behind one."""
        return waits_of_fleet(self._tables)

    def recovery(self) -> Panels:
        """The mean recovery of a lost job, stage after stage."""
        return recovery_waterfall(self._tables)

    def wait(self) -> Panels:
        """Mean wait of jobs over the load, where that is swept."""
        return wait_over_load(self._whole)
