"""Measures: pure functions of failure histories, of the log and of the scenario."""
