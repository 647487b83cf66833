"""The state of a kernel, a named tuple of flat arrays, as its compiled parts see it: one pointer.

numba hands a named tuple of arrays over as some hundred numbers, writes every one of them into the code of each call,
and makes each access ready for indices below 0. Here the entry puts where the arrays lie, and their columns, into a
block of words once (`pinned`), and parts take its address. Arrays have one axis or two and lie in C order; they do not
overlap, which LLVM is told; no index is below 0. In plain Python a pinned state is the named tuple itself.
"""

from __future__ import annotations

import operator
from typing import Any, TypeVar

from llvmlite import ir
from numba.core import cgutils, types
from numba.core.imputils import lower_builtin, lower_getattr, lower_getattr_generic
from numba.core.typing.templates import AbstractTemplate, AttributeTemplate, infer_getattr, infer_global, signature
from numba.extending import models, register_model

S = TypeVar("S")
WORDS = 3
"""Of each array: its address, rows and columns."""
_WORD: Any = ir.IntType(64)
TRIED_FIRST: dict[Any, Any] = {"target": "cpu"}
"""numba tries what is made for the processor before what is for any target."""


class Table(types.Type):
    """One array of a pinned state; its value is the address of its words."""

    def __init__(self, field: str, dtype: Any, ndim: int) -> None:
        self.field, self.dtype, self.ndim = field, dtype, ndim
        super().__init__(name=f"Table({field}, {dtype}, {ndim})")


class Pinned(types.Type):
    """A pinned state; its value is the address of the words of its first array."""

    def __init__(self, tables: tuple[Table, ...]) -> None:
        self.tables = tables
        self.places = {table.field: place for place, table in enumerate(tables)}
        super().__init__(name="Pinned")  # short: every function's name in LLVM code has it

    @property
    def key(self) -> tuple[Table, ...]:
        """What makes it another type (the name is numba's)."""
        return self.tables


register_model(Table)(models.OpaqueModel)
register_model(Pinned)(models.OpaqueModel)


def pinned(state: S) -> S:
    """The same state for the parts of a kernel, which may only be called while its entry runs."""
    return state


@infer_global(pinned)
class _PinnedTemplate(AbstractTemplate):
    def generic(self, args: Any, kws: Any) -> Any:
        (state,) = args
        tables = (Table(field, array.dtype, array.ndim) for field, array in zip(state.fields, state.types, strict=True))
        return signature(Pinned(tuple(tables)), state)


@lower_builtin(pinned, types.NamedTuple)
def _pin(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    (state,) = args
    words = cgutils.alloca_once(builder, _WORD, size=WORDS * len(sig.args[0].types))
    for place, array_type in enumerate(sig.args[0].types):
        array = context.make_array(array_type)(context, builder, value=builder.extract_value(state, place))
        sizes = cgutils.unpack_tuple(builder, array.shape, array_type.ndim)
        for word, value in enumerate([builder.ptrtoint(array.data, _WORD), *sizes]):
            builder.store(value, builder.gep(words, [_WORD(WORDS * place + word)]))
    address = builder.bitcast(words, cgutils.voidptr_t)
    # from here on nobody writes these words: what is read through this address may be taken as constant
    opaque = ir.FunctionType(cgutils.voidptr_t, [cgutils.voidptr_t])
    return builder.asm(opaque, "", "=r,0,~{memory}", [address], True, name="pinned")


@infer_getattr
class _PinnedFields(AttributeTemplate):
    key = Pinned

    def generic_resolve(self, value: Any, attr: Any) -> Any:
        return value.tables[value.places[attr]] if attr in value.places else None


@lower_getattr_generic(Pinned)
def _field(context: Any, builder: Any, state: Any, value: Any, field: str) -> Any:
    return builder.gep(value, [_WORD(8 * WORDS * state.places[field])])


@infer_getattr
class _TableShape(AttributeTemplate):
    key = Table

    def resolve_shape(self, table: Any) -> Any:
        return types.UniTuple(types.intp, table.ndim)


@lower_getattr(Table, "shape")
def _shape(context: Any, builder: Any, table: Any, value: Any) -> Any:
    return context.make_tuple(
        builder, types.UniTuple(types.intp, table.ndim), [_word(builder, value, 1 + axis) for axis in range(table.ndim)]
    )


def _word(builder: Any, words: Any, place: int) -> Any:
    pointer = builder.bitcast(builder.gep(words, [_WORD(8 * place)]), _WORD.as_pointer())
    word = builder.load(pointer)
    word.set_metadata("invariant.load", builder.module.add_metadata([]))
    return word


def _place(context: Any, builder: Any, table: Any, words: Any, index_type: Any, index: Any) -> Any:
    """Address of one element."""
    if isinstance(index_type, types.BaseTuple):
        kinds: Any = index_type
        parts = zip(cgutils.unpack_tuple(builder, index), kinds, strict=True)
        row, column = (context.cast(builder, part, kind, types.intp) for part, kind in parts)
        place = builder.add(builder.mul(row, _word(builder, words, 2)), column)
    else:
        place = context.cast(builder, index, index_type, types.intp)
    element = context.get_data_type(table.dtype).as_pointer()
    return builder.gep(builder.inttoptr(_word(builder, words, 0), element), [place])


def _tag(builder: Any, instruction: Any, table: Any) -> None:
    """Tell LLVM that different arrays do not overlap (type-based alias analysis: each field is a type)."""
    module = builder.module
    root = module.add_metadata(["opticube kernel state"])
    kind = module.add_metadata([table.field, root, _WORD(0)])
    instruction.set_metadata("tbaa", module.add_metadata([kind, kind, _WORD(0)]))


def _is_index(table: Table, index: Any) -> bool:
    parts: Any = index if isinstance(index, types.BaseTuple) else (index,)
    return len(parts) == table.ndim and all(isinstance(part, types.Integer) for part in parts)


@infer_global(operator.getitem)
class _TableGet(AbstractTemplate):
    metadata = TRIED_FIRST

    def generic(self, args: Any, kws: Any) -> Any:
        table, index = args
        if isinstance(table, Table) and _is_index(table, index):
            return signature(table.dtype, table, index)
        return None


@infer_global(operator.setitem)
class _TableSet(AbstractTemplate):
    metadata = TRIED_FIRST

    def generic(self, args: Any, kws: Any) -> Any:
        table, index, _ = args
        if isinstance(table, Table) and _is_index(table, index):
            return signature(types.none, table, index, table.dtype)
        return None


@lower_builtin(operator.getitem, Table, types.Any)
def _get(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    table, index_type = sig.args
    element = builder.load(_place(context, builder, table, args[0], index_type, args[1]))
    _tag(builder, element, table)
    return element


@lower_builtin(operator.setitem, Table, types.Any, types.Any)
def _set(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    table, index_type, value_type = sig.args
    value = context.cast(builder, args[2], value_type, table.dtype)
    element = builder.store(value, _place(context, builder, table, args[0], index_type, args[1]))
    _tag(builder, element, table)
    return context.get_dummy_value()
