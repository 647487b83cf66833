"""What a slice with dead links still gives: kept shares of all-to-all and of ring collectives, slowdown of a step."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, MutableMapping
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from topology.pod import DIMENSIONS, Grid
from topology.routing.best import best_routes, wild_first_routes
from topology.routing.channels import CHANNELS_PER_CHIP, Torus, torus_of_shape
from topology.routing.deadlock import prove
from topology.routing.faults import DeadLink, link_numbers
from topology.routing.healthy import best_healthy_load
from topology.routing.loads import dimension_order_loads, even_split_loads
from topology.routing.methods import Method, method_of
from topology.routing.optimal import Flows
from topology.routing.rings import Kept, ring_kept
from topology.routing.symmetry import normal_form
from topology.shape import Shape
from topology.torus import Wraps

Cache = MutableMapping[str, dict[str, Any]]
NUMBERS_VERSION = 3
"""Part of every cache key: to be raised when a method's numbers change."""


@dataclass(frozen=True, kw_only=True, slots=True)
class StepMix:
    """Shares of a healthy step's time that wait for the network: in all-to-all, and in rings along x, y, z."""

    name: str
    all_to_all: float = 0.0
    rings: Kept = (0.0, 0.0, 0.0)

    def __post_init__(self) -> None:
        """Check the shares."""
        if min(self.all_to_all, *self.rings) < 0 or self.all_to_all + sum(self.rings) > 1:
            raise ValueError(f"the shares of {self.name} must not be negative nor sum to more than 1")


STATED_MIXES = (
    StepMix(name="RM-1", all_to_all=0.08),
    StepMix(name="BERT-1", rings=(0.006, 0.006, 0.006)),
    StepMix(name="LLM-1", all_to_all=0.03, rings=(0.012, 0.012, 0.012)),
    StepMix(name="RM-4", all_to_all=0.36, rings=(0.03, 0.03, 0.03)),
)
"""Four mixes (assumption: the published models' mixes are not known). They are set so that wild-first routes on 8x8x8
with one dead switch come near the published slowdowns 0.5, 1.2, 2.6 and 8.6 % (NSDI 2024, Table 3): no prediction."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Degradation:
    """What is kept under a set of dead links by one method; shares are relative to the best healthy routes.

    `all_to_all_kept` is 0 where the slice is cut in two (`connected` is False) or the method has no route for some
    pairs (`unserved_pairs`). No routes of the method keep more than (1 + `gap`) of it. `ring_kept` is what ring
    collectives along x, y, z keep with all three axes busy, `ring_kept_alone` with one axis busy at a time.
    `deadlock_free` tells whether the routes are proved free of deadlock with so many `virtual_channels`; both are None
    where there are no routes, or where the flows are too many to be kept and followed.
    """

    method: Method
    connected: bool
    unserved_pairs: int
    all_to_all_kept: float
    gap: float
    ring_kept: Kept
    ring_kept_alone: Kept
    virtual_channels: int | None = None
    deadlock_free: bool | None = None

    @property
    def routed(self) -> bool:
        """Whether every pair of chips has a route, and the routes are not known to deadlock."""
        return self.connected and self.unserved_pairs == 0 and self.deadlock_free is not False

    def step_slowdown(self, mix: StepMix) -> float:
        """How much longer a step takes, as a share of the healthy one; infinite where something has no route.

        Rings of several axes in one mix are taken to run at once.
        """
        busy_axes = sum(share > 0 for share in mix.rings)
        rings = self.ring_kept if busy_axes > 1 else self.ring_kept_alone
        parts = [(mix.all_to_all, self.all_to_all_kept), *zip(mix.rings, rings, strict=True)]
        return sum(share * (1.0 / kept - 1.0 if kept > 0 else float("inf")) for share, kept in parts if share > 0)


def degradation(
    shape: Shape,
    dead_links: Iterable[DeadLink | tuple[Grid, int]],
    method: Method | str = Method.WILD_FIRST,
    *,
    wraps: Wraps | None = None,
    cache: Cache | None = None,
) -> Degradation:
    """What a slice of this shape keeps with these links dead, by `method`; `wraps` as for static wiring.

    `cache` maps a text (method, torus and the normal form of the fault) to what was found, in plain lists and numbers:
    a dict, or a mapping that is kept on disk. Faults that are alike share one entry and get equal answers.
    InputError for a link that the slice does not have, or an unknown method.
    """
    chosen = method_of(method)
    torus = torus_of_shape(shape, wraps)
    normal = normal_form(torus, link_numbers(torus, dead_links))
    key = cache_key(torus, normal.links, chosen)
    known = None if cache is None else cache.get(key)
    if known is None:
        known = asdict(_degradation(torus, np.array(normal.links, dtype=np.int64), chosen))
        known |= {name: list(known[name]) for name in ("ring_kept", "ring_kept_alone")}
        known["method"] = str(chosen)
        if cache is not None:
            cache[key] = known
    x, y, z = normal.turned
    rings = {name: (known[name][x], known[name][y], known[name][z]) for name in ("ring_kept", "ring_kept_alone")}
    return Degradation(**{**known, **rings, "method": chosen})


def cache_key(torus: Torus, links: tuple[int, ...], method: Method) -> str:
    """Name of a fault in its normal form, for a cache: readable in front, a digest of everything behind."""
    everything = (NUMBERS_VERSION, torus.dimensions, torus.wraps, torus.shifts, links)
    digest = hashlib.sha256(repr(everything).encode()).hexdigest()[:24]
    size = "x".join(map(str, torus.dimensions))
    return f"{method}-{size}-{len(links)}-{digest}"


def is_connected(torus: Torus, links: NDArray[np.int64]) -> bool:
    """Whether every chip still reaches every other one."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    alive = np.flatnonzero(torus.alive(links))
    ends = (alive // CHANNELS_PER_CHIP, torus.head[alive])
    graph = coo_array((np.ones(alive.size, dtype=np.int8), ends), shape=(torus.chips, torus.chips))
    return int(connected_components(graph, directed=False)[0]) == 1


def _degradation(torus: Torus, links: NDArray[np.int64], method: Method) -> Degradation:
    """The degradation of a fault in its normal form."""
    connected = is_connected(torus, links)
    found = _NO_ROUTES
    if torus.chips == 1:
        found = _AllToAll(kept=1.0)
    elif connected:
        found = _all_to_all(torus, links, method)
    channels, free = _proof(torus, links, method, found)
    alone = [ring_kept(torus, links, method, (axis,))[axis] for axis in range(DIMENSIONS)]
    return Degradation(
        method=method,
        connected=connected,
        unserved_pairs=found.unserved_pairs,
        all_to_all_kept=0.0 if free is False else found.kept,
        gap=found.gap,
        ring_kept=ring_kept(torus, links, method),
        ring_kept_alone=(alone[0], alone[1], alone[2]),
        virtual_channels=channels,
        deadlock_free=free,
    )


class _AllToAll(NamedTuple):
    """Routes of all pairs: share kept, how far from the best of their form, pairs without one; flows of best routes."""

    kept: float = 0.0
    gap: float = 0.0
    unserved_pairs: int = 0
    flows: Flows | None = None


_NO_ROUTES = _AllToAll()


def _all_to_all(torus: Torus, links: NDArray[np.int64], method: Method) -> _AllToAll:
    """What a method makes of all-to-all on a slice that holds together."""
    healthy = best_healthy_load(torus)
    if method in (Method.DIMENSION_ORDER, Method.EVEN_SPLIT):
        loads = (dimension_order_loads if method is Method.DIMENSION_ORDER else even_split_loads)(torus, links)
        if loads.unserved_pairs:
            return _AllToAll(unserved_pairs=loads.unserved_pairs)
        return _AllToAll(min(1.0, healthy / loads.greatest))
    if method is Method.OPTIMAL:
        flows = best_routes(torus, links)
        return _AllToAll(min(1.0, healthy / flows.greatest), max(0.0, float(flows.gap)), flows=flows)
    mixture = wild_first_routes(torus, links)
    if mixture is None:
        return _AllToAll(unserved_pairs=torus.chips * (torus.chips - 1))
    return _AllToAll(min(1.0, healthy / mixture.greatest), max(0.0, float(mixture.gap)))


def _proof(torus: Torus, links: NDArray[np.int64], method: Method, found: _AllToAll) -> tuple[int | None, bool | None]:
    """Virtual channels of the routes, and whether they are proved free of deadlock under these."""
    if not found.kept or torus.chips == 1 or (found.flows is not None and not found.flows.flow.shape[0]):
        return None, None
    proof = prove(torus, links, method, flows=found.flows)
    return proof.virtual_channels, proof.holds
