"""What the keys of requests mean: laws of arrivals and lengths, sessions, traces. For the page of scenario keys."""

from __future__ import annotations

_DRAWN = ("Poisson", "GammaGaps", "Diurnal", "OnOff")

REQUEST_ASSUMPTIONS = ("Diurnal.peak", "OnOff.off_share", "Sessions.return_cv", "Sessions.block_tokens")
"""Keys whose default is a guess of this project."""

REQUEST_MEANINGS = {
    **{f"{law}.input": "Law of the prompt's length, in tokens; with `sessions`: of what a turn adds."
       for law in _DRAWN},
    **{f"{law}.output": "Law of the answer's length, in tokens." for law in _DRAWN},
    **{f"{law}.pairs": "In place of `input` and `output`: pairs of prompt and answer out of a trace file of yours."
       for law in _DRAWN},
    **{f"{law}.rank_correlation": "Rank correlation (Spearman) of prompt and answer, by a Gaussian copula."
       for law in _DRAWN},
    **{f"{law}.sessions": "Users who come back, their prompts with all that was said before." for law in _DRAWN},
    "GammaGaps.cv": "Standard deviation of the gaps between arrivals over their mean; 1 is Poisson, above come bursts.",
    "Diurnal.swing": "How far the rate goes up and down: 0 not at all, 1 down to nothing.",
    "Diurnal.peak": "When the rate is greatest, from the start of the period.",
    "Diurnal.period": "After this the rate repeats.",
    "Diurnal.cv": "As for `gamma`, on the clock of expected arrivals; 1 is a Poisson process of that rate.",
    "OnOff.on_time": "Mean length of a time with many requests.",
    "OnOff.off_time": "Mean length of a time with few or none.",
    "OnOff.off_share": "Rate while few come, as a share of the rate while many come.",
    "LengthPairs.path": "The trace file, yours: none is shipped.",
    "LengthPairs.format": "Whose format it has; taken from its first line where that is certain.",
    "Sessions.turns": "Mean number of turns, geometric, at most 64.",
    "Sessions.return_mean": "Mean time to the arrival of the next turn, lognormal: see `return_after`.",
    "Sessions.return_cv": "Its standard deviation over its mean.",
    "Sessions.return_after": "From when it counts. `arrival` of the turn before: the answer lies in it, and a late "
    "answer delays nobody (open loop). `answer`: its end, or the user's giving up (closed loop): late answers delay "
    "the turns that follow; a rate is then that of sessions times their turns, a capacity that of the open loop.",
    "Sessions.max_context": "Most tokens of prompt and answer; beyond, the history is forgotten.",
    "Sessions.system_prompt": "Tokens at the start of every prompt, the same for all users.",
    "Sessions.block_tokens": "Tokens of a block of a prefix that a cache can share.",
    "TraceRequests.path": "The trace file, yours: none is shipped. `.gz` is unpacked.",
    "TraceRequests.format": "Whose format it has; taken from its first line where that is certain.",
    "TraceRequests.rate_factor": "So many times as fast as it was; leave out `rate` and `load` then.",
    "TraceRequests.share": "Each request is kept with this probability.",
    "TraceRequests.loop": "Whether the trace starts again past its end.",
    "EmpiricalLengths.of": "Figures that are shipped: `azure_2023_conv_prompts`, `azure_2023_conv_answers`, "
    "`mooncake_conversation_prompts`, `mooncake_conversation_answers`.",
    "EmpiricalLengths.quantiles": "In place of `of`: lengths at equal steps of the share of requests, 0 % to 100 %.",
}  # fmt: skip
"""As `Class.key`."""
