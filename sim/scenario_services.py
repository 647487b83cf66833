"""The section `serving` of a scenario: language models on slices, their requests, limits and rules of batching."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, Tag

from sim.lifetimes import Empirical, Exponential, Gamma, Lognormal, Mixture, Weibull
from sim.quantities import AdviceError
from sim.scenario_batching import (
    BatchingSection,
    ChunkedPrefillSection,
    ContinuousSection,
    DisaggregatedSection,
    Part,
    StaticSection,
)
from sim.scenario_clients import AdmissionSection, ClientsSection, DisturbanceSection
from sim.scenario_faults import FOLDER_NAME
from sim.scenario_memory import Cache, PreemptionSection, RecomputeSection, SwapSection, TiersSection
from sim.scenario_parts import Count, Section, ShapeText, SliceChips, kind_or
from sim.scenario_speculation import SpeculationSection
from topology.shape import Shape, parse_shape, shape_of_chips
from topology.units import PositiveSeconds, Share, Unit
from workloads.catalogue.chip import Chip
from workloads.collectives import SliceNetwork
from workloads.costs.layouts import Attention, Layout
from workloads.kv_cache import Contiguous, MemorySettings, Paged, PrefixSharing, blocks_for
from workloads.load.laws import (
    AzureConversation,
    DiurnalRequests,
    GammaRequests,
    OnOffRequests,
    PoissonRequests,
)
from workloads.load.lengths import EmpiricalLengths, FixedLengths, LognormalLengths
from workloads.load.replay import TraceRequests
from workloads.pass_costs import PassCosts
from workloads.prefixes import SharedPrefix
from workloads.serving.batching import Batching, ChunkedPrefill, ContinuousBatching, Disaggregated, StaticBatching
from workloads.serving.router import (
    CentralQueue,
    LeastOutstanding,
    PrefixAffine,
    RandomRouter,
    RoundRobin,
    Router,
    SloAware,
)

Load = Annotated[float, Unit("1", low=0.0, high=100.0, open_ends=True)]
"""A share of capacity; above 1 is overload."""
RATE_MAX_PER_S = 1e9
Rate = Annotated[float, Unit("1/s", high=RATE_MAX_PER_S, open_ends=True)]
"""Requests per second."""


def batch_limit(value: object) -> object:
    """A whole number of at least 1, or `unlimited`; AdviceError otherwise."""
    if value == "unlimited" or (isinstance(value, int) and not isinstance(value, bool) and value >= 1):
        return value
    raise AdviceError(f"`{value}` is no limit of a batch", "write a whole number of at least 1, or `unlimited`")


MaxBatch = Annotated[int | Literal["unlimited"], BeforeValidator(batch_limit)]


Lengths = Annotated[
    Annotated[LognormalLengths, Tag("lognormal")]
    | Annotated[FixedLengths, Tag("fixed")]
    | Annotated[EmpiricalLengths, Tag("empirical")],
    kind_or("lognormal"),
]


@dataclass(frozen=True, kw_only=True)
class _Lengths:
    """The kinds of lengths, told apart by their key `kind`."""

    input: Lengths | None = None
    output: Lengths | None = None


@dataclass(frozen=True, kw_only=True)
class Poisson(_Lengths, PoissonRequests):
    """Poisson arrivals, prompts of law `input`, answers of law `output`."""


@dataclass(frozen=True, kw_only=True)
class GammaGaps(_Lengths, GammaRequests):
    """Renewal arrivals with gamma gaps of coefficient of variation `cv` (1: Poisson; above: bursts)."""


@dataclass(frozen=True, kw_only=True)
class Diurnal(_Lengths, DiurnalRequests):
    """Arrivals at a rate that follows the hour: its mean times 1 + `swing` cos(2 pi (t - `peak`) / `period`).

    A window starts at hour 0; `load` is a share of the capacity at a steady rate.
    """


@dataclass(frozen=True, kw_only=True)
class OnOff(_Lengths, OnOffRequests):
    """Bursts: many requests for a while, few or none for a while, Poisson within each; times are exponential.

    The rate of the service is the mean of both over time.
    """


RequestKind = Annotated[
    Annotated[Poisson, Tag("poisson")]
    | Annotated[GammaGaps, Tag("gamma")]
    | Annotated[Diurnal, Tag("diurnal")]
    | Annotated[OnOff, Tag("on_off")]
    | Annotated[AzureConversation, Tag("azure_2023_conv")]
    | Annotated[TraceRequests, Tag("trace")],
    kind_or("poisson"),
]


WINDOW_MAX_S = 365 * 86_400.0
"""A steady window that takes longer than a year says nothing that a shorter one does not."""
ROUTERS: dict[str, Router] = {
    rule.kind: rule
    for rule in (LeastOutstanding(), RoundRobin(), RandomRouter(), PrefixAffine(), CentralQueue(), SloAware())
}

PLUG_INS: dict[str, tuple[Any, ...]] = {
    "failures.COMPONENT.life, repair": (Exponential, Weibull, Lognormal, Gamma, Empirical, Mixture),
    "serving.services.N.requests": (Poisson, GammaGaps, Diurnal, OnOff, AzureConversation, TraceRequests),
    "serving.services.N.requests.input, output": (LognormalLengths, FixedLengths, EmpiricalLengths),
    "serving.services.N.batching": (ContinuousSection, ChunkedPrefillSection, StaticSection, DisaggregatedSection),
    "serving.services.N.cache": (Paged, Contiguous, PrefixSharing),
    "serving.services.N.preemption": (RecomputeSection, SwapSection),
    "serving.services.N.router": (LeastOutstanding, RoundRobin, RandomRouter, PrefixAffine, CentralQueue, SloAware),
}
"""All plug-ins by the key at which a scenario chooses one of them."""


class WindowsSection(Section):
    """How much of the service is simulated token by token: windows, weighted to the horizon."""

    requests: Annotated[int, Field(ge=100, le=10_000_000)] = 100_000
    """Requests of each steady window, one window per number of replicas up; at least 100."""
    replications: Annotated[int, Field(ge=1, le=10_000)] = 4
    """Independent windows; at least 2 give an interval."""
    losses: Annotated[int, Field(ge=0, le=100_000)] = 32
    """Windows around sampled losses and recoveries."""
    record: Annotated[int, Field(ge=0, le=100_000)] = 0
    """Requests of the first window with all replicas up that the table `requests` keeps, for `opticube export`,
    and of which one is followed token by token (`request_life`)."""


class LoadCurveSection(Section):
    """How a service behaves as requests come faster, all replicas up: windows per load, and the goodput rate."""

    loads: Annotated[tuple[Load, ...], Field(min_length=1, max_length=40)] = (0.2, 0.4, 0.6, 0.8, 0.9, 1.0, 1.1, 1.2)
    """Shares of the service's capacity, in any order; above 1 is overload."""
    requests: Annotated[int, Field(ge=100, le=10_000_000)] = 20_000
    """Requests of each window."""
    replications: Annotated[int, Field(ge=1, le=1_000)] = 2
    """Independent windows per load; at least 2 give an interval."""


class EffectsSection(Section):
    """What changes do alone and together: every combination of swept values against the first of each, paired."""

    measure: str = "tokens_in_time"
    """A measure of services, such as `tokens_in_time` or `goodput_rate_requests_per_s`."""
    names: dict[str, dict[str, str | int | float]] = Field(default_factory=dict)
    """Combinations that have a name: values of swept keys, such as `{poor cache: {data: paged, task: best}}`. `best`,
    and a key left out, is the value with which the measure is best."""


class SloSection(Section):
    """The promise to users: a request is in time when it meets both limits."""

    ttft: PositiveSeconds
    """Limit of the time to first token."""
    tpot: PositiveSeconds
    """Limit of the mean time per later token."""
    attainment: Share = 0.9
    """Share of requests that must be in time; also what `load` counts as capacity."""


class ServiceSection(Section):
    """One language model, served by replicas on slices of the pod."""

    name: Annotated[str, Field(pattern=FOLDER_NAME)]
    """Name of the service in tables."""
    model: str
    """The model, by its key: `llama3_1_405b`, `llama3_70b`, `palm_540b` (see `opticube list models`)."""
    chip: str = "tpu_v4"
    """The chip, by its key (see `opticube list chips`)."""
    slice: ShapeText | None = None
    """Shape of the slice of one replica, such as `8x8x16`; `v4-2048` is read as cores."""
    slice_chips: SliceChips | None = None
    """In place of `slice`: chips of one replica, in the stated default shape."""
    replicas: Count = 1
    """Number of replicas, each on a slice of its own."""
    load: Load | None = None
    """Share of the service's capacity at which requests arrive."""
    rate: Rate | None = None
    """In place of `load`: requests per second for the whole service, such as `5 requests/s`."""
    requests: RequestKind
    """When requests arrive and how long their prompts and answers are."""
    clients: ClientsSection = ClientsSection()
    """What clients do when an answer is late."""
    admission: AdmissionSection = AdmissionSection()
    """Limits at the door of a replica."""
    priorities: tuple[Share, ...] = ()
    """Shares of the requests by class of priority, the highest first, such as `[20 %, 80 %]`; they add up to 1."""
    slo: SloSection
    """The limits that make a request in time."""
    batching: BatchingSection = ContinuousSection()
    """How an iteration is filled: `continuous`, `chunked_prefill` with a token budget, `static` batches, or
    `disaggregated` (prompts and answers on parts of their own)."""
    router: Literal["least_outstanding", "round_robin", "random", "prefix_affine", "central", "slo_aware"] = (
        "least_outstanding"
    )
    """Which replica takes a request: `least_outstanding`, `round_robin`, `random`, `prefix_affine` (the one whose
    cache holds most of the prompt, unless it has more than 8 requests above the fewest), `slo_aware` (the least
    predicted time to first token), or one `central` queue for all."""
    layout: Layout = Layout.WEIGHT_STATIONARY_2D
    """How weights meet tokens in a decode pass."""
    prefill_layout: Layout | None = None
    """The same for passes with prompt tokens; the fastest of all where it is left out."""
    attention: Attention = Attention.HEADS_X_BATCH
    """How keys and values of a decode step are spread over chips: `heads`, `batch`, `heads_x_batch`, `context`."""
    scores: Literal["on_chip", "in_memory"] = "on_chip"
    """Where attention keeps its scores: `on_chip` in tiles (FlashAttention), or `in_memory`, as naive kernels do: all
    scores of a prompt, not the causal half, written and read twice."""
    weights: Literal["bf16", "int8", "fp8"] = "bf16"
    """Number format of the weights."""
    kv: Literal["bf16", "int8", "fp8"] = "bf16"
    """Number format of the KV cache."""
    cache: Cache = Paged()
    """How the KV cache is given out: `paged` (blocks of 16 tokens), `contiguous` (one piece per request), or
    `prefix_sharing` (paged; equal leading blocks of prompts are kept once)."""
    preemption: PreemptionSection = RecomputeSection()
    """What becomes of the KV of a request that is evicted for want of blocks: `recompute`, or `swap` to host memory."""
    tiers: TiersSection | None = None
    """Memory below the cache to which shared prefixes move down: hosts, then a remote store; left out, none."""
    speculation: SpeculationSection | None = None
    """Speculative decoding: a draft model, and how many of its tokens are accepted; left out, one token per step."""
    shared_prefix: SharedPrefix | None = None
    """Common beginnings of prompts, for requests whose own file names none."""
    samples: Count = 1
    """Answers to each prompt, all of its one length (assumption). Each counts as a request, in rates and windows too:
    prompts come `samples` times more rarely. More than one needs `cache: {kind: prefix_sharing}`."""
    utilisation: Share = 0.9
    """Share of memory that weights, activations and KV cache may fill together."""
    activation_reserve: Annotated[float, Unit("1", low=0.0, high=1.0)] = 0.05
    """Share of memory kept for activations."""
    max_batch: MaxBatch = 256
    """Most sequences of a batch, or `unlimited`."""

    def rate_fault(self, rate_per_s: float, requests: int) -> tuple[str, str] | None:
        """What is wrong with a rate at which `requests` arrive, and what to write; None where nothing is."""
        if requests / rate_per_s > WINDOW_MAX_S:
            years = requests / rate_per_s / WINDOW_MAX_S
            what = f"{requests:,} requests at {rate_per_s:.3g} requests/s take {years:,.1f} years"
            return what, "write a higher rate or load, or fewer `serving.windows.requests`, so that a year is enough"
        if rate_per_s >= RATE_MAX_PER_S:
            return f"{rate_per_s:.3g} requests/s are more than the clock can tell apart", "write a lower rate or load"
        return None

    def shape(self) -> Shape:
        """The shape of one replica's slice."""
        return parse_shape(self.slice) if self.slice is not None else shape_of_chips(self.slice_chips or 0)

    def batching_rule(self) -> Batching:
        """The rule by which a pass is filled, with `max_batch`; AdviceError where they do not go together."""
        limit = None if self.max_batch == "unlimited" else self.max_batch
        if isinstance(self.batching, StaticSection):
            if limit is None:
                raise AdviceError("a static batch needs an end", "write a `max_batch` such as 32")
            return StaticBatching(max_batch=limit, wait_s=self.batching.wait)
        if isinstance(self.batching, ChunkedPrefillSection):
            if limit is None or self.batching.budget <= limit:
                what = f"prompts could wait for ever: a batch of {self.max_batch} sequences fills the budget of tokens"
                raise AdviceError(what, "write a `budget` greater than the service's `max_batch`")
            return ChunkedPrefill(budget=self.batching.budget, max_batch=limit)
        return ContinuousBatching(max_batch=limit)

    @property
    def parts(self) -> int:
        """Parts of the slice of a replica, each of which the token kernel knows as a replica."""
        return self.batching.parts if isinstance(self.batching, DisaggregatedSection) else 1

    def part_of(self, shape: Shape) -> Part | None:
        """One part of a slice of `shape` (the whole, unless disaggregated); None where it can not be cut."""
        return Part.of(shape, self.parts)

    def network_of(self, shape: Shape) -> SliceNetwork | None:
        """The circuits of one part of a slice of `shape`; None where it can not be cut."""
        part = self.part_of(shape)
        return None if part is None else part.network(self._over, shape)

    @property
    def _over(self) -> Literal["network", "ici"]:
        return self.batching.over if isinstance(self.batching, DisaggregatedSection) else "network"

    def link_of(self, shape: Shape, chip: Chip) -> float | None:
        """Bytes per second between the parts of a slice of `shape`; None where nothing tells it."""
        part = self.part_of(shape)
        if not isinstance(self.batching, DisaggregatedSection) or part is None:
            return None
        return self.batching.link or part.link_bytes_per_s(self.batching.over, chip)

    def members(self, replica: int) -> tuple[int, ...]:
        """The replicas of the token kernel that go down with one of the service's `replicas`."""
        prefills = self.batching.prefill_parts if isinstance(self.batching, DisaggregatedSection) else 1
        decodes = self.parts - prefills
        first, second = replica * prefills, self.replicas * prefills + replica * decodes
        return (*range(first, first + prefills), *range(second, second + decodes))

    def disaggregated_rule(
        self, costs: PassCosts, layers: int, replicas: int, link_bytes_per_s: float, blocks: int
    ) -> Disaggregated | None:
        """The rule of a disaggregated service of `replicas` replicas, once the costs are known; None for others.

        Of a contiguous cache a part of `blocks` blocks holds so many pieces, and so many sequences at most.
        """
        if not isinstance(self.batching, DisaggregatedSection):
            return None
        limit = None if self.max_batch == "unlimited" else self.max_batch
        if isinstance(self.cache, Contiguous):
            pieces = max(1, blocks // blocks_for(self.longest_reserved_tokens))
            limit = pieces if limit is None else min(limit, pieces)
        return Disaggregated(
            prefill_replicas=replicas * self.batching.prefill_parts,
            transfer_s_per_token=costs.transfer_s_per_token(link_bytes_per_s),
            layers=layers,
            budget=self.batching.budget,
            max_batch=limit,
        )

    def batching_fault(self) -> tuple[str, str] | None:
        """What is wrong with how passes are filled, and what to write; None where nothing is."""
        try:
            self.batching_rule()
        except AdviceError as fault:
            return fault.what, fault.write
        if isinstance(self.batching, DisaggregatedSection):
            if self.batching.prefill_parts >= self.parts:
                return "no part is left to decode", f"write `prefill_parts` below {self.parts}"
            if self.part_of(self.shape()) is None:
                what = f"{self.shape()} can not be cut into {self.parts} equal parts along its longest side"
                return what, "write `parts` that divide it, or another slice"
        return None

    @property
    def has_clients(self) -> bool:
        """Whether requests may end otherwise than by an answer: clients act, or limits of admission turn them away."""
        return self.clients != ClientsSection() or self.admission != AdmissionSection()

    @property
    def names_prefixes(self) -> bool:
        """Whether the requests themselves say which blocks of their prompts are shared (a trace is read for it)."""
        if isinstance(self.requests, TraceRequests):
            return self.requests.trace.requests.hash_ids is not None
        return getattr(self.requests, "sessions", None) is not None

    def router_rule(self) -> Router:
        """The rule by which a replica is chosen."""
        return ROUTERS[self.router]

    @property
    def longest_reserved_tokens(self) -> int:
        """The most tokens of cache that one request takes: its own at its end, or what `cache` reserves for it."""
        longest = self.requests.longest_tokens
        reserves = isinstance(self.cache, Contiguous)
        return max(longest, self.cache.reserved_tokens(longest, 1)) if reserves else longest

    def memory(self) -> MemorySettings:
        """How a replica uses its memory."""
        return MemorySettings(
            attention=self.attention,
            weights=self.weights,
            kv=self.kv,
            utilisation=self.utilisation,
            activation_reserve=self.activation_reserve,
        )


class ServingSection(Section):
    """Language models that are served on the pod, each request simulated token by token."""

    weights: Literal["availability", "healthy"] = "availability"
    """`availability`: time in each number of replicas up comes from the histories of `study.availability`.
    `healthy`: all replicas are up all the time."""
    windows: WindowsSection = WindowsSection()
    """How much is simulated token by token."""
    load_curve: LoadCurveSection | None = None
    """Attainment, goodput and latencies over the load; left out, none are simulated."""
    disturbance: DisturbanceSection | None = None
    """A slowdown of all replicas for a while, told by the arrivals before, in and after it; left out, there is none."""
    effects: EffectsSection | None = None
    """How combinations of swept values compare with the first of each; left out, they are not compared."""
    services: Annotated[tuple[ServiceSection, ...], Field(min_length=1)]
    """The services; their slices share the pod."""
