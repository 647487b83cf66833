"""The command `opticube`: thin commands that import what they need when they are called.

`opticube --help` must answer at once, so nothing heavy is imported here. Each command returns its exit status; `main`
turns exceptions into a status and lines on standard error (`sim.exit_codes`).
"""

from __future__ import annotations

import gc
import os
import re
import secrets
import sys
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Annotated, cast

import typer

from sim.cli_checks import check_target, compare_runs
from sim.cli_models import cost_of_pass, plan_replicas
from sim.cli_options import AsJson, Overrides, Workers
from sim.cli_pods import show_light, show_topology
from sim.cli_whatif import break_even_of_light, worth_of_knobs
from sim.exit_codes import ExitStatus, explain
from sim.interruptions import NOTHING_KEPT, answer_signals, when_interrupted

app = typer.Typer(
    name="opticube",
    help="Simulate a reconfigurable TPU-style supercomputer: availability, recovery, tokens, waiting.",
    rich_markup_mode=None,
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)

UsageError = cast("type[Exception]", typer.BadParameter.__bases__[0])
"""Base of all complaints about options and arguments."""

TYPER_INTERRUPTED = 130
"""What typer makes of Ctrl-C."""

Scenarios = Annotated[
    list[str],
    typer.Argument(help="Scenario files, or names of `opticube list`.", show_default=False),
]
RunFolderPath = Annotated[Path, typer.Argument(help="A run folder.", show_default=False)]


def _version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(f"opticube {version('opticube')}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Simulate a reconfigurable TPU-style supercomputer: availability, recovery, tokens, waiting."""


@app.command("run")
def run_scenario(
    scenarios: Scenarios,
    overrides: Overrides = None,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="DIR", help="Run folder; runs/NAME-N if left out.")
    ] = None,
    workers: Workers = None,
    dask: Annotated[
        str | None, typer.Option("--dask", metavar="ADDRESS", help="Run on the workers of this dask scheduler.")
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with an interrupted run in --out.")] = False,
    ideal: Annotated[
        bool, typer.Option("--ideal", help="Also play it without each avoidable cause: some ten times the work.")
    ] = False,
    as_json: AsJson = False,
) -> int:
    """Simulate scenarios and write a run folder for each."""
    if resume and out is None:
        raise typer.BadParameter("--resume needs --out DIR, the folder to go on with")
    if dask is not None and workers is not None:
        raise typer.BadParameter("--dask takes the workers of the cluster: leave out --workers")
    from sim.executors import open_helper

    with ExitStack() as stack:
        helper = stack.enter_context(open_helper(workers, "sim.report.write", "get_ready", shared="pandas"))
        from sim.cli_scenarios import load_all

        # faults are told at once, before all that a run needs is imported
        loaded = load_all(scenarios, overrides or [])
        from sim.commands import RunOptions, run_command

        cluster = None
        if dask is not None:
            from sim.cluster import open_cluster

            cluster = stack.enter_context(open_cluster(dask))
        options = RunOptions(
            workers=workers, cluster=cluster, helper=helper, resume=resume, ideal=ideal, as_json=as_json
        )
        return run_command(loaded, overrides or [], out, options)


@app.command("validate")
def validate_scenarios(scenarios: Scenarios, overrides: Overrides = None, as_json: AsJson = False) -> int:
    """Check scenarios and print the configuration that takes effect."""
    from sim.cli_scenarios import validate_command

    return validate_command(scenarios, overrides or [], as_json)


@app.command("schema")
def print_schema() -> int:
    """Print the JSON schema of a scenario file."""
    from sim.cli_scenarios import schema_command

    return schema_command()


@app.command("list")
def list_things(
    what: Annotated[str, typer.Argument(help="scenarios, chips, models, pods, policies or accuracy.")] = "scenarios",
    as_json: AsJson = False,
) -> int:
    """List what opticube comes with."""
    from sim.cli_scenarios import list_command

    return list_command(what, as_json)


@app.command("size")
def size_promise(
    slices: Annotated[
        str, typer.Option("--slices", metavar="SHAPE:N,...", help="Slices to hold at once, such as 8x8x16:3,8x8x8:6.")
    ],
    host_availability: Annotated[
        str | None,
        typer.Option("--host-availability", metavar="SHARE", help='Share of time a host is up, such as "99.5 %".'),
    ] = None,
    time_share: Annotated[
        str, typer.Option("--time-share", metavar="SHARE", help="Share of time for which they are held.")
    ] = "97 %",
    simulate: Annotated[
        bool, typer.Option("--simulate", help="By simulation with limits, hosts failing at 0.08 %/day.")
    ] = False,
    scenario: Annotated[
        str | None,
        typer.Option(
            "--scenario", metavar="SCENARIO", help="By simulation, failures and repairs as this scenario has."
        ),
    ] = None,
    overrides: Overrides = None,
    running: Annotated[
        bool, typer.Option("--running", help="By simulation: jobs must run on them, every recovery counted.")
    ] = False,
    horizon: Annotated[
        str | None, typer.Option("--horizon", metavar="TIME", help="Length of each simulation; 365 d if left out.")
    ] = None,
    replications: Annotated[
        int | None,
        typer.Option("--replications", min=2, max=10_000, metavar="N", help="Simulations of each size, or 32."),
    ] = None,
    workers: Workers = None,
    as_json: AsJson = False,
) -> int:
    """Cubes needed to promise slices, per fabric, by closed form or by simulation."""
    if (host_availability is None) == (scenario is None):
        raise typer.BadParameter("write either --host-availability SHARE or --scenario SCENARIO")
    if host_availability is not None and not (simulate or running):
        if horizon or replications or workers or overrides:
            raise typer.BadParameter(
                "--horizon, --replications, --workers and --set are for a simulation: add --simulate or --running"
            )
        from sim.cli_size import size_command

        return size_command(slices, time_share, host_availability, as_json)
    from sim.cli_sizing import SizeOptions, size_by_simulation_command

    options = SizeOptions(
        slices=slices,
        time_share=time_share,
        host_availability=host_availability,
        scenario=scenario,
        overrides=overrides or (),
        running=running,
        horizon=horizon or "365 d",
        replications=replications or 32,
        workers=workers,
    )
    return size_by_simulation_command(options, as_json)


app.command("topology")(show_topology)
app.command("cost")(cost_of_pass)
app.command("plan")(plan_replicas)
app.command("light")(show_light)
app.command("worth")(worth_of_knobs)
app.command("break-even")(break_even_of_light)


@app.command("log")
def read_log(
    file: Annotated[Path, typer.Argument(help="A failure log; .gz is read too.", show_default=False)],
    log_format: Annotated[
        str | None, typer.Option("--format", metavar="FORMAT", help="generic, lanl or gpu_faults; guessed if left out.")
    ] = None,
    components: Annotated[
        int | None, typer.Option("--components", min=1, metavar="N", help="How many components the log is about.")
    ] = None,
    window: Annotated[
        tuple[str, str] | None,
        typer.Option("--window", metavar="FROM TO", help="First and last instant that count, as the log writes them."),
    ] = None,
    causes: Annotated[
        list[str] | None, typer.Option("--cause", metavar="CAUSE", help="Keep only outages of this cause. Repeatable.")
    ] = None,
    as_json: AsJson = False,
) -> int:
    """Say what a failure log holds: availability, MTBF, repairs, bursts, repeat offenders, fits."""
    from sim.cli_log import log_command

    return log_command(file, log_format, components, window, tuple(causes or ()), as_json)


@app.command("swarm")
def play_swarm(
    runs: Annotated[int, typer.Option("--runs", min=1, max=1_000_000, metavar="N", help="How many random pods.")] = 100,
    seed: Annotated[
        int | None,
        typer.Option("--seed", min=0, max=2**53, metavar="S", help="Of the first; drawn if left out."),
    ] = None,
    workers: Workers = None,
    as_json: AsJson = False,
) -> int:
    """Play random pods with every invariant checked; print what breaks and how to replay it."""
    from sim.swarm import swarm_command

    return swarm_command(runs, secrets.randbelow(10**9) if seed is None else seed, workers, as_json)


@app.command("report")
def report_run(
    run: RunFolderPath,
    form: Annotated[str, typer.Option("--format", metavar="FORMAT", help="html, md or pdf.")] = "html",
) -> int:
    """Write the report of a finished run again."""
    from sim.commands import report_command

    return report_command(run, form)


@app.command("export")
def export_requests(
    run: RunFolderPath,
    form: Annotated[str, typer.Option("--format", metavar="FORMAT", help="vllm, vidur, mooncake, openmetrics or gke.")],
    service: Annotated[
        str | None, typer.Option("--service", metavar="NAME", help="Which service, where there are several.")
    ] = None,
    point: Annotated[
        int | None, typer.Option("--point", min=0, metavar="K", help="Number of the sweep point, where it matters.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FILE", help="File to write; RUN/export/ if left out, - prints it.")
    ] = None,
) -> int:
    """Write the requests that a run recorded, its summary, or its slices, in the format of others."""
    from sim.commands import export_command

    return export_command(run, form, service, point, out)


app.command("compare")(compare_runs)
app.command("check")(check_target)


@app.command("replay")
def replay_point(
    run: RunFolderPath,
    point: Annotated[int, typer.Option("--point", min=0, metavar="K", help="Number of the sweep point.")] = 0,
    replication: Annotated[
        int | None, typer.Option("--replication", min=0, metavar="R", help="Number of the replication.")
    ] = None,
    request: Annotated[
        int | None, typer.Option("--request", min=0, metavar="N", help="Follow this request of a service by token.")
    ] = None,
    service: Annotated[
        str | None, typer.Option("--service", metavar="NAME", help="Whose request, where there are several services.")
    ] = None,
    picture: Annotated[
        Path | None, typer.Option("--picture", metavar="FILE", help="Draw its life, in .png or .svg.")
    ] = None,
    as_json: AsJson = False,
) -> int:
    """Simulate one replication of one point of a run again, or one request token by token, and print it."""
    if (replication is None) == (request is None):
        raise typer.BadParameter("write either --replication R or --request N")
    if request is not None:
        from sim.request_replay import replay_request_command

        return replay_request_command(run, point, request, service, picture, as_json)
    assert replication is not None
    from sim.commands import replay_command

    return replay_command(run, point, replication, as_json)


def command_status(arguments: Sequence[str]) -> int:
    """Run one command line and return its exit status; faults go to standard error, one line each."""
    when_interrupted(NOTHING_KEPT)
    try:
        status = app(args=list(arguments), prog_name="opticube", standalone_mode=False)
        sys.stdout.flush()
    except typer.Abort:
        return _tell(KeyboardInterrupt(), arguments)
    except UsageError as error:
        is_help = type(error).__name__ == "NoArgsIsHelpError"  # `opticube` alone: the help itself, not a complaint
        _say([str(error)] if is_help else [_usage_line(error)])
        return ExitStatus.BAD_INPUT
    except BaseException as error:
        if isinstance(error, SystemExit | GeneratorExit):
            raise
        return _tell(error, arguments)
    if status == TYPER_INTERRUPTED:
        return _tell(KeyboardInterrupt(), arguments)
    return int(status or 0)


def main() -> None:
    """Run the command line of this process, and end it."""
    answer_signals()
    # a short command spends a tenth of its time looking for garbage among what it imports, and finds none
    gc.set_threshold(100_000, 20, 20)
    status = int(command_status(sys.argv[1:]))
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    # Leave at once. Files are closed by now; Python would take half a second to take apart what a run has imported, and
    # would wait for what workers still compute after an error: they end when they find their parent gone.
    os._exit(status)


def _tell(error: BaseException, arguments: Sequence[str]) -> int:
    """Print what an exception means and return its exit status."""
    status, lines = explain(error, arguments)
    if isinstance(error, OSError):
        _abandon_output()
    _say(lines)
    return status


def _say(lines: Sequence[str]) -> None:
    try:
        for line in lines:
            typer.echo(line, err=True)
    except OSError:
        pass


def _abandon_output() -> None:
    """After a failed write, keep the interpreter from complaining once more when it flushes at exit."""
    try:
        sys.stdout.flush()
    except (OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _usage_line(error: Exception) -> str:
    """A complaint about the command line on one line, with where to read on."""
    text = " ".join(str(getattr(error, "format_message", lambda: error)()).split())
    context = getattr(error, "ctx", None)
    command = context.command_path if context is not None else "opticube"
    text = re.sub(r" \(Possible options: (.*?)\).*", r". Did you mean \1?", text).rstrip(".")
    return f"{command}: {text or 'wrong usage'}; see `{command} --help`"
