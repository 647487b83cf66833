"""`make bench`: speeds as ratios measured in one run against a named baseline, printed as one JSON object."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time

REPEATS = 5


def help_s() -> dict[str, float]:
    """Seconds of `opticube --help` and of a bare interpreter, medians of five fresh processes each."""

    def median_s(arguments: list[str]) -> float:
        taken = []
        for _ in range(REPEATS):
            began = time.perf_counter()
            subprocess.run([sys.executable, *arguments], capture_output=True, check=True)
            taken.append(time.perf_counter() - began)
        return statistics.median(taken)

    main = "import sys; sys.argv = ['opticube', '--help']; from sim.cli import main; main()"
    return {"help_s": median_s(["-c", main]), "bare_python_s": median_s(["-c", "pass"])}


def main() -> None:
    """Run every benchmark and print the results."""
    from tests.bench.curves import pod_year_s
    from tests.bench.fleet import hundred_pods
    from tests.bench.operations import pod_month_s
    from tests.bench.plan import plan_of_full_pods
    from tests.bench.pod_events import share_of_bare_simpy
    from tests.bench.routing import routing_cases
    from tests.bench.token_kernel import compile_cpu_s, token_kernel_cases

    results = {
        "token_kernel": token_kernel_cases(),
        "token_kernel_compile_cpu_s": compile_cpu_s(),
        "pod_events": share_of_bare_simpy(),
        "curves": {"pod_year_s": pod_year_s()},
        "pod_month_cpu_s": pod_month_s(),
        "hundred_pods": hundred_pods(),
        "plan_of_full_pods": plan_of_full_pods(),
        "routing": routing_cases(),
        "start_up": help_s(),
        "repeats": REPEATS,
    }
    json.dump(results, sys.stdout, indent=2)
    sys.stdout.write("\n")


if __name__ == "__main__":
    main()
