"""Health: how soon a failure is known, and how an outage divides into detection, diagnosis, work and burn-in."""

from __future__ import annotations

from typing import NamedTuple

from sim.histories import US_PER_S, ComponentKind
from sim.policies import HealthPolicy


class OutageParts(NamedTuple):
    """The parts of one outage in microseconds; `work_us` is what a crew does. Their sum is the outage without queueing.

    `automated_us` comes before the crew and takes none; where it is not zero, work of zero takes none either.
    """

    detection_us: int
    diagnosis_us: int
    work_us: int
    burn_in_us: int
    automated_us: int = 0


def to_us(seconds: float) -> int:
    """Whole microseconds."""
    return round(seconds * US_PER_S)


def outage_parts(kind: ComponentKind, outage_us: int, health: HealthPolicy, failed_us: int = 0) -> OutageParts:
    """Divide an outage that begins at `failed_us` and lasts `outage_us` without queueing.

    Detection comes first; an outage shorter than that is over at its detection. Where diagnosis and burn-in do not fit
    into what is left, they are cut short, diagnosis first.
    """
    detection_us = min(health.detected_after_us(kind, failed_us), outage_us)
    rest_us = outage_us - detection_us
    burn_in_us = min(to_us(health.burn_in), rest_us)
    diagnosis_us = min(to_us(health.diagnosis), rest_us - burn_in_us)
    return OutageParts(detection_us, diagnosis_us, rest_us - burn_in_us - diagnosis_us, burn_in_us)
