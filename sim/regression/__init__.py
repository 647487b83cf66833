"""Regression between two runs: measures side by side, verdicts with stated error rates, baselines, pages for CI."""
