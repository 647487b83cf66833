"""Where the command `opticube` begins: signals are answered before anything that takes time is imported."""

from __future__ import annotations

from sim.interruptions import answer_signals, end_interrupted


def main() -> None:
    """Entry point of the command `opticube`: ends the process."""
    try:
        answer_signals()
        from sim.cli import main as command

        command()
    except KeyboardInterrupt:
        end_interrupted()
