"""Claims that are decided by runs of scenarios; everything is drawn from the scenario's own seed."""

from __future__ import annotations

from sim.claims.verdicts import Finding, Verdict, verdict_of
from sim.metrics.intervals import Estimate
from sim.report.words import number, percent
from sim.scenario import Scenario, load_scenario
from sim.studies.service_parts import calibrate
from sim.trials import Trial, Trials, paired, single_point, with_settings

SIZES = (64, 256, 1024)


def _half(estimate: Estimate) -> str:
    half = estimate.half_width
    return f"±{number(100 * half)}" if half == half else ""


def static_falls_light_holds() -> Finding:
    """Expected shares over slice sizes on both fabrics, on the same failures."""
    base = single_point(load_scenario("availability", ["sweep.failures.host.availability=[99.5 %]"]))
    study = {"slice_chips": list(SIZES), "time_share": "97 %", "horizon": "365 d", "replications": 16}
    base = with_settings(base, {"serving": None, "study.delivered": None, "study.availability": study})
    trials = Trials(executor=None)
    light, wires = (
        trials.play(with_settings(base, {"pod.fabric": name})) for name in ("reconfigurable", "static_aligned")
    )
    falls = {name: paired(t.of_jobs("expected", 64), t.of_jobs("expected", 1024)) for name, t in _named(light, wires)}
    ahead = paired(light.of_jobs("expected", 1024), wires.of_jobs("expected", 1024))
    said = "; ".join(
        f"{name} loses {100 * e.value:.1f}{_half(e)} points from 64 to 1,024 chips" for name, e in falls.items()
    )
    holds = falls["static"].ci_low > 2 * falls["reconfigurable"].ci_high and ahead.ci_low > 0
    return Finding(
        verdict=Verdict.HOLDS if holds else Verdict.FAILS,
        numbers=f"{said}; at 1,024 light is ahead by {100 * ahead.value:.1f}{_half(ahead)} (hosts up 99.5 %, 95 %)",
    )


def _named(light: Trial, wires: Trial) -> tuple[tuple[str, Trial], tuple[str, Trial]]:
    return ("reconfigurable", light), ("static", wires)


POLICIES = {
    "whole prompts, 64 at once": {"batching": {"kind": "continuous"}, "max_batch": 64},
    "whole prompts, 256 at once": {"batching": {"kind": "continuous"}, "max_batch": 256},
    "chunks of 512": {"batching": {"kind": "chunked_prefill", "budget": 512}, "max_batch": 256},
    "chunks of 4,096": {"batching": {"kind": "chunked_prefill", "budget": 4096}, "max_batch": 256},
}
WORK = {
    "short prompts, first token in 0.5 s": (256, 256, {"ttft": "0.5 s", "tpot": "60 ms"}),
    "long prompts, first token in 10 s": (8192, 256, {"ttft": "10 s", "tpot": "100 ms"}),
    "long answers, 40 ms each": (512, 2048, {"ttft": "5 s", "tpot": "40 ms"}),
}


def no_policy_fits_all() -> Finding:
    """The policy with the greatest rate within the limits, for three kinds of work."""
    base = _smoke()
    best: dict[str, str] = {}
    for work, (prompt, answer, slo) in WORK.items():
        lengths = {
            "requests": {"kind": "poisson", "input": _lognormal(prompt), "output": _lognormal(answer)}, "slo": slo
        }  # fmt: skip
        rates = {name: _capacity(base, lengths | policy) for name, policy in POLICIES.items()}
        best[work] = max(rates, key=lambda name: rates[name])
        worst = min(rates.values()) / rates[best[work]] if rates[best[work]] > 0 else 1.0
        best[work] += f" (the worst serves {percent(worst, 0)} of it)"
    winners = {text.split(" (")[0] for text in best.values()}
    return Finding(
        verdict=Verdict.HOLDS if len(winners) > 1 else Verdict.FAILS,
        numbers="; ".join(f"{work}: {name}" for work, name in best.items()) + "; rates are found to 1 %",
    )


def _capacity(base: Scenario, settings: dict[str, object]) -> float:
    section = {f"serving.services.0.{key}": value for key, value in settings.items()}
    return calibrate(with_settings(base, section), 0, "4x4x4").capacity_per_s


def _lognormal(mean: int) -> dict[str, object]:
    return {"kind": "lognormal", "mean": mean, "cv": 0.5, "min": 2, "max": 4 * mean}


def _smoke() -> Scenario:
    """The small service, alone and healthy."""
    settings = {"serving.weights": "healthy", "study.availability": None, "study.delivered": None,
                "serving.windows": {"requests": 3000, "replications": 4, "losses": 0}}  # fmt: skip
    return with_settings(single_point(load_scenario("smoke")), settings)


def waiting_moves() -> Finding:
    """Whole prompts against chunks of them, same requests: what moves from gaps between tokens to the first token."""
    base = _smoke()
    first = Trials(executor=None)
    rate = 0.8 * first.play(base).estimate_of_service("chat", "offered_requests_per_s") / 0.6
    fixed = {"serving.services.0.load": None, "serving.services.0.rate": f"{rate!r} 1/s"}
    chunks, whole = (
        first.play(with_settings(base, fixed | {"serving.services.0.batching": batching}))
        for batching in ({"kind": "chunked_prefill", "budget": 512}, {"kind": "continuous"})
    )
    changes = {
        name: paired(chunks.of_service("chat", name), whole.of_service("chat", name), lambda a, b: a / b - 1)
        for name in ("itl_p99_s", "ttft_p99_s", "request_mean_s")
    }
    gap, start, all_of_it = changes.values()
    moved = gap.ci_high < 0 < start.ci_low
    removed = all_of_it.ci_high < 0
    said = "99th percentile of gaps {}, of first tokens {}, mean of a request {}".format(
        *(f"{100 * e.value:+.1f}{_half(e)} %" for e in changes.values())
    )
    return Finding(
        verdict=verdict_of([moved, not removed]),
        numbers=f"chunks of 512 in place of whole prompts: {said} (paired, 95 %)",
    )
