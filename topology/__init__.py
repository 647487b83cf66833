"""Geometry of a reconfigurable machine: pods, shapes, tori, placement. No clock, no tables, no I/O."""
