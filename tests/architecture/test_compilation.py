"""The cache of compiled code: never stale, and never needed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numba
import numpy as np
import pytest
from numba.core.errors import TypingError
from numba.core.types import Function
from numba.core.types.functions import BaseFunction
from numpy.typing import NDArray

from topology import compilation

FAKE = {
    "topology.alpha": "from topology import beta\nimport workloads.gamma as g\n",
    "topology.beta": "X = 1\n",
    "workloads.gamma": "from topology.beta import X\n",
    "topology.other": "Y = 2\n",
}


def _digest(monkeypatch: pytest.MonkeyPatch, sources: dict[str, str]) -> str:
    monkeypatch.setattr(compilation, "_source", sources.get)
    compilation.source_digest.cache_clear()
    try:
        return compilation.source_digest("topology.alpha")
    finally:
        compilation.source_digest.cache_clear()


@pytest.mark.parametrize("edited", ["topology.alpha", "topology.beta", "workloads.gamma"])
def test_an_edit_anywhere_below_changes_the_cache_folder(monkeypatch: pytest.MonkeyPatch, edited: str) -> None:
    """Goal: a kernel is compiled anew when a module that it imports, directly or not, is edited.

    Method: digests of made-up sources before and after one edit; a module that is not imported changes nothing.
    """
    before = _digest(monkeypatch, FAKE)
    assert _digest(monkeypatch, FAKE | {edited: FAKE[edited] + "# edited\n"}) != before
    assert _digest(monkeypatch, FAKE | {"topology.other": "Y = 3\n"}) == before


def test_copies_of_the_same_sources_share_what_was_compiled(tmp_path: Path) -> None:
    """Goal: a second clone, or a wheel, compiles nothing again. Method: two copies, one cache; files written before."""
    code = (
        "import numpy as np\n"
        "from topology.packing import count_bits\n"
        "assert count_bits(np.uint64(7)) == 3\n"
        "print(sum(count_bits.stats.cache_hits.values()), count_bits.__module__)\n"
        "import topology; print(topology.__file__)\n"
    )
    answers = []
    for name in ("first", "second"):
        shutil.copytree(Path(compilation.__file__).parent, tmp_path / name / "topology")
        environment = os.environ | {"OPTICUBE_CACHE": str(tmp_path / "cache"), "PYTHONPATH": str(tmp_path / name)}
        done = subprocess.run(
            [sys.executable, "-c", code],
            cwd=tmp_path / name,
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
        assert str(tmp_path / name) in done.stdout
        answers.append(int(done.stdout.split()[0]))
    assert answers == [0, 1]


def test_of_several_processes_one_compiles(tmp_path: Path) -> None:
    """Goal: workers that need the same loop at once compile it once. Method: two at a time, an empty cache; hits."""
    code = (
        "import numpy as np\n"
        "from topology.packing import count_bits\n"
        "assert count_bits(np.uint64(7)) == 3\n"
        "print(sum(count_bits.stats.cache_hits.values()))\n"
    )
    environment = os.environ | {"OPTICUBE_CACHE": str(tmp_path)}
    command = [sys.executable, "-c", code]
    both = [subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    assert sorted(int(each.communicate(timeout=300)[0]) for each in both) == [0, 1]


def test_compiles_without_any_folder_to_write() -> None:
    """Goal: no home, no cache, no crash. Method: a fresh interpreter without a home runs a compiled loop."""
    environment = {key: value for key, value in os.environ.items() if key not in ("OPTICUBE_CACHE", "XDG_CACHE_HOME")}
    environment["HOME"] = "/proc/nowhere"
    code = (
        "import numpy as np\n"
        "from topology import compilation\n"
        "assert compilation.cache_root() is None\n"
        "from topology.packing import count_bits\n"
        "assert count_bits(np.uint64(7)) == 3\n"
    )
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@compilation.kernel_part
def _square(values: NDArray[np.int64], place: int) -> int:
    value: int = values[place]
    return value * value


@compilation.kernel_routine
def _squares(values: NDArray[np.int64]) -> int:
    total = 0
    for place in range(values.size):
        total += _square(values, place)
    return total


@numba.njit(pipeline_class=compilation.KernelCompiler, nogil=True, error_model="numpy", _nrt=False)
def _differences(values: NDArray[np.int64], others: NDArray[np.int64]) -> int:
    return _squares(values) - _squares(others)


def test_a_kernel_is_translated_at_once() -> None:
    """Goal: parts of a kernel get no machine code of their own; the kernel computes what they say.

    Method: a kernel of an entry, a routine called twice and a part, compiled; its answer, and its LLVM code, which
    shows nothing but the entry and what Python calls it by to the outside.
    """
    assert _differences(np.arange(5), np.arange(3)) == 30 - 5
    (library,) = (each.library for each in _differences.overloads.values())
    defined = [line for line in library.get_llvm_str().splitlines() if line.startswith("define")]
    outside = [line for line in defined if " internal " not in line]
    assert all("_differences" in line for line in outside)


def test_signatures_are_kept_while_a_kernel_is_compiled_only() -> None:
    """Goal: numba works as ever for everything else. Method: its search before and after kernels, one fails."""
    search = BaseFunction.get_call_type
    with pytest.raises(TypingError, match="_squares"):
        _differences("text", "text")
    assert Function.get_call_type is search
    assert _differences(np.arange(4), np.arange(1)) == 14
    assert Function.get_call_type is search
