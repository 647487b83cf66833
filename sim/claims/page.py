"""The list of claims, and the page that `make claims` writes."""

from __future__ import annotations

from collections.abc import Sequence

from sim.claims import computed, simulated
from sim.claims.verdicts import Claim, Finding

CLAIMS = (
    Claim(
        statement="Static availability falls with the size of a slice, reconfigurable availability holds",
        scenario="`availability` at 99.5 %, 16 years on both fabrics",
        decide=simulated.static_falls_light_holds,
        cheap=False,
    ),
    Claim(
        statement="Optics are under 5 % of the capital",
        scenario="`prices` of pods of 8, 64 and 144 cubes",
        decide=computed.optics_are_cheap,
        cheap=True,
    ),
    Claim(
        statement="Moving data costs more than arithmetic, at each level: memory, links",
        scenario="passes of Llama-3 70B on 64 TPU v4",
        decide=computed.moving_costs_more,
        cheap=True,
    ),
    Claim(
        statement="No one batch, length of chunks and policy fits all",
        scenario="`smoke`'s service, three kinds of work, four policies",
        decide=simulated.no_policy_fits_all,
        cheap=False,
    ),
    Claim(
        statement="One blocked flow slows all",
        scenario="a step of 64 sequences of Llama-3 70B, one rate at a tenth",
        decide=computed.one_blocked_flow_slows_all,
        cheap=True,
    ),
    Claim(
        statement="Optimising one layer fails where another is rigid",
        scenario="the same step, one rate doubled, all doubled",
        decide=computed.local_optimisation_fails,
        cheap=True,
    ),
    Claim(
        statement="The sequence sets the limit of latency: more chips do not make one answer come at any speed",
        scenario="a step of one sequence on 64 to 4,096 TPU v4",
        decide=computed.sequence_limits_latency,
        cheap=True,
    ),
    Claim(
        statement="Faults stay local where they can be routed around",
        scenario="one dead switch, wild-first routes, three shapes",
        decide=computed.faults_stay_local,
        cheap=True,
    ),
    Claim(
        statement="Waiting can be moved but not removed",
        scenario="`smoke`'s service at 80 % of capacity, whole prompts or chunks",
        decide=simulated.waiting_moves,
        cheap=False,
    ),
)

HEAD = """# Claims

This page is written by `make claims` (`python -m sim.claims`): every verdict is computed from the runs and computations
named beside it, and changes when they do. *Holds*, *fails*, or *depends*: it holds in some of the cases and not in
others. Prices, delays and the like are the defaults, many of them assumptions ([scenario.md](scenario.md)).

| statement | verdict | numbers | from |
| --- | --- | --- | --- |
"""


def line_of(claim: Claim, finding: Finding) -> str:
    """One line of the page."""
    cells = (claim.statement, f"**{finding.verdict.value}**", finding.numbers, claim.scenario)
    return "| " + " | ".join(cell.replace("|", "/") for cell in cells) + " |"


def claims_page(claims: Sequence[Claim] = CLAIMS) -> str:
    """The whole page, as Markdown."""
    return HEAD + "\n".join(line_of(claim, claim.decide()) for claim in claims) + "\n"
