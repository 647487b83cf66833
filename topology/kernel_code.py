"""How a kernel of many small functions is translated: each into LLVM code, all of them to machine code at once.

numba by itself optimises and translates every compiled function together with all that it calls: what stands at the
bottom is worked on anew for each function above it (three quarters of the time that the token kernel took to compile).
The parts of a kernel are called by that kernel only. So their code is left as it was lowered, and the one entry gathers
it, hides it from everything else, optimises and translates it once.

numba's own part of the work is cut to what a kernel needs: it makes no objects, so nobody asks how long a variable
lives; it has no closures, literal loops or exceptions to rewrite; and the signature of, say, a sum of two whole numbers
is looked for once, not at every sum.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from numba.core import cgutils, types
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase
from numba.core.compiler_machinery import PassManager, register_pass
from numba.core.dispatcher import Dispatcher
from numba.core.interpreter import Interpreter
from numba.core.ir_utils import build_definitions
from numba.core.lowering import Lower
from numba.core.ssa import reconstruct_ssa
from numba.core.typed_passes import NativeLowering, NoPythonBackend, NopythonTypeInference, PreLowerStripPhis
from numba.core.types import unliteral
from numba.core.untyped_passes import FixupArgs, ReconstructSSA, TranslateByteCode

_dynfunc: Any = import_module("numba._dynfunc")  # compiled, without declarations


class _PartLibrary(JITCodeLibrary):
    """The code of one part, as it was lowered."""

    is_routine = False

    def finalize(self) -> None:
        """Link, optimise and translate nothing: the entry does."""
        self._finalized = True

    def _optimize_functions(self, ll_module: Any) -> None:
        ll_module.data_layout = self._codegen._data_layout

    def _get_module_for_linking(self) -> Any:
        module: Any = self._final_module.clone()
        for function in module.functions:
            if not function.is_declaration:
                function.linkage = "linkonce_odr"
                if self.is_routine:
                    function.add_function_attribute("noinline")
        return module


class _KernelLibrary(JITCodeLibrary):
    """The code of the entry, and of all parts that it calls, directly or not."""

    def finalize(self) -> None:
        """Gather the parts, each once; then link, optimise and translate as numba does."""
        found: dict[Any, None] = {}
        waiting: list[Any] = list(self._linking_libraries)
        while waiting:
            library = waiting.pop()
            if library not in found:
                found[library] = None
                if isinstance(library, _PartLibrary):
                    waiting.extend(library._linking_libraries)
        self._linking_libraries = list(found)
        super().finalize()

    def _optimize_final_module(self) -> None:
        for function in self._final_module.functions:
            if function.linkage.name == "linkonce_odr":
                function.linkage = "internal"
        # once: numba's cheaper passes before make counts of references meet, and a kernel has none; its loops are short
        manager, builder = self._codegen._module_pass_manager(loop_vectorize=False)
        manager.run(self._final_module, builder)


class _PartLower(Lower):
    """numba's own, but for what it asks LLVM about each variable to tell a debugger."""

    def alloca_lltype(self, name: Any, lltype: Any, datamodel: Any = None) -> Any:
        """Room for a variable (the name is numba's)."""
        return cgutils.alloca_once(self.builder, lltype, name=name, zfill=False)


@register_pass(mutates_CFG=True, analysis_only=False)
class _PartLowering(NativeLowering):
    _name = "part_lowering"

    @property
    def lowering_class(self) -> type[Lower]:
        """What turns a function into LLVM code (the name is numba's)."""
        return _PartLower

    def run_pass(self, state: Any) -> bool:
        """Lower, and let other functions call what comes out; it has no address of its own."""
        state.library = _PartLibrary(state.targetctx.codegen(), state.func_id.func_qualname)
        state.library.is_routine = not state.flags.forceinline
        state.flags.no_compile = True
        super().run_pass(state)
        lowered: Any = state["cr"]
        named = lowered.fndesc
        entry = _dynfunc.make_function(named.lookup_module(), named.unique_name, "", 0, lowered.env, ())
        state.targetctx.insert_user_function(entry, named, [state.library])
        state["cr"] = lowered._replace(cfunc=entry)
        return True


@register_pass(mutates_CFG=True, analysis_only=False)
class _KernelLowering(NativeLowering):
    _name = "kernel_lowering"

    def run_pass(self, state: Any) -> bool:
        """As numba does, into a library that gathers its parts and can be kept on disk."""
        state.library = _KernelLibrary(state.targetctx.codegen(), state.func_id.func_qualname)
        state.library.enable_object_caching()
        return bool(super().run_pass(state))


class _KernelInterpreter(Interpreter):
    """numba's own, without the search for what Python makes of `with`, of lists and of calls with many names."""

    def post_process(self, peepholes: Any, func_ir: Any) -> Any:
        """Leave the code as it was read (the name is numba's)."""
        return func_ir


@register_pass(mutates_CFG=True, analysis_only=False)
class _Read(TranslateByteCode):
    _name = "kernel_read"

    def run_pass(self, state: Any) -> bool:
        """As numba does, with an interpreter that looks for less."""
        state["func_ir"] = _KernelInterpreter(state["func_id"]).interpret(state["bc"])
        return True


@register_pass(mutates_CFG=False, analysis_only=False)
class _SingleAssignment(ReconstructSSA):
    _name = "kernel_single_assignment"

    def run_pass(self, state: Any) -> bool:
        """As numba does, without the lives of variables."""
        state.func_ir = reconstruct_ssa(state.func_ir)
        state.func_ir._definitions = build_definitions(state.func_ir.blocks)
        return True


@register_pass(mutates_CFG=False, analysis_only=False)
class _StripPhis(PreLowerStripPhis):
    _name = "kernel_strip_phis"

    def run_pass(self, state: Any) -> bool:
        """As numba does, without the lives of variables."""
        state.func_ir = self._strip_phi_nodes(state.func_ir)
        state.func_ir._definitions = build_definitions(state.func_ir.blocks)
        return True


def _passes(lowering: type[NativeLowering]) -> Any:
    """The passes of numba's own compiler that a kernel needs, with its own lowering."""
    manager: Any = PassManager("kernel")
    for step in (
        _Read,
        FixupArgs,
        _SingleAssignment,
        NopythonTypeInference,
        _StripPhis,
        lowering,
        NoPythonBackend,
    ):
        manager.add_pass(step)
    manager.finalize()
    return manager


@contextmanager
def _signatures_kept() -> Iterator[None]:
    """While this lasts, numba looks for the signature of a builtin function once for the same types of arguments."""
    function_type: Any = types.Function
    search = function_type.get_call_type
    found: dict[Any, Any] = {}

    def get_call_type(function: Any, context: Any, args: Any, kws: Any) -> Any:
        key = function, tuple(args), tuple(kws.items())
        if key not in found:
            found[key] = search(function, context, args, kws)
        return found[key]

    function_type.get_call_type = get_call_type
    try:
        yield
    finally:
        function_type.get_call_type = search


class PartCompiler(CompilerBase):
    """Compiles a part of a kernel up to its LLVM code."""

    def define_pipelines(self) -> list[Any]:
        """One list of passes (the name is numba's)."""
        return [_passes(_PartLowering)]


class KernelCompiler(CompilerBase):
    """Compiles the entry of a kernel, with all its parts."""

    def compile_extra(self, func: Any) -> Any:
        """As numba does (the name is its own), but what it makes is kept: looking for garbage in it takes a tenth."""
        collects = gc.isenabled()
        gc.disable()
        try:
            with _signatures_kept():
                return super().compile_extra(func)
        finally:
            if collects:
                gc.enable()

    def define_pipelines(self) -> list[Any]:
        """One list of passes (the name is numba's)."""
        return [_passes(_KernelLowering)]


def without_literals(part: Any) -> Any:
    """The same part, which is compiled once for whole numbers, not for each constant that it is called with too."""
    if isinstance(part, Dispatcher):
        dispatcher: Any = part
        template = dispatcher.get_call_template
        dispatcher.get_call_template = lambda args, kws: template(tuple(unliteral(arg) for arg in args), kws)
    return part
