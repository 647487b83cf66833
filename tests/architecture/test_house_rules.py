"""The project's own rules, read from its source: sizes, randomness, order, names, leftovers."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
ROOMS = ("topology", "ocs", "workloads", "sim", "scenarios")
SOURCES = [*sorted(path for room in ROOMS for path in (ROOT / room).rglob("*.py")), ROOT / "opticube.py"]
MODULE_LINES = 450
FUNCTION_LINES = 75
GLOBAL_RANDOM = re.compile(
    r"np\.random\.(?!Generator|SeedSequence|PCG64|BitGenerator)\w+|^\s*(import|from) random\b", re.M
)


def _tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), filename=str(path))


def _functions(tree: ast.Module) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_module_and_function_length(path: Path) -> None:
    """Goal: modules read in a sitting, functions on a screen. Method: count lines, without docstrings of functions."""
    assert len(path.read_text(encoding="utf-8").splitlines()) <= MODULE_LINES
    for function in _functions(_tree(path)):
        body = function.body[1:] if ast.get_docstring(function) else function.body
        lines = (function.end_lineno or 0) - (body[0].lineno if body else function.lineno) + 1
        assert lines <= FUNCTION_LINES, f"{path.name}:{function.lineno} {function.name} has {lines} lines"


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_global_randomness(path: Path) -> None:
    """Goal: every draw comes from a named stream. Method: no module-level generators, no `random` module."""
    found = GLOBAL_RANDOM.search(path.read_text(encoding="utf-8"))
    assert found is None, f"{path.name}: {found.group(0) if found else ''}"


def _is_set(node: ast.expr) -> bool:
    if isinstance(node, ast.Set | ast.SetComp):
        return True
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in {"set", "frozenset"}


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_iteration_over_sets(path: Path) -> None:
    """Goal: nothing depends on hash order. Method: names bound to sets in a function are never looped over."""
    for scope in _functions(_tree(path)):
        bound = {
            target.id
            for node in ast.walk(scope)
            if isinstance(node, ast.Assign) and _is_set(node.value)
            for target in node.targets
            if isinstance(target, ast.Name)
        }
        iterated = [node.iter for node in ast.walk(scope) if isinstance(node, ast.For | ast.comprehension)]
        for expression in iterated:
            bad = _is_set(expression) or (isinstance(expression, ast.Name) and expression.id in bound)
            assert not bad, f"{path.name}:{expression.lineno} iterates a set"


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_leftovers(path: Path) -> None:
    """Goal: nothing half done ships. Method: no to-do marks, bare excepts, blanket type ignores; numba by one door."""
    text = path.read_text(encoding="utf-8")
    assert not re.search(r"\b(TODO|FIXME|XXX|HACK)\b|NotImplementedError", text)
    assert not re.search(r"except\s*:|# type: ignore(?!\[)", text)
    if path.name != "compilation.py":
        assert not re.search(r"numba\.(n?jit|vectorize)|from numba import", text), "use topology.compilation"


def test_no_exported_function_bears_a_modules_name() -> None:
    """Goal: `from sim import run` can never give a module. Method: compare public names with sibling module names."""
    for room in ROOMS:
        modules = {path.stem for path in (ROOT / room).rglob("*.py")} | {
            p.name for p in (ROOT / room).iterdir() if p.is_dir()
        }
        for path in sorted((ROOT / room).rglob("*.py")):
            clash = [
                function.name
                for function in _tree(path).body
                if isinstance(function, ast.FunctionDef) and function.name in modules
            ]
            assert not clash, f"{path}: {clash}"


def test_help_is_light() -> None:
    """Goal: `opticube --help` answers at once. Method: in a fresh interpreter no heavy library is imported."""
    code = (
        "import sys\nfrom sim.cli import command_status\n"
        "assert command_status(['--help']) == 0\n"
        "heavy = [m for m in ('pandas', 'numba', 'numpy', 'scipy', 'matplotlib', 'pyarrow') if m in sys.modules]\n"
        "assert not heavy, heavy\nprint('light')\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "run" in done.stdout
    assert done.stdout.endswith("light\n")
