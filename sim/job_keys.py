"""What the keys of a pod in operation mean, for the page of keys: jobs, other failures, drains."""

from __future__ import annotations

_OVERTAKE = "Whether later jobs may start while an earlier one does not fit."
_CHECKPOINTS = {
    "interval": "Time of running between checkpoints.",
    "save": "Time until a checkpoint is complete.",
    "stall": "Of that, the time for which an asynchronous checkpoint stops the job.",
    "mode": "`blocking` stops the job for all of `save`, `asynchronous` for `stall` only.",
}

JOB_MEANINGS = {
    **{f"{law}.rate": "Mean arrivals, such as `139 /day`."
       for law in ("PoissonArrivals", "GammaArrivals", "WeeklyArrivals")},
    "GammaArrivals.cv": "Standard deviation of the gaps over their mean; above 1 jobs come in bursts.",
    "WeeklyArrivals.cv": "The same, on the clock of expected arrivals; 1 is Poisson.",
    "WeeklyArrivals.swing": "How much the rate swings over a day: 0 not at all, 1 to nothing at night.",
    "WeeklyArrivals.peak_hour": "Hour of the day with most arrivals; runs start on a Monday, 0 h.",
    "WeeklyArrivals.weekend": "Rate on Saturday and Sunday as a share of a weekday's.",
    "November2022.by": "What the per cent are of: `count` of jobs, or `chip_time`.",
    "SlicesByShare.shares": "Weights of shapes, such as `{8x8x16: 1, 4x4x4: 3}`.",
    "SlicesByShare.by": "What the weights are of: `count` of jobs, or `chip_time`.",
    "PhillyDurations.longest": "Longer times are cut to it.",
    "RoundUp.chips_per_processor": "Chips for each processor of the log.",
    "RoundUp.powers_of_two": "Round slices of several cubes up to a power of two of cubes as well.",
    "Exact.chips_per_processor": "Chips for each processor of the log.",
    "ShareOfMachine.machine_processors": "Processors of the logged machine; 0: as the log says.",
    "ShortestFirst.overtake": _OVERTAKE,
    "Priority.overtake": _OVERTAKE,
    "Priority.preempt": "Whether a job may take the slices of running jobs of lower priority.",
    "Priority.notice": "Whether a job that makes way saves its state before it leaves; without, what is not safe is "
    "lost.",
    "FairShare.overtake": _OVERTAKE,
    "FairShare.half_life": "Time after which what was used counts half; all counts in full where it is left out.",
    "FairShare.shares": "Weight of each owner; 1 where it is left out.",
    "Folding.then": "The policy that places each of the shapes, `first_fit` or `best_fit`.",
    "Folding.least_bisection": "Least bisection of a folded shape, as a share of that of the shape asked for.",
    "MakeRoom.least_wait": "A job has to wait so long before others are moved for it.",
    "MakeRoom.least_gain": "The chip-time of waiting that moves save is to be more than so many times their cost.",
    "MakeRoom.tried": "How many places are looked at, those with the fewest chips held first.",
    "Easy.order": "Who is first: by `arrival`, or the `shortest`; later jobs start where they delay the first one not.",
    **{f"FixedCheckpoints.{key}": text for key, text in _CHECKPOINTS.items()},
    **{f"YoungCheckpoints.{key}": text for key, text in _CHECKPOINTS.items() if key != "interval"},
    "DiurnalRate.mean": "Mean rate of a weekday, such as `200 requests/s`.",
    "DiurnalRate.swing": "How much the rate swings over a day: 0 not at all, 1 to nothing at night.",
    "DiurnalRate.peak": "Hour of the day with the highest rate; runs start on a Monday, 0 h.",
    "DiurnalRate.weekend": "Rate on Saturday and Sunday as a share of a weekday's.",
    "StepRates.rates": "One rate for each stretch, over and over, such as 24 of a day.",
    "StepRates.every": "Length of a stretch.",
    "TraceRates.path": "CSV of your own with the columns time_s,requests_per_s; over and over.",
    "TraceRates.factor": "Rates are multiplied by it.",
    **{f"{policy}.load": "Share of its capacity at which a replica is to be used."
       for policy in ("Follow", "Ahead")},
    **{f"{policy}.hold": "Fewer replicas are wanted only once so long fewer would have done."
       for policy in ("Follow", "Ahead")},
    "Ahead.ahead": "How far ahead the policy looks.",
    "FixedReplicas.count": "Replicas.",
    "LargeJob.hosts": "Servers that compute.",
    "LargeJob.standbys": "Warm ones beside them.",
    "LargeJob.pool": "Servers that the job may select from, those two included.",
    "LargeJob.spares": "Servers that it may take when the pool is used up.",
    "LargeJob.work": "Compute time of the job.",
    "LargeJob.failure_rate": "Failures per server and time of computing.",
    "LargeJob.bad_share": "Share of servers that are bad.",
    "LargeJob.bad_factor": "Systematic failures of a bad server, as a multiple of the rate of all.",
    "LargeJob.recovery": "Time that each failure costs.",
    "LargeJob.selection": "Time to select hosts when no standby is left.",
    "LargeJob.take_spare": "Time to take a spare.",
    "LargeJob.repair": "The two stages of repair.",
    "BadHosts.share": "Share of hosts that are bad.",
    "BadHosts.factor": "How many times as often a bad host fails.",
    **{f"{events}.rate": "Events per time, each at one instant."
       for events in ("PodEvents", "PowerDomainEvents")},
    **{f"{events}.outage": "Law of how long all is out." for events in ("PodEvents", "PowerDomainEvents")},
    "PowerDomainEvents.racks": "Racks of one domain; the rate is per domain.",
    **{f"{fault}.rate": "Onsets per host in service." for fault in ("SlowHosts", "SilentCorruption")},
    **{f"{fault}.noticed_after": "Law of the time until somebody notices without a test; never where left out."
       for fault in ("SlowHosts", "SilentCorruption")},
    **{f"{fault}.repair": "Law of the repair of a host that is found."
       for fault in ("SlowHosts", "SilentCorruption", "FlappingLinks")},
    **{f"{fault}.when_found": "`mend` takes the host out at once, `keep` leaves it in service as degraded."
       for fault in ("SlowHosts", "SilentCorruption")},
    "SlowHosts.speed": "Speed of a slice with a slow host, as a share of the healthy one.",
    "FlappingLinks.rate": "Onsets per link.",
    "FlappingLinks.every": "Time from flap to flap.",
    "FlappingLinks.length": "How long the link is down each time.",
    "FlappingLinks.tolerated": "After so many flaps the link is known to flap and is mended.",
    "FlappingLinks.repair": "Law of the repair of a link that is known to flap.",
    "MaintenancePolicy.cubes": "Rolling drains of cubes.",
    "MaintenancePolicy.switches": "Rolling drains of switches.",
    "Rolling.every": "Time from round to round; a round drains every component once.",
    "Rolling.length": "How long each one is out.",
    "Rolling.notice": "How long before its drain it is announced.",
    "Rolling.at_once": "How many are out at once at most.",
    "Rolling.first": "Start of the first round.",
    "SparesPolicy.kind": "`cold` takes every stage of a start, `warm` no preflight, `hot` holds the live state.",
    "SparesPolicy.cubes": "How many cubes (on `any_host` as many hosts) the queue may not take.",
    "SparesPolicy.swap": "Time to swap in a hot spare.",
}  # fmt: skip
"""What keys mean, as `Class.key`."""

JOB_ASSUMPTIONS = (
    "WeeklyArrivals.swing", "WeeklyArrivals.peak_hour", "WeeklyArrivals.weekend", "November2022.by",
    "Folding.least_bisection",
    "PowerDomainEvents.racks", "SlowHosts.speed",
    "FixedCheckpoints.interval", "FixedCheckpoints.save", "YoungCheckpoints.save", "SparesPolicy.swap",
    "MakeRoom.least_wait", "MakeRoom.least_gain", "MakeRoom.tried",
    "DiurnalRate.swing", "DiurnalRate.peak", "Follow.load", "Follow.hold", "Ahead.load", "Ahead.hold", "Ahead.ahead",
    "SharedService.every", "SharedService.drain", "SharedService.weights_rate", "SharedService.ready",
)  # fmt: skip
"""Keys whose default is a guess of this project."""
