"""Printing, assertions and traps."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from weft.base import Span
from weft.ir.findings import Source, told_of
from weft.ir.lane import ELEMENT_BITS, LaneOp, Value

from .conversions import convert
from .emitter import Emitter, emitter
from .registers import linear, thread_index

Printed: TypeAlias = tuple[str, str, str]
"""The format, the LLVM type and the operand of a number that is printed."""


def address_of(e: Emitter, text: str, space: int = 0) -> str:
    """The address of a text that ends with a zero, in an address space."""
    symbol = e.strings.get(text)
    if symbol is None:
        data = text.encode("utf-8", "surrogatepass") + b"\0"
        spelled = "".join(chr(c) if 32 <= c < 127 and c not in (34, 92) else f"\\{c:02X}" for c in data)
        symbol = e.strings[text] = f"@text{len(e.strings)}"
        kind = f"addrspace({space}) constant" if space else "constant"
        e.module.globals.append(f'{symbol} = private unnamed_addr {kind} [{len(data)} x i8] c"{spelled}", align 1')
    return symbol


def _printed(e: Emitter, elem: str, name: str, *, as_hex: bool, signed: bool) -> tuple[str, str, str]:
    """(format, LLVM type, operand) of a value that is printed."""
    if elem in ("f64", "f32", "f16", "bf16") or elem.startswith("f8"):
        return "%f", "double", convert(e, elem, "f64", name)
    bits = ELEMENT_BITS[elem]
    long = "ll" if bits == 64 else ""
    form = f"0x%0{bits // 4}{long}x" if as_hex and bits > 1 else f"%{long}{'d' if signed else 'u'}"
    extension = "sext" if signed and not as_hex and elem != "i1" else "zext"
    return form, "i64" if long else "i32", name if bits >= 32 else e.ins(f"{extension} {e.llvm[elem]} {name} to i32")


@emitter("print")
def _print(e: Emitter, op: LaneOp) -> None:
    """A line for each element, as Triton has it; of values that belong to no tile, for each thread and register."""
    attrs = op.attrs
    pid = [("%d", "i32", e.dialect.place(e, f"program.{axis}")) for axis in "xyz"]
    prefix = str(attrs.get("prefix", ""))
    if "places" not in attrs:
        _print_registers(e, op, pid, prefix)
        return
    if not op.operands:
        _where(e, _SCALAR, lambda: _print_line(e, prefix.rstrip(), pid))
    many = attrs.get("operands", len(op.operands)) > 1
    for number, (value, place) in enumerate(zip(op.operands, attrs["places"], strict=True)):
        head = prefix + (f"(operand {attrs.get('operand', number)}) " if many else "")
        _print_tile(e, op, pid, head, value, place or _SCALAR, attrs["signed"][number])


_SCALAR: dict[str, Any] = {"dims": [], "registers": [0], "lane": -1, "warp": -1, "block": -1}


def _print_tile(
    e: Emitter, op: LaneOp, pid: list[Printed], head: str, value: Value, place: dict[str, Any], signed: bool
) -> None:
    def lines() -> None:
        indices = [linear(e, columns) for _, columns in place["dims"]]
        widths = [len(str(size - 1)) for size, _ in place["dims"]]
        registers = e[value]
        for k in place["registers"]:
            where = [(f"%{w}d", "i32", e.name(at[k])) for w, at in zip(widths, indices, strict=True)]
            name = e.name(registers[k] if len(registers) > 1 else registers[0])
            shown = _printed(e, value.elem, name, as_hex=bool(op.attrs.get("hex")), signed=signed)
            index = ", ".join(form for form, _, _ in where)
            _print_line(e, f" idx ({index}){_literal(head)}{shown[0]}", [*pid, *where, shown])

    _where(e, place, lines)


def _where(e: Emitter, place: Mapping[str, Any], do: Callable[[], None]) -> None:
    """Let the threads do something in whose indices some bits are 0."""
    mask = place["lane"] & e.program.lanes - 1 | (place["warp"] & e.program.warps - 1) * e.program.lanes
    ranks = place["block"] & e.program.blocks - 1
    if not mask and not ranks:
        do()
        return
    f = e.f
    bits = e.early("and i32", thread_index(e), str(mask))
    if ranks:
        rank = e.dialect.place(e, "rank", e.program.blocks)
        bits = e.early("or i32", bits, e.early("and i32", rank, str(ranks)))
    is_first = e.ins(f"icmp eq i32 {bits}, 0")
    inside, after = f.new_label("prints"), f.new_label("printed")
    e.do(f"br i1 {is_first}, label %{inside}, label %{after}")
    f.start(inside)
    mark = e.mark()
    do()
    e.forget(mark)
    e.do(f"br label %{after}")
    f.start(after)


def _print_registers(e: Emitter, op: LaneOp, pid: list[Printed], prefix: str) -> None:
    count = max((v.count for v in op.operands), default=1)
    as_hex = bool(op.attrs.get("hex"))
    for k in range(count):
        values = [_printed(e, v.elem, e.name(e.wide(v, count)[k]), as_hex=as_hex, signed=True) for v in op.operands]
        text = f" thread %d{f' register {k}' if count > 1 else ''}: {_literal(prefix)}"
        text += ", ".join(form for form, _, _ in values)
        _print_line(e, text, [*pid, ("%d", "i32", thread_index(e)), *values])


def _literal(text: str) -> str:
    """As it stands in a format."""
    return text.replace("%", "%%")


def _print_line(e: Emitter, text: str, values: list[Printed]) -> None:
    """A line: the program, then the text."""
    e.dialect.print(e, f"pid (%d, %d, %d){text}\n", [(type, name) for _, type, name in values])


@emitter("assert")
def _assert(e: Emitter, op: LaneOp) -> None:
    _assert_all(e, op, str(op.attrs.get("message", "")), op.span)


@emitter("check")
def _check(e: Emitter, op: LaneOp) -> None:
    """An assertion, without its values. Of several things that may be wrong the first gives the line."""
    sources = [Source.of(plain) for plain in op.attrs.get("sources", ())]
    texts = dict.fromkeys(told_of(source, 0)[0] for source in sources)
    message = " or ".join(texts) if sources else str(op.attrs.get("message", ""))
    condition = LaneOp("assert", op.operands[:1])
    _assert_all(e, condition, message, sources[0].span if sources else op.span)


def _assert_all(e: Emitter, op: LaneOp, message: str, span: Span | None) -> None:
    """A thread where it does not hold ends the launch."""
    conditions, f = e.names(op.operands[0]), e.f
    masks = [e.name(r) for r in e.wide(op.operands[1], len(conditions))] if len(op.operands) > 1 else []
    wrong = ""
    for k, condition in enumerate(conditions):
        failed = e.early("xor i1", condition, "true")
        if masks:
            failed = e.early("and i1", failed, masks[k])
        wrong = e.early("or i1", wrong, failed) if wrong else failed
    stop, on = f.new_label("failed"), f.new_label("held")
    e.do(f"br i1 {e.dialect.anywhere(e, wrong)}, label %{stop}, label %{on}")
    f.start(stop)
    path = str(getattr(span, "path", None) or getattr(span, "file", None) or "unknown")
    e.dialect.give_up(e, message, path, int(getattr(span, "line", 0) or 0))
    e.do(f"br label %{on}")
    f.start(on)


@emitter("trap")
def _trap(e: Emitter, op: LaneOp) -> None:
    e.dialect.trap(e)
