"""Where a number of a catalogue comes from: its mark and its source."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Mark(StrEnum):
    """How far a number can be trusted."""

    VERIFIED = "V"
    """Seen in the primary source's own text."""
    SECONDARY = "V2"
    """Seen in a second text that reports or quotes the source."""
    RECALLED = "R"
    """From general knowledge, seen in no text: never to be shown as published."""
    DERIVED = "D"
    """By arithmetic from other entries."""
    FITTED = "F"
    """Fitted by us; the entry says on what."""
    ASSUMED = "A"
    """Our assumption."""


@dataclass(frozen=True)
class Source:
    """Mark and source of the field `field` of a catalogue entry."""

    field: str
    mark: Mark
    text: str
