"""Tasks on a dask cluster (`opticube run --dask ADDRESS`): as many machines as one has, the same tables."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from concurrent.futures import CancelledError, Executor
from contextlib import contextmanager
from importlib.metadata import version
from typing import Any

from topology.errors import EnvironmentFault, refuse

ANSWER_S = 10.0
"""How long the scheduler, and a first worker of it, may take to answer."""
OPTION = "--dask"


@contextmanager
def open_cluster(address: str) -> Iterator[Executor]:
    """The workers behind the dask scheduler at `address` (`tcp://HOST:PORT`) as an executor.

    They need the same version of opticube and, for logs and traces, the same paths. A task whose worker dies runs again
    on another one (up to dask's `allowed-failures`). Raises InputError for an address that is none, for workers with
    another version and where dask is not installed, EnvironmentFault where nobody answers or the cluster is lost.
    """
    try:
        from distributed import Client, KilledWorker
    except ModuleNotFoundError as error:
        raise refuse(OPTION, "dask is not installed here", "run `pip install 'opticube[dask]'`") from error
    logging.getLogger("distributed").setLevel(logging.CRITICAL)  # what matters is told by our own errors
    client = _client(Client, address)
    try:
        _check_workers(client, address)
        yield client.get_executor()
    except KilledWorker as error:
        what = f"the workers at {address} died again and again at the same task (out of memory?)"
        raise EnvironmentFault(f"{what}: run again with --resume") from error
    except CancelledError as error:
        raise EnvironmentFault(f"the dask scheduler at {address} was lost: run again with --resume") from error
    finally:
        client.close()


def _client(make: Any, address: str) -> Any:
    try:
        return make(address, timeout=ANSWER_S, set_as_default=False)
    except (ValueError, TypeError) as error:
        what = f"`{address}` is no address of a dask scheduler ({error})"
        raise refuse(OPTION, what, "write it as tcp://HOST:PORT") from error
    except OSError as error:
        what = f"no dask scheduler answers at {address} within {ANSWER_S:g} s"
        raise EnvironmentFault(f"{what}: start one with `dask scheduler`, or leave out {OPTION}") from error


def _check_workers(client: Any, address: str) -> None:
    """Refuse a cluster without workers, and one whose workers would compute other numbers."""
    try:
        client.wait_for_workers(1, timeout=ANSWER_S)
    except TimeoutError as error:
        what = f"the dask scheduler at {address} has no workers"
        raise EnvironmentFault(f"{what}: start some with `dask worker {address}`") from error
    ours, theirs = version("opticube"), client.run(_version_here, on_error="return")
    for worker, found in sorted(theirs.items()):
        if found != ours:
            has = f"opticube {found}" if isinstance(found, str) else f"no opticube ({type(found).__name__}: {found})"
            raise refuse(OPTION, f"worker {worker} has {has}, this is {ours}", "install the same version there")


def _version_here() -> str:
    return version("opticube")
