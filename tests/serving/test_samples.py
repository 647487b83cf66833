"""Parallel samples: a prompt is computed once, its blocks are shared, the last one is copied when answers write."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from tests.serving.cases import run_kernel_on
from tests.serving.sample_cases import check_tails, draw_sample_case
from tests.serving.test_exactness import check_workload, compiled_digests, digest, uncompiled_digests
from tests.serving.test_prefix_sharing import CONFIG as ALONE
from tests.serving.test_prefix_sharing import two_prompts
from topology.errors import InputError
from workloads.kv_cache import Paged
from workloads.prefixes import with_samples
from workloads.requests import Requests
from workloads.serving import fields as f
from workloads.serving import service as service_module
from workloads.serving.batching import ChunkedPrefill, ContinuousBatching
from workloads.serving.pass_log import ended_passes
from workloads.serving.router import LeastOutstanding, PrefixAffine, RoundRobin
from workloads.serving.service import Service

FAST = 40
COUNTS = ("samples_joined", "tail_copies", "prefix_hits", "prefix_looked_for", "prefix_stored", "prefix_taken")
check_seed = partial(
    check_workload, draw=draw_sample_case, check=check_tails, counts=(*COUNTS, "swap_ns", "tier_ns", "drafted")
)
READ_NS = 7
CONFIG = replace(ALONE, blocks=1 << 12, record_requests=100)


def one_prompt(prompt: int, outputs: list[int]) -> Requests:
    """Samples of one prompt whose answers have these lengths."""
    one = Requests(np.array([0]), np.array([prompt]), np.array([1]))
    return replace(with_samples(one, len(outputs)), output_tokens=np.array(outputs))


def test_samples_agree_in_every_way_of_running() -> None:
    """Goal: samples change nothing about exactness, and no block is lost. Method: random workloads of two to five
    samples with evictions, losses, slowdowns, clients, budgets, routers, swap, tiers and drafts in macro steps, single
    steps, looked at 40 times with all blocks counted, and by the naive reference, counts of copies included."""
    totals: Counter[str] = Counter()
    for seed in range(FAST):
        check_seed(seed, totals)
    check_totals(totals, FAST)


def check_totals(totals: Counter[str], workloads: int) -> None:
    """Many samples computed nothing, many blocks were copied, much was evicted, lost, cancelled, drafted."""
    assert totals["samples_joined"] >= 10 * workloads
    assert totals["tail_copies"] >= 5 * workloads
    assert totals["evictions"] >= workloads
    assert totals["losses"] >= workloads
    assert totals["swaps_out"] >= workloads // 2
    assert totals["cancelled"] + totals["timed_out"] >= workloads // 2
    assert totals["drafted"] >= workloads


def test_samples_agree_in_plain_python() -> None:
    """Goal: the same code runs uncompiled with the same bits. Method: some workloads, without compilation."""
    assert uncompiled_digests(0, 30, draw="draw_sample_case") == compiled_digests(0, 30, draw_sample_case)


@pytest.mark.parametrize(
    ("prompt", "outputs", "copies"),
    [
        (1000, [17] * 4, 3),  # 62 whole blocks and a tail of 8 tokens
        (992, [17] * 4, 0),  # whole blocks only: the first write begins a block
        (5, [17] * 3, 2),  # less than a block
        (1000, [1] * 4, 0),  # nobody writes
        (1000, [1, 17, 1, 17], 1),  # two leave the tail to the two others
        (1000, [1, 1, 17], 0),  # one is left, who owns it
        (1000, [17], 0),
    ],
)
def test_copies_of_one_prompt(prompt: int, outputs: list[int], copies: int) -> None:
    """Goal: n samples compute their prompt once; of a partly filled last block all but one who write copy it. Method:
    one prompt alone on a replica: tokens, copies, and the blocks held in the first pass, in the second and at the end,
    by hand."""
    requests = one_prompt(prompt, outputs)
    service = Service(CONFIG, requests)
    held = []
    for ended in ended_passes(service, f.FOREVER):
        held.append(int(CONFIG.blocks - service._state.replica[0, f.R_FREE]))
        assert ended.copied_blocks == (copies if len(held) == 2 else 0)
        if service.outstanding == 0:
            break
    measures = service.finish()
    assert measures.count("prompt_tokens") == prompt
    assert measures.count("samples_joined") == len(outputs) - 1
    assert measures.count("tail_copies") == copies
    writers, whole, tail = sum(output > 1 for output in outputs), prompt // 16, int(prompt % 16 > 0)
    assert held[0] == (whole + tail if writers else 0)
    if writers:
        assert held[1] == whole + writers
        longest = -(-(prompt + 16) // 16)
        assert measures.count("most_blocks") == whole + writers * (longest - whole)
    apart = Service(replace(CONFIG, kv=Paged()), requests).finish()
    assert apart.count("prompt_tokens") == len(outputs) * prompt
    assert apart.count("tail_copies") == apart.count("samples_joined") == 0


def test_what_a_copy_costs() -> None:
    """Goal: a copy reads and writes one block at the rate of the cache. Method: four samples of 1,000 and of 1,008
    tokens; gaps between the first and the second token by hand, the difference booked as reads of others."""
    costs = replace(CONFIG.costs, kv_read_s_per_token=np.full(257, READ_NS * 1e-9))
    steps_ns, ledgers = [], []
    for prompt in (1000, 1008):
        passes = list(ended_passes(Service(replace(CONFIG, costs=costs), one_prompt(prompt, [3] * 4)), 10**9))
        assert [each.decodes for each in passes[:3]] == [0, 4, 4]
        assert all(each.numbers.tolist() == [1 + k] * 4 for k, each in enumerate(passes))
        steps_ns.append([each.end_ns - each.begin_ns for each in passes[1:]])
        ledgers.append(Service(replace(CONFIG, costs=costs), one_prompt(prompt, [3] * 4)).finish().ledger_ns)
    for name, of_copies in (("own_kv_reads", 0), ("others_kv_reads", 4 * 3 * 32 * READ_NS), ("swap", 0)):
        place = f.LEDGER.index(name)
        context = sum(sum(prompt + step for step in (0, 1)) * sign for prompt, sign in ((1000, 1), (1008, -1)))
        without = {"own_kv_reads": 4, "others_kv_reads": 12, "swap": 0}[name] * context * READ_NS
        assert ledgers[0][place] - ledgers[1][place] == without + of_copies
    assert steps_ns[0][0] + READ_NS * 4 * 8 - 3 * 32 * READ_NS == steps_ns[1][0]
    assert steps_ns[0][1] + READ_NS * 4 * 8 == steps_ns[1][1]


def test_copies_may_evict() -> None:
    """Goal: where blocks for copies are short the youngest sample gives way, and with it its copy. Method: a prompt of
    24 tokens in three blocks: all four samples are admitted, which hold two blocks together; two of them can write."""
    few = replace(CONFIG, blocks=3, watermark=0.0)
    measures = Service(few, one_prompt(24, [5] * 4)).finish()
    assert measures.count("samples_joined") == 3
    assert measures.count("evictions") == 2
    assert measures.count("tail_copies") == 1
    assert measures.count("completed") == 4
    assert measures.count("most_blocks") == 3


def test_a_sample_needs_a_slot_but_no_tokens() -> None:
    """Goal: a sample joins the pass in which its prompt ends though its budget is used up, and only where there is a
    slot. Method: a prompt of 40 tokens in chunks of 20; three slots for four samples, the fourth of which computes its
    tail again: 8 tokens."""
    config = replace(CONFIG, batching=ChunkedPrefill(budget=20, max_batch=3))
    passes = list(ended_passes(Service(config, one_prompt(40, [4] * 4)), 10**9))
    assert [each.prompt_tokens for each in passes[:4]] == [20, 20, 0, 0]
    assert passes[0].requests.size == 0
    assert passes[1].requests.tolist() == [0, 1, 2]
    measures = Service(config, one_prompt(40, [4] * 4)).finish()
    assert measures.count("prompt_tokens") == 48
    assert (measures.count("samples_joined"), measures.count("tail_copies")) == (2, 2)


@pytest.mark.parametrize("router", [RoundRobin(), LeastOutstanding(), PrefixAffine(guard=0)])
def test_samples_go_to_one_replica(router: RoundRobin) -> None:
    """Goal: all samples of a prompt go where the first one goes. Method: 30 prompts at once, three replicas."""
    rng = np.random.default_rng(3)
    prompts = Requests(np.zeros(30, dtype=np.int64), rng.integers(1, 300, size=30), rng.integers(1, 40, size=30))
    measures = Service(replace(CONFIG, replicas=3, router=router), with_samples(prompts, 3)).finish()
    assert measures.record is not None
    replicas = measures.record.replica.reshape(30, 3)
    assert (replicas == replicas[:, :1]).all()
    assert set(replicas[:, 0].tolist()) == {0, 1, 2}
    assert measures.count("samples_joined") == 60
    assert measures.count("prompt_tokens") == prompts.input_tokens.sum()


def test_samples_of_named_prompts_keep_their_names() -> None:
    """Goal: samples share beside what their prompts share already, in blocks. Method: two prompts with a common first
    piece, of one block and of two."""
    requests = with_samples(two_prompts([1, 2], [1, 3], (40, 40)), 3)
    assert Service(CONFIG, requests).finish().count("prefix_hits") == 2 + 2 + 1 + 2 + 2
    coarse = replace(two_prompts([7 << 55, 2], [7 << 55, 3], (50, 50)), hash_block_tokens=32)
    requests = with_samples(coarse, 3)
    assert requests.hash_block_tokens == 16
    assert Service(CONFIG, requests).finish().count("prefix_hits") == 3 + 3 + 2 + 3 + 3
    unnamed = with_samples(replace(coarse, hash_ids=np.array([5, 5]), hash_offsets=np.array([0, 1, 2])), 2)
    assert unnamed.hash_ids is not None
    assert unnamed.hash_ids.reshape(4, 3)[::2].tolist() == [[0, 1, 4], [0, 1, 7]]


def test_pieces_of_requests_cut_no_prompt(monkeypatch: pytest.MonkeyPatch) -> None:
    """Goal: what the kernel sees at once changes nothing. Method: random workloads in pieces of ten requests."""
    whole = compiled_digests(0, 15, draw_sample_case)
    monkeypatch.setattr(service_module, "CHUNK", 10)
    for seed, expected in enumerate(whole):
        case = draw_sample_case(seed, whole=seed % 2 == 0)
        if case.config.needs_uniforms:
            continue  # uniforms come in pieces of their own
        assert digest(run_kernel_on(case)) == expected


def test_what_can_not_be_samples_is_refused() -> None:
    """Goal: samples of different prompts, parts that cut a prompt, and sessions say so. Method: one of each."""
    one = Requests(np.array([0, 5]), np.array([10, 10]), np.array([3, 3]))
    with pytest.raises(ValueError, match="at least 1"):
        with_samples(one, 0)
    with pytest.raises(InputError, match="request 1: is a sample of another prompt"):
        replace(one, samples=2)
    with pytest.raises(InputError, match="sessions"):
        replace(one, samples=2, previous=np.array([-1, 0]))
    with pytest.raises(InputError, match="0 samples"):
        replace(one, samples=0)
    parts = iter([with_samples(one, 2).first(3), with_samples(one, 2)])
    with pytest.raises(ValueError, match="as many samples"):
        Service(replace(CONFIG, batching=ContinuousBatching()), parts).finish()
    odd = Requests(np.array([0]), np.array([100]), np.array([5]), np.array([1]), np.array([0, 1]), 20)
    with pytest.raises(ValueError, match="whole blocks of 16"):
        with_samples(odd, 2)
