"""Printing, assertions and traps."""

from __future__ import annotations

from weft.ir.lane import LaneOp

from .elementwise import convert
from .emitter import CONVERGENT, LLVM, Emitter, emitter
from .registers import special, thread_index

__all__: list[str] = []


def _string(e: Emitter, text: str) -> str:
    """The address of a text that ends with a zero."""
    found = e.strings.get(text)
    if found is None:
        data = text.encode("utf-8", "surrogatepass") + b"\0"
        spelled = "".join(chr(c) if 32 <= c < 127 and c not in (34, 92) else f"\\{c:02X}" for c in data)
        found = e.strings[text] = f"@text{len(e.strings)}"
        e.module.globals.append(f'{found} = private unnamed_addr constant [{len(data)} x i8] c"{spelled}", align 1')
    return found


def _printed(e: Emitter, elem: str, name: str, as_hex: bool) -> tuple[str, str, str]:
    """(format, LLVM type, operand) of a value for vprintf."""
    if elem in ("f64", "f32", "f16", "bf16") or elem.startswith("f8"):
        return "%f", "double", convert(e, elem, "f64", name)
    if elem == "i64":
        return ("0x%016llx" if as_hex else "%lld"), "i64", name
    how = "zext" if elem == "i1" or as_hex else "sext"
    wide = name if elem == "i32" else e.ins(f"{how} {LLVM[elem]} {name} to i32")
    return ("0x%08x" if as_hex else "%d"), "i32", wide


@emitter("print")
def _print(e: Emitter, op: LaneOp) -> None:
    """A line for each register: the program, the thread, the prefix, the values."""
    where = [("%d", "i32", special(e, f"ctaid.{axis}")) for axis in "xyz"] + [("%d", "i32", thread_index(e))]
    prefix = str(op.attrs.get("prefix", "")).replace("%", "%%")
    count = max((v.count for v in op.operands), default=1)
    for k in range(count):
        values = [_printed(e, v.elem, e.name(e.wide(v, count)[k]), bool(op.attrs.get("hex"))) for v in op.operands]
        text = f"pid (%d, %d, %d) thread %d{f' register {k}' if count > 1 else ''}: {prefix}"
        text += ", ".join(form for form, _, _ in values) + "\n"
        _vprintf(e, text, [*where, *values])


def _vprintf(e: Emitter, text: str, values: list[tuple[str, str, str]]) -> None:
    type = f"{{ {', '.join(t for _, t, _ in values)} }}"
    e._count += 1
    buffer = f"%b{e._count}"
    e.f.allocas.append(f"  {buffer} = alloca {type}, align 8")
    for i, (_, kind, name) in enumerate(values):
        place = e.ins(f"getelementptr {type}, ptr {buffer}, i32 0, i32 {i}")
        e.do(f"store {kind} {name}, ptr {place}")
    e.do(e.call("vprintf", "i32", [("ptr", _string(e, text)), ("ptr", buffer)]))


@emitter("assert")
def _assert(e: Emitter, op: LaneOp) -> None:
    """A thread where it does not hold calls CUDA's own assertion, which ends the launch."""
    conditions, f = e.names(op.operands[0]), e.f
    masks = [e.name(r) for r in e.wide(op.operands[1], len(conditions))] if len(op.operands) > 1 else []
    wrong = ""
    for k, condition in enumerate(conditions):
        failed = e.pure(f"xor i1 {condition}, true")
        if masks:
            failed = e.pure(f"and i1 {failed}, {masks[k]}")
        wrong = e.pure(f"or i1 {wrong}, {failed}") if wrong else failed
    stop, on = f.new_label("failed"), f.new_label("held")
    e.do(f"br i1 {wrong}, label %{stop}, label %{on}")
    f.start(stop)
    span = op.span
    message = str(op.attrs.get("message", ""))
    arguments = [
        ("ptr", _string(e, message)),
        ("ptr", _string(e, str(getattr(span, "path", None) or getattr(span, "file", None) or "unknown"))),
        ("i32", str(int(getattr(span, "line", 0) or 0))),
        ("ptr", _string(e, e.program.name)),
        ("i64", "1"),
    ]
    e.do(e.call("__assertfail", "void", arguments))
    e.do(f"br label %{on}")
    f.start(on)


@emitter("trap")
def _trap(e: Emitter, op: LaneOp) -> None:
    e.asm("trap;", "", (), (), CONVERGENT)
