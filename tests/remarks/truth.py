"""Whether what remarks say of a kernel is what its program does, and all of it: `untrue` and `untold` list where not.

accesses    every access of global memory at a line with remarks of accesses has a width that one of them tells
buffers     as many as there are remarks of them, and they reach up to the memory that the kernel asks for
barriers    those that the compiler put in are as many as there are remarks of them; fences likewise
products    matrix instructions are as many as told
all else    what moves between lanes, to shared memory or by an engine has a remark at its place that explains it
"""

from __future__ import annotations

import linecache
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from math import prod

from xdsl.dialects.builtin import ModuleOp

from weft.base import Span
from weft.ir import is_tensor, shape_of, span_of, walk
from weft.ir.gpu import encoding_of, told_layout
from weft.ir.lane import ELEMENT_BITS, LaneOp, LaneProgram
from weft.remarks import (
    AccessWidth,
    Barrier,
    Conversion,
    Fence,
    LayoutChanged,
    LayoutChosen,
    LoopNest,
    Placed,
    ProductBy,
    Remarks,
    RowAligned,
    ScratchBuffer,
    SharedBuffer,
)

__all__ = ["untold", "untold_on_a_cpu", "untrue"]

ACCESS = {"access width", "row aligned"}
MOVED = {"conversion", "gather", "reduction", "scan"}
EXPLAINED_BY = (
    (r"shuffle", MOVED | {"access width", "row aligned"}),
    (r"(load|store|atomic) (shared|cluster) .*", MOVED | ACCESS | {"shared access", "shared buffer"}),
    (r"(load|store|atomic) global (?!1\b).*|copy_async", ACCESS),
    (r"instruction (ld|st)matrix.*", {"conversion", "shared access"}),
    (r"instruction .*mma.*", {"product"}),
    (r"instruction cp\.async\.bulk\.tensor.*", {"bulk copy"}),
    (r"load global .* no_allocate", {"cache hint"}),
)
"""Operations of a lane program (name, space, registers, instruction or hint), and the kinds of remarks that tell of
such a one, at its place."""


def _bytes_of(op: LaneOp) -> int | None:
    """How many bytes a lane accesses at a time in global memory; None for another operation."""
    if op.name == "copy_async":
        return int(op.attrs["bytes"])
    if op.name not in ("load", "store", "atomic") or op.attrs.get("space") != "global":
        return None
    value = op.result if op.name == "load" else op.operands[1]
    return max(8, ELEMENT_BITS[value.elem]) // 8 * int(op.attrs.get("vector", 1))


def _is_written(op: LaneOp) -> bool:
    """Whether the kernel's author wrote a barrier or fence."""
    words = ("barrier", "fence", "cluster_arrive", "cluster_wait")
    return op.span is not None and any(w in linecache.getline(op.span.file, op.span.line) for w in words)


def untrue(program: LaneProgram, remarks: Remarks, *, parted: bool = False) -> Iterator[str]:
    """What remarks say that the program does not do; with `parted` it was written anew, part by part."""
    told: dict[object, set[int]] = defaultdict(set)
    for r in remarks.of(AccessWidth):
        told[r.span].add(r.bytes)
    rows = {r.span: r for r in remarks.of(RowAligned)}
    for op in program.body.walk():
        size = _bytes_of(op)
        if size is not None and op.span in told and op.span not in rows and size not in told[op.span]:
            yield f"{op.span}: {op.name} of {size} bytes, told are {sorted(told[op.span])}"
        if size is not None and op.span in rows and size > rows[op.span].bytes:
            yield f"{op.span}: {op.name} of {size} bytes, told is a row by {rows[op.span].bytes}"
    yield from _unlike(remarks, SharedBuffer, sum(b.bytes > 0 for b in program.shared), program.shared_bytes)
    if parted:
        return
    ops = list(program.body.walk())
    barriers = [op for op in ops if op.name == "barrier"]
    put_in = [op for op in barriers if op.attrs["inserted"] or op in program.between or not _is_written(op)]
    fences = [op for op in ops if op.name == "fence" and str(op.attrs["kind"]).startswith("async")]
    made = [op for op in fences if op.attrs.get("inserted") or not _is_written(op)]
    for name, kind, count in (("barriers", Barrier, len(put_in)), ("fences", Fence, len(made))):
        if count != sum(r.times for r in remarks.of(kind)):
            yield f"{count} {name}, told are {sum(r.times for r in remarks.of(kind))}"
    used = Counter(op.attrs["isa"] for op in ops if op.name == "instruction")
    names: Counter[str] = Counter()
    for p in remarks.of(ProductBy):
        if p.instruction:
            names[p.instruction] += p.count * p.times
    for name, n in names.items():
        if used[name] != n:
            yield f"{used[name]} {name}, told are {n}"


def _unlike(remarks: Remarks, kind: type[Placed], count: int, size: int) -> Iterator[str]:
    told = remarks.of(kind)
    if (number := sum(b.times for b in told)) != count:
        yield f"{count} buffers, told are {number}"
    if (reach := max((b.offset + b.bytes for b in told), default=0)) != size:
        yield f"buffers up to {reach} bytes, the program has {size}"


def _described(op: LaneOp) -> str:
    counts = [value.count for value in (*op.results, *op.operands[1:], *op.operands)] or [0]
    words = op.name, op.attrs.get("space"), counts[0] if "space" in op.attrs else None, op.attrs.get("isa")
    return " ".join(str(word) for word in (*words, op.attrs.get("evict")) if word is not None)


def untold(program: LaneProgram, module: ModuleOp, remarks: Remarks, *, of_author: bool) -> Iterator[str]:
    """What the program does, or the layout IR that it was made of has, and no remark tells; with `of_author`, layouts
    are an author's."""
    kinds: dict[Span | None, set[str]] = defaultdict(set)
    for r in remarks:
        kinds[r.span].add(r.kind)
    for each in walk(module):
        if each.name in ("tt.reduce", "tt.scan"):  # shuffles have the place of what combines
            for inner in walk(each):
                kinds[span_of(inner)] |= kinds[span_of(each)]
    rows = {"row aligned"} if remarks.of("row aligned") else set()  # whose ends are shuffled where they are first used
    for op in program.body.walk():
        if op.name not in ("shuffle", "load", "store", "atomic", "copy_async", "instruction"):
            continue
        for pattern, explained in EXPLAINED_BY:
            if re.fullmatch(pattern, _described(op)) and not (kinds[op.span] | rows) & explained:
                yield f"{op.span}: {_described(op)}: none of {', '.join(sorted(explained))}"
    if bool(program.most_blocks) != bool(remarks.of("few blocks")):
        yield f"at most {program.most_blocks} blocks at a time"
    layouts = {r.layout for r in remarks.of(LayoutChosen)} | {r.after for r in remarks.of(LayoutChanged)}
    converted = {r.span for r in remarks.of(Conversion)}
    for each in walk(module):
        if each.name == "ttg.convert_layout" and span_of(each) not in converted:
            yield f"{span_of(each)}: a conversion"
        if each.name in ("tt.load", "tt.dot") and is_tensor(each.results[0].type) and not of_author:
            encoding = encoding_of(each.results[0].type)
            if encoding is not None and told_layout(encoding.named) not in layouts:
                yield f"{span_of(each)}: {each.name} in {told_layout(encoding.named)}"


def untold_on_a_cpu(kernel: object, module: ModuleOp, remarks: Remarks) -> Iterator[str]:
    """The same of a kernel for the CPU, and of the tile IR that it was made of."""
    llir = kernel.asm["llir"]  # type: ignore[attr-defined]
    told = {r.span for r in remarks} | {site.span for nest in remarks.of(LoopNest) for site in nest.does}
    names = ("load", "store", "reduce", "scan", "gather", "histogram", "dot", "atomic_rmw", "map_elementwise")
    for op in walk(module):
        if op.name in [f"tt.{n}" for n in names] and prod(shape_of(op.operands[0].type)) > 1:
            if span_of(op) not in told:
                yield f"{span_of(op)}: {op.name}"
    versions = " ".join(v for nest in remarks.of(LoopNest) for v in nest.versions)
    told_of = {"call void @llvm.prefetch": remarks.of("prefetched"), "!nontemporal": "past the caches" in versions}
    for text, is_told in told_of.items():
        if (text in llir) > bool(is_told):
            yield f"{text}, which no remark tells"
    size = kernel.metadata.scratch_bytes  # type: ignore[attr-defined]
    yield from _unlike(remarks, ScratchBuffer, sum(b.times for b in remarks.of(ScratchBuffer)), size)
