"""Which options of a service go together; what does not is refused in words."""

from __future__ import annotations

from numbers import Integral
from typing import TYPE_CHECKING

from workloads.kv_cache import Contiguous, PrefixSharing
from workloads.serving.batching import Disaggregated, StaticBatching
from workloads.serving.drafts import speculative_costs
from workloads.serving.preemption import Swap
from workloads.serving.router import CentralQueue, PrefixAffine, SloAware

if TYPE_CHECKING:
    from workloads.serving.service import ServiceConfig


def check_numbers(config: ServiceConfig) -> None:
    """Raise ValueError where a count is no whole number in its range, or a limit or share no number in its."""
    for name, least in (("blocks", 1), ("replicas", 1), ("record_requests", 0)):
        count = getattr(config, name)
        if not isinstance(count, Integral) or count < least:
            raise ValueError(f"{name} of {count!r}: write a whole number of at least {least}")
    for name in ("ttft_limit_s", "tpot_limit_s"):
        limit_s = getattr(config, name)
        if limit_s is not None and not limit_s > 0:
            raise ValueError(f"{name} of {limit_s!r}: write seconds above 0, or None for no limit")
    if not 0 <= config.watermark < 1:
        raise ValueError(f"watermark must be a share in [0, 1), not {config.watermark:g}")


def check_together(config: ServiceConfig) -> None:
    """Raise ValueError, saying why, where two options of a service make no sense together."""
    static = isinstance(config.batching, StaticBatching)
    if static and isinstance(config.kv, PrefixSharing):
        raise ValueError("static batches pad their prompts: they can not share prefixes; choose another batching")
    if isinstance(config.router, PrefixAffine) and not isinstance(config.kv, PrefixSharing):
        raise ValueError("the prefix-affine router needs a cache that shares prefixes (kv=PrefixSharing())")
    if static and config.measure_waste:
        raise ValueError("the waste of static batches is not measured: their padding is (`padded_tokens`)")
    if config.admission.max_predicted_ttft_s is not None and isinstance(config.router, CentralQueue):
        raise ValueError("a central queue predicts no time to first token: leave out max_predicted_ttft_s")
    if isinstance(config.preemption, Swap) and (static or isinstance(config.kv, Contiguous)):
        raise ValueError("nothing is ever evicted where all is reserved at admission: swap has nothing to do")
    if config.tiers is not None and not isinstance(config.kv, PrefixSharing):
        raise ValueError("tiers keep prefixes that prompts share: they need a cache that shares them")
    if config.speculation is not None:
        if static or isinstance(config.batching, Disaggregated):
            raise ValueError("speculation is for replicas that join prompts and answers: continuous or chunked_prefill")
        if config.measure_waste:
            raise ValueError("waste is measured in closed form by steps of one token: not with speculation")
        speculative_costs(config.costs, config.speculation)
    if isinstance(config.batching, Disaggregated):
        _check_pools(config, config.batching)


def _check_pools(config: ServiceConfig, batching: Disaggregated) -> None:
    """The same for disaggregated replicas."""
    if batching.prefill_replicas >= config.replicas:
        raise ValueError("a disaggregated service needs replicas that decode beside those that prefill")
    if isinstance(config.kv, Contiguous):
        raise ValueError("disaggregated replicas need a paged KV cache")
    if isinstance(config.router, CentralQueue | SloAware):
        raise ValueError(
            "replicas that compute prompts take turns or the least busy one: no central queue, no forecasts"
        )
    if isinstance(config.preemption, Swap):
        raise ValueError("disaggregated replicas send back what they evict: swap is for replicas that do both")
