"""Shared memory, and copies to it that go on while the program does other things."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from xdsl.ir import SSAValue

from weft.ir import int_value, ints_of
from weft.ir.gpu import MemDescType
from weft.layouts import SharedLayout

from . import kinds
from .expressions import ATOM, Text
from .memory import accessed, hints, masked
from .words import HOMES, SPECIAL, no_word, writes
from .writer import Writer, layout_of, shape_of_value


def _async_copy(w: Writer) -> str:
    """Gluon's module of copies that go on while the program does other things."""
    return w.module("async_copy", HOMES["async_copy"])


def memory_layout(value: SSAValue) -> SharedLayout:
    """The layout of memory, by the name that it has in the IR."""
    assert isinstance(value.type, MemDescType)
    named = value.type.data.layout.named
    assert isinstance(named, SharedLayout), value.type
    return named


def memory_kind(value: SSAValue) -> str:
    """The kind of elements of memory."""
    assert isinstance(value.type, MemDescType)
    return kinds.kind_of(value.type.data.element)


def memory_shape(value: SSAValue) -> tuple[int, ...]:
    """The shape of memory."""
    assert isinstance(value.type, MemDescType)
    return tuple(value.type.data.shape)


def described(w: Writer, value: SSAValue, text: str, kind: str = "") -> Text:
    """Shared memory as a text."""
    return Text(text, kind or memory_kind(value))


@writes("ttg.local_alloc")
def _alloc(w: Writer, op: Any) -> None:
    value = op.results[0]
    texts = [w.whole(t) for t in w.take(*op.operands)]
    kind = texts[0].kind if texts else memory_kind(value)
    special = SPECIAL.get((memory_kind(value), memory_layout(value))) if not texts else None
    if special is not None:
        layout = f"{w.module(special.module, HOMES[special.module])}.{special.text}"
    else:
        layout = w.shared.layouts.text(memory_layout(value))
    held = f", {texts[0].text}" if texts else ""
    text = f"gl.allocate_shared_memory({kinds.name_of(kind)}, {list(memory_shape(value))}, {layout}{held})"
    w.give(op, described(w, value, text, kind), effect=True)


@writes("ttg.local_dealloc")
def _dealloc(w: Writer, op: Any) -> None:
    (memory,) = w.take(*op.operands)
    w.effect(op, f"{memory.text}._keep_alive()")


@writes("ttg.memdesc_index")
def _index(w: Writer, op: Any) -> None:
    memory, index = w.take(*op.operands)
    w.give(op, replace(memory, text=f"{memory.text}.index({index.text})", binds=ATOM))


@writes("ttg.memdesc_trans")
def _trans(w: Writer, op: Any) -> None:
    (memory,) = w.take(*op.operands)
    order = [int(d) for d in ints_of(op.properties["order"])]
    w.give(op, replace(memory, text=f"{memory.text}.permute({order})", binds=ATOM))


@writes("ttg.memdesc_reshape")
def _reshape(w: Writer, op: Any) -> None:
    (memory,) = w.take(*op.operands)
    w.give(op, replace(memory, text=f"{memory.text}.reshape({list(memory_shape(op.results[0]))})", binds=ATOM))


@writes("ttg.memdesc_subslice")
def _subslice(w: Writer, op: Any) -> None:
    (memory,) = w.take(*op.operands)
    text = memory.text
    offsets = [int(v) for v in ints_of(op.properties["offsets"])]
    before, after = memory_shape(op.operands[0]), memory_shape(op.results[0])
    for d, (start, old, new) in enumerate(zip(offsets, before, after, strict=True)):
        if old != new:
            text += f".slice({start}, {new}, {d})"
    w.give(op, replace(memory, text=text, binds=ATOM))


@writes("ttg.memdesc_reinterpret")
def _reinterpret(w: Writer, op: Any) -> None:
    (memory,) = w.take(*op.operands)
    value = op.results[0]
    kind = memory_kind(value)
    layout = w.shared.layouts.text(memory_layout(value))
    text = f"{memory.text}._reinterpret({kinds.name_of(kind)}, {list(memory_shape(value))}, {layout})"
    w.give(op, described(w, value, text, kind))


@writes("ttg.local_load")
def _load(w: Writer, op: Any) -> None:
    (memory,) = w.take(op.operands[0])
    value = op.results[0]
    text = f"{memory.text}.load({w.layout(value)})"
    w.give(op, Text(text, memory.kind, shape_of_value(value), layout_of(value)))


@writes("ttg.local_store")
def _store(w: Writer, op: Any) -> None:
    value, memory = op.operands
    texts = w.take(memory, value)
    stored = w.whole(texts[1])
    if stored.kind != texts[0].kind and kinds.is_integer(stored.kind):
        stored = w.in_kind(stored, texts[0].kind)
    w.effect(op, f"{texts[0].text}.store({stored.text})")


@writes("ttg.async_copy_global_to_local")
def _copy(w: Writer, op: Any) -> None:
    sizes = [int(x) for x in op.properties["operandSegmentSizes"].get_values()]
    pointer, memory, *rest = op.operands
    if sizes[3]:
        raise no_word(op, "with something else than 0 for what is masked off")
    if "contiguity" in op.properties and int_value(op.properties["contiguity"]) != 1:
        raise no_word(op, "with a width that is asked for")
    texts, sign = masked(w, [memory, pointer], rest)
    target, *others = texts
    pointers, *masks = accessed(w, *others)
    name = _async_copy(w)
    mask = f", {sign}{w.whole(masks[0]).text}" if masks else ""
    w.effect(op, f"{name}.async_copy_global_to_shared({target.text}, {pointers.text}{mask}{hints(op)})")


@writes("ttg.async_commit_group")
def _commit(w: Writer, op: Any) -> None:
    w.effect(op, f"{_async_copy(w)}.commit_group()")


@writes("ttg.async_wait")
def _wait(w: Writer, op: Any) -> None:
    w.effect(op, f"{_async_copy(w)}.wait_group({int_value(op.properties['num'])})")
