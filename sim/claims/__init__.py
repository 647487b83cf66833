"""Statements about such systems, each with the run or computation that decides it: `python -m sim.claims`."""
