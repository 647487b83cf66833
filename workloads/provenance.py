"""Where a number of a catalogue comes from: the marks and sources of `topology.provenance`, by their old name."""

from __future__ import annotations

from topology.provenance import Mark as Mark
from topology.provenance import Source as Source
