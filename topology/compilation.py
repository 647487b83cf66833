"""One decorator for compiled loops, with a disk cache that can not serve stale numbers.

numba's own cache looks at the file of a function only: a kernel that calls a compiled function of another file goes on
giving the old number after that file was edited. Here the cache folder of a function is named after a digest of its
module's source and of every module of ours which that one imports, directly or not.
"""

from __future__ import annotations

import fcntl
import hashlib
import importlib.util
import os
import re
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import IO, Any, ParamSpec, TypeVar, cast

import numba
from numba.core.caching import CompileResultCacheImpl, FunctionCache
from numba.core.registry import cpu_target

from topology.kernel_code import KernelCompiler, PartCompiler, without_literals

P = ParamSpec("P")
R = TypeVar("R")

ROOMS = ("topology", "ocs", "workloads", "sim")
_IMPORT = re.compile(rf"^\s*(?:from|import)\s+((?:{'|'.join(ROOMS)})[\w.]*)(?:\s+import\s+([^\n#]+))?", re.MULTILINE)


@cache
def _source(module: str) -> str | None:
    try:
        spec = importlib.util.find_spec(module)
    except ModuleNotFoundError:
        return None
    if spec is None or spec.origin is None or not spec.origin.endswith(".py"):
        return None
    return Path(spec.origin).read_text(encoding="utf-8")


def imported_modules(source: str) -> list[str]:
    """Names of the modules of ours that a source text may import, sorted; some may be no modules."""
    found: dict[str, None] = {}
    for match in _IMPORT.finditer(source):
        found[match.group(1)] = None
        for name in re.findall(r"\w+", match.group(2) or ""):
            found[f"{match.group(1)}.{name}"] = None
    return sorted(found)


@cache
def source_digest(module: str) -> str:
    """Digest of the sources of `module` and of all modules of ours that it imports, directly or not."""
    digest, seen, waiting = hashlib.sha256(f"{numba.__version__} {module}".encode()), set[str](), [module]
    texts: dict[str, str] = {}
    while waiting:
        name = waiting.pop()
        if name in seen:
            continue
        seen.add(name)
        source = _source(name)
        if source is not None:
            texts[name] = source
            waiting.extend(imported_modules(source))
    for name in sorted(texts):
        digest.update(name.encode() + b"\0" + texts[name].encode() + b"\0")
    return digest.hexdigest()[:24]


@cache
def cache_root() -> Path | None:
    """A writable folder for compiled code: OPTICUBE_CACHE, the user's cache folder, or None."""
    candidates = [os.environ.get("OPTICUBE_CACHE"), os.environ.get("XDG_CACHE_HOME"), "~/.cache"]
    for candidate in candidates:
        if not candidate:
            continue
        folder = Path(candidate).expanduser() / "opticube" / "compiled"
        try:
            folder.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=folder):
                return folder
        except (OSError, RuntimeError):
            continue
    return None


def load_compiler() -> None:
    """Load all that numba needs to run compiled code, which it else does when the first function is called (0.4 s).

    Processes that are forked afterwards have it already.
    """
    cpu_target.typing_context.refresh()
    cpu_target.target_context.refresh()


_PART: dict[str, Any] = {
    "nogil": True,
    "error_model": "numpy",
    "_nrt": False,
    "no_cpython_wrapper": True,
    "no_cfunc_wrapper": True,
    "no_rewrites": True,
    "pipeline_class": PartCompiler,
}


def compiled(function: Callable[P, R]) -> Callable[P, R]:
    """Compile `function` with numba (no fast-math, no GIL), cached on disk where a folder can be written."""
    return _compile(function, nogil=True, error_model="numpy")


def compiled_kernel(function: Callable[P, R]) -> Callable[P, R]:
    """As `compiled`, for the one entry of a kernel that makes no array: it reads and writes those that it is given.

    Such code needs no reference counts. Its parts take their arrays as one `pinned` state, and the whole kernel is
    translated to machine code at once.
    """
    return _compile(function, nogil=True, error_model="numpy", _nrt=False, pipeline_class=KernelCompiler)


def kernel_part(function: Callable[P, R]) -> Callable[P, R]:
    """A function that only a compiled kernel calls: merged into its callers, without wrapper and cache of its own."""
    return cast("Callable[P, R]", without_literals(numba.njit(forceinline=True, **_PART)(function)))


def kernel_routine(function: Callable[P, R]) -> Callable[P, R]:
    """As `kernel_part`, but kept as a function of its own: for what is long, or called from many places, or rarely.

    (numba hands `forceinline` down from the caller under compilation unless it is said here.)
    """
    return cast("Callable[P, R]", without_literals(numba.njit(forceinline=False, **_PART)(function)))


class _DigestLocator:
    """Where numba keeps one function: a folder named after the digest of its sources, whatever copy they stand in.

    Two clones, or a clone and a wheel, of the same sources share what was compiled once: numba's own locators would
    tell them apart by path and time of writing.
    """

    def __init__(self, function: Callable[..., Any], folder: Path) -> None:
        self._py_file = function.__code__.co_filename
        self._line = function.__code__.co_firstlineno
        self._folder = folder

    @classmethod
    def from_function(cls, function: Callable[..., Any], _file: str) -> _DigestLocator | None:
        root = cache_root()
        return None if root is None else cls(function, root / source_digest(function.__module__))

    def ensure_cache_path(self) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)

    def get_cache_path(self) -> str:
        return str(self._folder)

    def get_source_stamp(self) -> str:
        return self._folder.name

    def get_disambiguator(self) -> str:
        return str(self._line)


class _DigestCacheImpl(CompileResultCacheImpl):
    def __init__(self, function: Callable[..., Any]) -> None:
        self._locator_classes: list[Any] = [_DigestLocator]
        start: Any = super().__init__  # numba declares no types
        start(function)


class _DigestCache(FunctionCache):
    """numba's cache, in which one process compiles what is missing while others wait for it, and then load it."""

    _impl_class = _DigestCacheImpl
    _turn: IO[bytes] | None = None

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """What is on disk; where nothing is, wait for who compiles it, or answer None: then it is our turn."""
        load: Any = super().load_overload
        found = load(sig, target_context)
        if found is None:
            self._take_turn()
            found = load(sig, target_context)
            if found is not None:
                self._end_turn()
        return found

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep what was compiled, and let others have it."""
        save: Any = super().save_overload
        try:
            save(sig, data)
        finally:
            self._end_turn()

    def _take_turn(self) -> None:
        """A lock beside the cache, which ends with its process; where files can not be locked, all compile."""
        self._end_turn()
        try:
            folder = Path(self.cache_path)
            folder.mkdir(parents=True, exist_ok=True)
            self._turn = (folder / f"{self._impl.filename_base}.lock").open("wb")
            fcntl.lockf(self._turn, fcntl.LOCK_EX)
        except OSError:
            return

    def _end_turn(self) -> None:
        if self._turn is not None:
            self._turn.close()
            self._turn = None


def _compile(function: Callable[P, R], **options: Any) -> Callable[P, R]:
    config: Any = numba.config
    dispatcher: Any = numba.njit(**options)(function)
    if cache_root() is not None and not config.DISABLE_JIT:
        cache: Any = _DigestCache
        dispatcher._cache = cache(function)
    return cast("Callable[P, R]", dispatcher)
