"""The lane program: what one lane of a GPU does.

Idea
----
The lowering turns layout IR into a lane program, once, and three readers take it: the emitters write it as LLVM IR,
the simulator runs it with NumPy, and the counters and remarks count it. No layout is left in it. Every lane of a block
runs the same operations in the same order; control flow is uniform over the block, or over the warps of a partition.
What differs between lanes is only what they compute.

A value is a *fragment*: `count` registers of one element type, of which every lane has its own. An operation works on
all registers of its operands, so a program stays small however large the tile is: an emitter unrolls it, and the
simulator holds each value as one array [warp, lane, register]. The operands of an element-wise operation have one
count, or count 1 for a value that is the same for all registers.

Example
-------
One warp doubles 128 floats. Each lane has four that lie side by side, 16 bytes, so lane l begins at byte 16 * l:

    >>> from weft.machines import machine_of
    >>> x, out = Value("i64", 1), Value("i64", 1)
    >>> build = Builder(Block((x, out)))
    >>> def of_lane(base):
    ...     offset = build.linear((0,), lane=(16, 32, 64, 128, 256))
    ...     return build.op("arith.addi", [base, build.op("arith.extui", [offset], "i64")], "i64")
    >>> four = build.load("global", of_lane(x), "f32", vector=4)
    >>> twice = build.op("arith.addf", [four, four], "f32")
    >>> build.store("global", of_lane(out), twice, vector=4)
    >>> parameters = Parameter("x", "ptr", "f32"), Parameter("out", "ptr", "f32")
    >>> program = LaneProgram("double", machine_of("cuda:80"), parameters, build.block, warps=1)
    >>> verify(program)
    >>> print(text_of(program))
    double(%0: x ptr*f32, %1: out ptr*f32) for cuda:80, 1 warps of 32 lanes
      %2: i32 = linear {registers=(0,), lane=(16, 32, 64, 128, 256), warp=(), block=()}
      %3: i64 = arith.extui %2
      %4: i64 = arith.addi %0, %3
      %5: f32x4 = load %4 {space=global, vector=4, masked=False}
      %6: f32x4 = arith.addf %5, %5
      %7: i32 = linear {registers=(0,), lane=(16, 32, 64, 128, 256), warp=(), block=()}
      %8: i64 = arith.extui %7
      %9: i64 = arith.addi %1, %8
      store %9, %6 {space=global, vector=4, masked=False}

`linear` is all that is left of a layout: the lane's number, bit by bit, selects what is combined by xor. In lane 5,
bits 0 and 2 are set: 16 ^ 64 is 80. The load has one address and gives four registers; on a GPU it is one instruction
of 16 bytes for each lane.

Invariants
----------
* A value is defined before it is used, once, in the block of its use or one around it; regions hand values on by
  `yield`. `verify` checks this, the names, and the counts of registers.
* Every operation is a row of `OPERATIONS` below, an element-wise one a row of `weft.ops`: what it does is said there,
  computed by `sim/` and written as LLVM IR by `backends/`.
* Addresses are i64 bytes in global memory and i32 bytes in the block's shared memory.
* A load, store or atomic takes one address for `vector` consecutive elements. A lane whose mask is false touches
  nothing.
* An operation carries the span of the source line that it serves; the builder sets it.

Why a structure of our own, and why fragments
---------------------------------------------
xDSL represents the levels above. A lane program may have tens of thousands of operations once its loops are unrolled,
and each pass over it visits them all; an operation of slots and tuples costs a few microseconds to make and to visit,
which one with verified attributes does not. LLVM IR in its place would be one operation for each register (32 times as
many for an accumulator of 64x64 on four warps), would need a GPU to be run, and would be a second definition of what
the simulator judges. With fragments, emitter and simulator read the same few lines, so what is tested without a GPU is
the lowering itself.

The idea that a kernel is one program for all lanes is SPMD as in ispc (Pharr and Mark, ispc: A SPMD Compiler for
High-Performance CPU Programming, InPar 2012); registers as an explicit dimension of a value follow the linear layouts
of layouts/linear.py.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from weft.base import CompilerCrash, Span
from weft.base.made_tensors import MadeTensor
from weft.base.remarks import NO_REMARKS, RemarkCollector, Site
from weft.layouts import LinearLayout
from weft.machines import Machine
from weft.ops import ELEMENTS
from weft.ops.table import ROWS

ELEMENT_BITS = {e.name: e.bits for e in ELEMENTS.values()}
"""Element types and their bits; an i1 takes a predicate register, in memory a byte."""


class Value:
    """A fragment: `count` registers of type `elem` in each lane."""

    __slots__ = ("count", "elem", "name", "op")

    def __init__(self, elem: str, count: int, op: LaneOp | None = None) -> None:
        self.elem, self.count, self.op = elem, count, op
        self.name = ""

    def __repr__(self) -> str:
        return f"<{self.elem} x {self.count}>"


@dataclass(slots=True, eq=False)
class LaneOp:
    """One operation; what the attributes mean is said in `OPERATIONS`."""

    name: str
    operands: tuple[Value, ...] = ()
    results: tuple[Value, ...] = ()
    attrs: dict[str, Any] = field(default_factory=dict)
    regions: tuple[Block, ...] = ()
    span: Span | None = None

    @property
    def result(self) -> Value:
        """The result, of an operation that has one."""
        return self.results[0]

    @property
    def counted_as(self) -> str:
        """By what name its executions are counted at its place."""
        return f"{self.name}.rest" if self.attrs.get("rest") else self.name


@dataclass(slots=True, eq=False)
class Block:
    """Operations in order; `arguments` are given by the operation whose region it is."""

    arguments: tuple[Value, ...] = ()
    ops: list[LaneOp] = field(default_factory=list)

    def walk(self) -> Iterator[LaneOp]:
        """All operations, those in regions after the one they belong to; without recursion, as nests may be deep."""
        levels = [iter(self.ops)]
        while levels:
            for op in levels[-1]:
                yield op
                if op.regions:
                    levels += [iter(region.ops) for region in reversed(op.regions)]
                    break
            else:
                levels.pop()

    def blocks(self) -> Iterator[Block]:
        """This block, and those in the regions of all its operations."""
        yield self
        for op in self.walk():
            yield from op.regions

    def branches(self) -> dict[LaneOp, int]:
        """The number of each `if`: the blocks of LLVM IR that it becomes are called by it, and its counters."""
        return {op: i for i, op in enumerate(op for op in self.walk() if op.name == "if")}

    def loops(self) -> dict[LaneOp, int]:
        """The number of each `for` in a branch, by which the block of LLVM IR behind it is called."""
        inside = [op for branch in self.branches() for region in branch.regions for op in region.walk()]
        return {op: i for i, op in enumerate(dict.fromkeys(op for op in inside if op.name == "for"))}

    def uses(self) -> dict[Value, list[LaneOp]]:
        """The operations that use each value, those in regions too, once for each time."""
        users: dict[Value, list[LaneOp]] = {}
        for op in self.walk():
            for value in op.operands:
                users.setdefault(value, []).append(op)
        return users


@dataclass(frozen=True)
class Parameter:
    """A kernel parameter: a scalar, a pointer (elem "ptr") to elements of type `pointee`, or a tensor map.

    A tensor map (elem "tensormap") is 128 bytes passed by value, aligned to 64; the argument is their generic address,
    an i64. Who launches encodes it for boxes of `box` elements, the innermost dimension first, swizzled by `swizzle`
    bytes (16 is none). `block` is the tile that one transfer moves, in one box or several, the outermost first; of the
    maps that follow the parts of a descriptor nothing is said, which may be for parts of its blocks.
    `descriptor` counts the descriptors among the kernel's arguments where a map follows the parts of one; else -1.
    `made` is the tensor of a map that no argument describes, and that is made of several.
    """

    name: str
    elem: str
    pointee: str = ""
    box: tuple[int, ...] = ()
    swizzle: int = 0
    block: tuple[int, ...] = ()
    descriptor: int = -1
    made: MadeTensor | None = None


@dataclass
class Allocation:
    """A buffer in shared memory; `offset` is set when memory is placed. The span is the source line it serves, `lines`
    are where it is first and last used, as far as that was asked."""

    bytes: int
    alignment: int = 16
    offset: int | None = None
    span: Span | None = None
    what: str = ""
    lines: tuple[Span, Span] | None = None
    tile: str = ""


@dataclass(frozen=True)
class Variable:
    """A name of the kernel's source for a value, for debuggers; `layout` is that of a tile, None for a scalar.

    With `memory` the value is the address of a buffer of such elements in shared memory, of shape `shape`: tiles one
    after the other, each with `layout` from offsets to coordinates; after every so many elements so many more are left
    out, as `gaps` says.
    """

    name: str
    value: Value
    layout: LinearLayout | None = None
    memory: str = ""
    shape: tuple[int, ...] = ()
    gaps: tuple[tuple[int, int], ...] = ()


@dataclass
class LaneProgram:
    """A kernel for one machine: its parameters are the arguments of `body`, in order, pointers as i64."""

    name: str
    machine: Machine
    parameters: tuple[Parameter, ...]
    body: Block
    warps: int
    """All warps of a block, those of partitions included."""
    blocks: int = 1
    """Blocks of a cluster."""
    registers: int = 0
    """Registers of a thread at entry, which setmaxnreg takes from and gives to; 0 is as many as the compiler wants."""
    at_a_time: int = 0
    """Blocks that a multiprocessor is to have registers for; 0 is as many as the compiler wants."""
    most_blocks: int = 0
    """Blocks that a multiprocessor is to run at a time, at most; 0 is as many as fit."""
    blocks_by_memory: bool = False
    """Whether `most_blocks` is for the slowest memory of this generation, and a launch raises it for faster memory."""
    scratch: int = 0
    """Bytes of global memory that each program gets for itself, aligned to 128."""
    programs_each: int = 1
    """Programs that a block executes one after the other, at most, if the grid has more than run at a time. Of so many
    blocks along x, block b executes the programs b, b + blocks, b + 2 * blocks ...; `body` is one program all the
    same, so that nothing in it may rely on the memory of a program before it. With 1 every program has its block."""
    shared: list[Allocation] = field(default_factory=list)
    variables: list[Variable] = field(default_factory=list)
    """What the kernel's variables have become, in the order of their assignments."""
    remarks: RemarkCollector = NO_REMARKS
    """Where whoever decides something about the program says so."""
    between: dict[LaneOp, tuple[str, Site, Site]] = field(default_factory=dict)
    """Of barriers that an operation brings along: the memory, and what each is between."""

    @property
    def target(self) -> str:
        """The name of its machine, for messages."""
        return self.machine.name

    @property
    def lanes(self) -> int:
        """Threads of a warp."""
        return self.machine.lanes

    @property
    def shared_bytes(self) -> int:
        """Bytes of shared memory that a block needs."""
        return max(((a.offset or 0) + a.bytes for a in self.shared), default=0)


OPERATIONS: dict[str, str] = {
    # values
    "constant": "one register of attrs value, the same in all lanes; elem of the result",
    "keep": "(values): they are computed here, and not later",
    "program_id": "attrs axis: i32, the program's index in the grid",
    "num_programs": "attrs axis: i32, the grid's size",
    "linear": "attrs registers, lane, warp, block: i32; register k holds registers[k] xor the entries of lane, warp "
    "and block (the index in the cluster) whose bits are set in the indices: a linear layout, flattened; uniform: "
    "(if warps are to take it as one value)",
    "undefined": "registers that hold nothing: whatever depends on them is undefined",
    "zero": "i32: 0, of which no compiler knows that it is; it is found where it stands, not earlier",
    "clock": "i64: nanoseconds since some moment, of when it stands there",
    # elementwise: arith.*, math.* and libdevice names with MLIR's meaning; attrs as there (predicate, fastmath, ...);
    # precise: a quotient or root that must be rounded once; scaled: of an f32 quotient by no constant, which kinds of
    # divisors there may be that have no normal reciprocal: tiny, huge
    "select": "(condition, a, b)",
    # registers
    "rename": "attrs table: register k of the result is register table[k] of the operand; free",
    "join": "(a, b, ...): their registers one after the other; free",
    "pack": "n registers of a small type, from the lowest bits on, in each register of a larger integer type",
    "unpack": "the inverse of pack; elem of the result",
    "permute": "(a, b, selector), all i32: byte i of the result is the byte of b:a that bits 4i to 4i + 2 of the "
    "selector name, 0 to 3 those of a; attrs each: how many elements are packed in a word, which stay whole",
    # between lanes
    "shuffle": "attrs kind xor: masks, one for each register; kind idx: (value, lane) with the lane to read from",
    "ballot": "(i1): the lanes of the warp where it holds, a bit each: i32, i64 for warps of 64",
    "elect": "i1: true in one lane of each warp, always the same one; from sm_90 on",
    # memory: operands in brackets may be absent; attrs space is global, shared or cluster
    "load": "(address[, mask, other]), attrs space, vector: each address register gives vector consecutive elements; "
    "cache (ca, cg, ...), evict (evict_first, evict_last, no_allocate) and volatile are for who emits instructions",
    "store": "(address, value[, mask]), attrs space, vector; row (a number, of loads too): of what such "
    "operations with one number access, each warp has its own; part: those with one number are one store",
    "atomic": "(address, value[, mask]), attrs space, kind, order, scope: the old values; attrs vector: additions of 2 "
    "f16 (bf16 from sm_90 on), from sm_90 on of up to 16 bytes of f16, bf16, f32, side by side, each a step of its own",
    "compare_and_swap": "(address, expected, value[, mask]), attrs space, order, scope: the old values",
    "shared": "attrs allocation (index): i32, where a buffer of shared memory begins",
    "remote": "(address, rank): i32, the address in space cluster of what lies at an address of shared memory in the "
    "block of the cluster that has this rank; distances are the same in both spaces",
    "scratch": "attrs offset: i64, the address of this byte of the program's own global memory",
    "instruction": "attrs isa: the name of an entry of the target's instruction table, with its operands; n times the "
    "registers are n instructions, an operand with those of one takes part in all; of an operand that is an immediate "
    "the value is a constant. Those with an operand `active` are for the lanes where it holds",
    "await": "(values): the same values, which are valid from here on: all but the last attrs pending groups of attrs "
    "kind (product) are done. Until then nothing but a further product, as its accumulator, may use them. An emitter "
    "ties the values to the wait, so that no use moves before it",
    "assembly": "(values...), attrs text, constraints, pure, pack: inline assembly of the target on `pack` elements at "
    "a time, small ones packed into words; its constraints are those of LLVM. Not simulated",
    "prefetch": "(global address, bytes, i1): where it holds, so many bytes are asked for, to come to the L2 cache. Of "
    "programs that are not finished (lower/nvidia)",
    "copy_async": "(shared address, global address[, mask or size]), attrs bytes: 4, 8 or 16; done when its group is "
    "awaited; zeros where the mask does not hold, or behind the first `size` bytes (i32)",
    "commit_async": "ends a group of asynchronous copies",
    "wait_async": "attrs pending: all groups but the last so many are done, for this lane",
    "barrier": "attrs scope: warp, block or cluster; attrs inserted: whether the compiler put it there, of: global if "
    "for global memory; of a part of the block: attrs id, and warps, how many of them. Of the same part of all blocks "
    "of a cluster: attrs at, the place of an mbarrier in shared memory that each block has for it, too",
    "fence": "attrs kind async, async.cluster, block, device or system: what was written is seen by the asynchronous "
    "proxy (wgmma, bulk copies) of the block or the cluster, the block, the device, the system; acquire.block, "
    "acquire.device, acquire.system: what is read from here on is as new as what was read before",
    # control flow: uniform; regions end with yield
    "for": "(lower, upper, step, initial...), one region with (index, carried...); attrs ping_pong: the warps from "
    "this one on wait at a barrier of the block (id 0) before the loop, and the others at one behind it; rest: whether "
    "it does the few iterations that another loop of its place leaves out",
    "while": "(initial...), regions before (ends with condition) and after",
    "if": "(condition), regions then and else; attrs of_warp: each warp decides for itself, and waits for none in them",
    "yield": "(values...)",
    "condition": "(condition, values...)",
    "return": "ends the program",
    "partitions": "attrs starts, warps: region i is run by the warps from starts[i] on, warps[i] of them, and by no "
    "others; it ends with a yield of nothing. In it the warp's index counts from starts[i], and barriers say their id. "
    "Only as the first operation of the body, followed by return",
    # the rest
    "print": "attrs prefix, hex: device_print of its operands; for those who print tiles, attrs layouts, signed and "
    "places, which say of each register in plain numbers which element it is",
    "assert": "(condition[, mask]), attrs message",
    "check": "(condition, values...), attrs of a `weft.check` and layouts: who simulates it tells values and place",
    "trap": "ends the launch with an error",
}
"""Every operation that is no element-wise one, and what it does."""


def is_elementwise(name: str) -> bool:
    """Whether an operation computes each register of its result from those at the same place."""
    return name in ROWS or name.startswith("libdevice.")


class Builder:
    """Appends operations to a block, with the source place that is set."""

    def __init__(self, block: Block) -> None:
        self.block = block
        self.span: Span | None = None
        self.partition: tuple[int, int] | None = None
        """(the id of its barrier, how many warps) of the partition that is written."""

    def add(
        self,
        name: str,
        operands: Sequence[Value] = (),
        results: Sequence[tuple[str, int]] = (),
        attrs: dict[str, Any] | None = None,
        regions: Sequence[Block] = (),
    ) -> LaneOp:
        """Any operation; `results` are (elem, count)."""
        op = LaneOp(name, tuple(operands), (), attrs or {}, tuple(regions), self.span)
        op.results = tuple([Value(elem, count, op) for elem, count in results])
        self.block.ops.append(op)
        return op

    def constant(self, elem: str, value: int | float) -> Value:
        """A number, the same in all lanes."""
        return self.add("constant", (), [(elem, 1)], {"value": value}).result

    def op(self, name: str, operands: Sequence[Value], elem: str, **attrs: Any) -> Value:
        """An element-wise operation; the result has as many registers as the largest operand."""
        return self.add(name, operands, [(elem, max([v.count for v in operands]))], attrs).result

    def linear(
        self,
        registers: Sequence[int],
        lane: Sequence[int] = (),
        warp: Sequence[int] = (),
        block: Sequence[int] = (),
        *,
        uniform: bool = False,
    ) -> Value:
        """A linear function of register, lane, warp and block, as i32; `uniform` where warps are to take it as one."""
        attrs: dict[str, Any] = {
            "registers": tuple(registers), "lane": tuple(lane), "warp": tuple(warp), "block": tuple(block)
        }  # fmt: skip
        if uniform:
            attrs["uniform"] = True
        return self.add("linear", (), [("i32", len(registers))], attrs).result

    def holds_somewhere(self, condition: Value, lanes: int) -> Value:
        """i1: whether a condition holds in any lane of a warp of so many."""
        mask = self.add("ballot", [condition], [("i32" if lanes <= 32 else "i64", 1)]).result
        return self.op("arith.cmpi", [mask, self.constant(mask.elem, 0)], "i1", predicate=1)

    def rename(self, value: Value, table: Sequence[int]) -> Value:
        """Registers in another order, or some of them."""
        if tuple(table) == tuple(range(value.count)):
            return value
        return self.add("rename", [value], [(value.elem, len(table))], {"table": tuple(table)}).result

    def gather(self, places: Sequence[tuple[Value, int]]) -> Value:
        """Registers of several values, each (value, register), as one."""
        values = list(dict.fromkeys(v for v, _ in places))
        starts, at = dict[Value, int](), 0
        for v in values:
            starts[v], at = at, at + v.count
        joined = values[0] if len(values) == 1 else self.add("join", values, [(values[0].elem, at)]).result
        return self.rename(joined, [starts[v] + r for v, r in places])

    def select(self, condition: Value, a: Value, b: Value) -> Value:
        """a where the condition holds, else b."""
        return self.op("select", [condition, a, b], a.elem)

    def shuffle_xor(self, value: Value, masks: Sequence[int]) -> Value:
        """Each register from the lane at a distance."""
        return self.add("shuffle", [value], [(value.elem, value.count)], {"kind": "xor", "masks": tuple(masks)}).result

    def shuffle(self, value: Value, lane: Value) -> Value:
        """Each register from a lane that is computed."""
        return self.add("shuffle", [value, lane], [(value.elem, value.count)], {"kind": "idx"}).result

    def load(
        self,
        space: str,
        address: Value,
        elem: str,
        vector: int = 1,
        mask: Value | None = None,
        other: Value | None = None,
        **attrs: Any,
    ) -> Value:
        """address.count times vector elements; where the mask (one for each address) does not hold, `other`."""
        operands = [v for v in (address, mask, other) if v is not None]
        attrs |= {"space": space, "vector": vector, "masked": mask is not None}
        return self.add("load", operands, [(elem, address.count * vector)], attrs).result

    def store(
        self, space: str, address: Value, value: Value, vector: int = 1, mask: Value | None = None, **attrs: Any
    ) -> None:
        """value.count = address.count times vector elements, where the mask holds."""
        operands = [v for v in (address, value, mask) if v is not None]
        self.add("store", operands, (), attrs | {"space": space, "vector": vector, "masked": mask is not None})

    def instruction(self, isa: str, operands: Sequence[Value], results: Sequence[tuple[str, int]] = ()) -> LaneOp:
        """An instruction of the target; `results` are (elem, count)."""
        return self.add("instruction", operands, results, {"isa": isa})

    def atomic(
        self,
        space: str,
        kind: str,
        address: Value,
        value: Value,
        mask: Value | None = None,
        order: str = "acq_rel",
        scope: str = "gpu",
    ) -> Value:
        """The old values; of masked-off lanes 0."""
        operands = [v for v in (address, value, mask) if v is not None]
        attrs = {"space": space, "kind": kind, "order": order, "scope": scope, "masked": mask is not None}
        return self.add("atomic", operands, [(value.elem, value.count)], attrs).result

    def copy_async(self, to: Value, source: Value, size: int, mask: Value | None = None) -> None:
        """`size` bytes from each global address to each shared one, on their own."""
        operands = [v for v in (to, source, mask) if v is not None]
        self.add("copy_async", operands, (), {"bytes": size})

    def remote(self, address: Value, rank: Value) -> Value:
        """An address of shared memory as that of the same place in other blocks of the cluster."""
        return self.add("remote", [address, rank], [("i32", max(address.count, rank.count))]).result

    def barrier(self, scope: str = "block", inserted: bool = True) -> None:
        """All lanes of the scope arrive before any goes on; the block is that of the partition, in the cluster too."""
        attrs: dict[str, Any] = {"scope": scope, "inserted": inserted}
        if scope != "warp" and self.partition is not None:
            number, warps = self.partition
            one_warp = scope == "block" and warps == 1
            attrs = attrs | {"scope": "warp"} if one_warp else attrs | {"id": number, "warps": warps}
        self.add("barrier", (), (), attrs)


def barrier_of(loop: LaneOp) -> LaneOp:
    """The barrier at which one group of warps waits before or behind a loop that two of them run in turns."""
    return LaneOp("barrier", attrs={"scope": "block", "inserted": True, "id": 0}, span=loop.span)


def text_of(program: LaneProgram) -> str:
    """The program as text, for people."""
    names: dict[Value, str] = {}

    def name(value: Value) -> str:
        if value not in names:
            names[value] = f"%{len(names)}"
        return names[value]

    def typed(value: Value) -> str:
        return f"{value.elem}x{value.count}" if value.count != 1 else value.elem

    lines: list[str] = []

    def block(b: Block, indent: str) -> None:
        for op in b.ops:
            left = ", ".join(f"{name(r)}: {typed(r)}" for r in op.results)
            attrs = ", ".join(f"{k}={v}" for k, v in op.attrs.items() if k not in ("layouts", "places", "sources"))
            line = f"{left} = " if left else ""
            line += op.name + (f" {', '.join(map(name, op.operands))}" if op.operands else "")
            lines.append(indent + line + (f" {{{attrs}}}" if attrs else ""))
            for region in op.regions:
                shown = ", ".join(f"{name(a)}: {typed(a)}" for a in region.arguments)
                lines.append(f"{indent}  ({shown})")
                block(region, indent + "    ")

    parameters = ", ".join(
        f"{name(v)}: {p.name} {p.elem}{'*' + p.pointee if p.pointee else ''}"
        for v, p in zip(program.body.arguments, program.parameters, strict=True)
    )
    lines.append(
        f"{program.name}({parameters}) for {program.machine.name}, {program.warps} warps of {program.lanes} lanes"
    )
    about = (
        (program.blocks > 1, f"clusters of {program.blocks} blocks"),
        (program.registers, f"{program.registers} registers a thread at entry"),
        (program.at_a_time > 1, f"registers for {program.at_a_time} blocks at a time"),
        (program.most_blocks, f"at most {program.most_blocks} blocks at a time"),
        (program.scratch, f"{program.scratch} bytes of global memory for each program"),
        (program.programs_each > 1, f"up to {program.programs_each} programs by each block"),
    )
    lines += [f"  {what}" for holds, what in about if holds]
    for i, a in enumerate(program.shared):
        lines.append(f"  shared {i}: {a.bytes} bytes at {a.offset} {a.what}".rstrip())
    block(program.body, "  ")
    return "\n".join(lines) + "\n"


def verify(program: LaneProgram) -> None:
    """CompilerCrash where the program breaks a rule: a mistake of the lowering, not of the kernel."""
    defined: set[Value] = set(program.body.arguments)

    def fail(op: LaneOp, message: str) -> None:
        raise CompilerCrash(f"lane program: {op.name}: {message}", "lowering")

    def check(b: Block) -> None:
        for op in b.ops:
            of_elements = is_elementwise(op.name)
            if not of_elements and op.name not in OPERATIONS:
                fail(op, "there is no such operation")
            if not defined.issuperset(op.operands):
                fail(op, f"operand {next(v for v in op.operands if v not in defined)} is used before it is made")
            if of_elements:
                counts = {v.count for v in op.operands} - {1}
                if len(counts) > 1:
                    fail(op, f"operands have {sorted(counts)} registers")
            if op.name == "rename" and not all(0 <= k < op.operands[0].count for k in op.attrs["table"]):
                fail(op, f"a register outside of 0 .. {op.operands[0].count - 1}")
            if op.name == "store" and op.operands[1].count != op.operands[0].count * op.attrs["vector"]:
                fail(op, f"{op.operands[1].count} values for {op.operands[0].count} addresses of {op.attrs['vector']}")
            for region in op.regions:
                defined.update(region.arguments)
                check(region)
            defined.update(op.results)

    check(program.body)
