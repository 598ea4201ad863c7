"""The text of `ttg.warp_specialize`, read and written: its partitions are regions with arguments."""

from __future__ import annotations

from xdsl.ir import Attribute, Block, Operation, Region

from ..attrs import i32_array, ints_of
from ..text.reader import SPECIAL, Reader
from ..text.spelling import dict_text
from ..text.writer import WRITE, Writer
from .ttg import WarpSpecializeOp, WarpSpecializePartitionsOp


def _read(r: Reader, name: str) -> Operation:
    at = r.at - 1
    r.expect("(")
    names = [(r.need("v"), place) for place in r.items(")")]
    attributes = r.dictionary() if r.accept("attributes") else {}
    r.expect("default")
    default = r.region([])
    warps: list[int] = []
    partitions: list[Region] = []
    while r.texts[r.at] == f"partition{len(warps)}":
        r.at += 1
        r.expect("(")
        entry = r.arguments(")")
        r.expect("num_warps")
        r.expect("(")
        warps.append(r.integer())
        r.expect(")")
        partitions.append(r.region(entry, isolated=True))
    r.expect(":")
    inputs, outputs = r.function_signature()
    if len(inputs) != len(names):
        r.fail(f"{len(names)} values for the partitions, but {len(inputs)} types for them", at)
    operands = [r.value(n, t, i) for (n, i), t in zip(names, inputs, strict=True)]
    properties: dict[str, Attribute] = {"partitionNumWarps": i32_array(warps)}
    r.sort_out(WarpSpecializeOp, attributes, properties)
    holder = WarpSpecializePartitionsOp.create(regions=partitions)
    return WarpSpecializeOp.create(
        operands=operands,
        result_types=outputs,
        properties=properties,
        attributes=attributes,
        regions=(default, Region(Block([holder]))),
    )


def _write(w: Writer, op: Operation, left: str) -> None:
    shown: dict[str, Attribute] = {k: v for k, v in op.properties.items() if k != "partitionNumWarps"}
    shown.update(op.attributes)
    attributes = f" attributes {dict_text(shown, w.alias)}" if shown else ""
    w.line(f"{left}{op.name}({', '.join([w.name(v) for v in op.operands])}){attributes}")
    w.line("default {")
    w.blocks(op.regions[0])
    w.line("}")
    holder = op.regions[1].block.first_op
    warps = ints_of(op.properties["partitionNumWarps"])
    if not isinstance(holder, WarpSpecializePartitionsOp):
        raise ValueError("no partitions")
    for i, (count, region) in enumerate(zip(warps, holder.regions, strict=True)):
        block = region.blocks[0]
        arguments = [
            f"{w.define_argument(a, a.location)}: {w.type(a.type)}{w.location(a.location)}" for a in block.args
        ]
        w.line(f"partition{i}({', '.join(arguments)}) num_warps({count}) {{")
        w.blocks(region)
        w.line("}")
    w.lines[-1] += f" : {w.signature(op)}{w.location(op.location)}"


SPECIAL["ttg.warp_specialize"] = _read
WRITE["ttg.warp_specialize"] = _write
