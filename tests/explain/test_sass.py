"""Machine code is read without a tool: what its instructions are, what they are of, and how often they are executed."""

from __future__ import annotations

import inspect
import linecache
import re
import struct
from collections import Counter
from functools import cache

import pytest

import weft
import weft.language as tl
from weft import compiler, gluon, like
from weft.backends.nvidia.ptxas import disassemble, find_tool
from weft.explain import Explanation
from weft.explain.costs import costs_of
from weft.explain.nvidia.cubin import Code, read
from weft.explain.nvidia.executed import executed
from weft.explain.nvidia.flow import of_ptx
from weft.explain.nvidia.sass import decoded
from weft.explain.nvidia.schedule import scheduled
from weft.gluon import language as gl
from weft.gluon.language.nvidia.hopper import mbarrier, tma
from weft.gluon.nvidia.hopper import TensorDescriptor
from weft.ir.lane import LaneProgram
from weft.machines import machine_of

needs_ptxas = pytest.mark.skipif(find_tool() is None, reason="needs ptxas")


@weft.jit
def sums(x, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for row in range(n):
        total += tl.exp(tl.load(x + row * 4096 + at))
    tl.store(out + at, total)


@weft.jit
def kept(x, out, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    row = tl.load(x + at)
    tl.store(out + at, row - tl.max(row))


ALIGNED = {(i,): [["tt.divisibility", 16]] for i in range(2)}
SUMS = compiler.ASTSource(sums, {"x": "*fp32", "out": "*fp32", "n": "i32"}, {"BLOCK": 128}, ALIGNED)
KEPT = compiler.ASTSource(kept, {"x": "*fp32", "out": "*fp32"}, {"BLOCK": 512}, ALIGNED)


@cache
def image() -> bytes:
    """The machine code of `sums`."""
    return bytes(weft.compile(SUMS, target="cuda:90").asm["cubin"])


@cache
def program_of(source: compiler.ASTSource) -> LaneProgram:
    return compiler.lane_program(source, "sim:cuda:90", {})


def code() -> Code:
    found = read(image())
    assert found is not None
    return found


def test_control_words_and_targets() -> None:
    words = (
        (0x0000000C004C8947, 0x000FEC0003800000),  # 0950: @!P0 BRA 0x1690
        (0xFFFFFFFC00FC7947, 0x000FC0000383FFFF),  # BRA to itself
        (0x000080400000791A, 0x000FC80000000000),  # DEPBAR.LE SB0, 0x1
        (0x41E0000484187DF0, 0x000FE20008000818),  # HGMMA.64x128x16.F32 ..., gsb0
        (0x00008000000079C5, 0x000FE40000010100),  # WARPGROUP.DEPBAR.LE gsb0, 0x1
    )
    branch, last, pending, product, wait = decoded(b"".join(struct.pack("<QQ", *pair) for pair in words))
    assert (branch.name, branch.target, branch.predicate, branch.stall) == ("BRA", 0x10 + 0xD30, 0, 6)
    assert last.target == last.place and not last.never
    assert (pending.name, pending.pending) == ("DEPBAR", 1)
    assert (product.columns, product.ends_group, product.pipe) == (128, True, "tensor")
    assert wait.waits_for_products and wait.pending == 1


def test_what_is_no_cubin_has_no_code() -> None:
    assert read(b"") is None and read(b"\x7fELF\x02\x01" + bytes(64)) is None


def test_loops_of_ptx() -> None:
    lines = "a:\n add;\nb:\n add;\n @%p1 bra b;\n @%p2 bra a;\n ret;".split("\n")
    flow = of_ptx(lines)
    (outer,) = flow.loops
    (inner,) = outer.loops
    assert flow.blocks[outer.head].start == 0 and flow.blocks[inner.head].start == 2
    assert flow.within[-1] is None and all(flow.always(i) for i in range(len(flow.blocks)))


@needs_ptxas
@pytest.mark.skipif(find_tool("nvdisasm") is None, reason="needs nvdisasm")
def test_names_and_targets_are_those_of_nvdisasm() -> None:
    text = disassemble(image())
    ours = {op.place: op for op in decoded(code().text)}
    seen = 0
    for place, name in re.findall(r"^\s+/\*([0-9a-f]{4,})\*/\s+(?:@!?U?P\w+ )?\s*([A-Z0-9_]+)", text, re.MULTILINE):
        if int(place, 16) in ours:
            assert ours[int(place, 16)].name == name
            seen += 1
    assert seen == len(ours) > 50


@needs_ptxas
def test_each_instruction_is_of_a_line() -> None:
    loads = [op for op in decoded(code().text) if op.name == "LDG"]
    assert loads and all("ld.global" in code().ptx[code().line_at[op.place] - 1] for op in loads)
    line = next(i for i, text in enumerate(weft_source(), 1) if "tl.exp(tl.load" in text)
    assert {code().source_at[op.place][1] for op in loads} == {line}


def weft_source() -> list[str]:
    with open(__file__, encoding="utf-8") as file:
        return file.read().splitlines()


@needs_ptxas
@pytest.mark.parametrize("turns", [1, 3, 64, 67])
def test_copies_that_ptxas_makes_of_a_loop_are_executed_as_often_as_it_turns(turns: int) -> None:
    found = executed(code(), program_of(SUMS).body, lambda _: float(turns), {}, 1.0)
    assert found is not None
    times: Counter[str] = Counter()
    for op, number in found.each():
        times[op.name] += round(number * 1000)
    assert sum(op.name == "LDG" for op in found.instructions) > 1, "ptxas does several iterations at a time"
    assert times["LDG"] == times["MUFU"] == turns * 1000 and times["STG"] == 1000 == times["EXIT"]


@needs_ptxas
def test_a_schedule_waits_for_memory_and_grows_with_its_turns() -> None:
    costs = costs_of(machine_of("cuda:90"))
    assert costs is not None

    def time(turns: int, latency: float, warps: int = 4, passes: float = 0.0) -> float:
        found = executed(code(), program_of(SUMS).body, lambda _: float(turns), {}, 1.0)
        assert found is not None
        return scheduled(found, costs, dict.fromkeys(code().source_at.values(), latency), warps, 0.0, passes).time

    assert time(64, 500.0) > 500 and time(64, 600.0) >= time(64, 500.0) + 100
    assert 1.8 < (time(128, 500.0) - time(64, 500.0)) / (time(64, 500.0) - time(32, 500.0)) < 2.2
    assert time(64, 0.0, warps=32) > 2 * time(64, 0.0), "the other warps of a block are issued in between"
    assert time(64, 0.0, passes=100.0) >= 64 * 4 * 100, "all warps go through one cache"


@needs_ptxas
def test_code_whose_loops_are_others_is_not_counted() -> None:
    assert executed(code(), program_of(KEPT).body, lambda _: 1.0, {}, 1.0) is None


@needs_ptxas
def test_spills_are_told_by_line() -> None:
    row = like((64, 16384), "fp32")
    e: Explanation = kept.explain(row, row, BLOCK=16384, maxnreg=64, grid=(64,), target="cuda:90")
    assert e.occupancy is not None and e.occupancy.spills
    assert sum(held.spills for held in e.registers) == e.occupancy.spills
    assert "spilled" in str(e).partition("Registers that a thread holds")[2].splitlines()[1]
    assert Explanation.from_json(e.to_json()).registers == e.registers


@needs_ptxas
def test_a_loop_that_waits_within_a_loop_goes_round_once() -> None:
    """The wait for an mbarrier loops in the machine code, within a loop of the kernel, at whose lines it stands."""

    @gluon.jit
    def loads(x, out, n):
        layout: gl.constexpr = gl.BlockedLayout([1, 8], [4, 8], [4, 1], [1, 0])
        memory = gl.allocate_shared_memory(x.dtype, x.block_type.shape, x.layout)
        bar = mbarrier.allocate_mbarrier()
        mbarrier.init(bar, count=1)
        total = gl.zeros([64, 64], gl.float32, layout)
        for i in range(n):
            mbarrier.expect(bar, x.block_type.nbytes)
            tma.async_copy_global_to_shared(x, [0, i * 64], bar, memory)
            mbarrier.wait(bar, i & 1)
            total += memory.load(layout)
        gl.store(out + gl.program_id(0), gl.max(gl.max(total, 0), 0))

    shared = gl.NVMMASharedLayout.get_default_for([64, 64], gl.float16)
    x = TensorDescriptor.from_tensor(like((64, 4096), "fp16"), [64, 64], shared)
    e = loads.explain(x, like((132,), "fp32"), 64, grid=(132,), target="cuda:90")
    assert e.time.microseconds > 0


@weft.jit
def specialized(a, b, out, n):
    total = tl.zeros((128, 128), tl.float32)
    for k in tl.range(0, n, 64, warp_specialize=True):
        total = tl.dot(a.load([0, k]), b.load([k, 0]), total)
    out.store([0, 0], total.to(tl.float16))


@needs_ptxas
def test_warps_with_parts_of_their_own_are_followed_each_by_itself() -> None:
    """Two groups of warps multiply, one warp has operands copied: it is one of the groups whose chain is followed."""
    a, b, out = (
        weft.TensorDescriptor.from_tensor(like(shape, "fp16"), block)
        for shape, block in (((128, 4096), [128, 64]), ((4096, 128), [64, 128]), ((128, 128), [128, 128]))
    )
    e = specialized.explain(a, b, out, 4096, num_warps=8, grid=(132,), target="cuda:90")
    assert e.time is not None and e.time.resident == 2
    assert e.time.resources["matrix units"] / 2 < e.time.resources["latency"] < 2 * e.time.resources["matrix units"]


@needs_ptxas
def test_lines_of_a_source_without_a_folder_have_their_share() -> None:
    """As of a doctest, `python -c` or a prompt."""
    text = inspect.getsource(kept.fn)
    linecache.cache["<typed>"] = (len(text), None, text.splitlines(keepends=True), "<typed>")
    space = {"weft": weft, "tl": tl}
    exec(compile(text, "<typed>", "exec", dont_inherit=True), space)
    x = like((4, 512), "fp32")
    assert space["kept"].explain(x, x, 512, grid=(4,), target="cuda:90").time.lines


@weft.jit
def two_ways(x, out, EVERY: tl.constexpr):
    at = tl.program_id(0) * 128 + tl.arange(0, 128)
    value = tl.load(x + at)
    if tl.program_id(0) % EVERY == 0:
        for _ in tl.static_range(20):
            value = tl.sqrt(value) + 1.5
    else:
        value = tl.sqrt(value * 3) * 2 + 1
    tl.store(out + at, value)


@needs_ptxas
@pytest.mark.parametrize("every", [1, 4, 8])
def test_each_side_of_a_branch_is_executed_by_the_warps_that_take_it(every: int) -> None:
    """Neither side has an access of memory, by which one could tell."""
    first = inspect.getsourcelines(two_ways.fn)[1]
    explained = two_ways.explain(like((64, 128), "fp32"), like((64, 128), "fp32"), every, grid=(64,), target="cuda:90")
    told = [line for line in explained.lines if line.span is not None]
    of_line = {line.span.line - first: line.counts["machine_instructions"] for line in told}
    then, other = of_line.get(6, 0), of_line.get(8, 0)
    each = then * every // 256
    assert then == 256 // every * each and each >= 40, "twenty roots and sums by one program of so many"
    assert (other > 0) == (every > 1)
    assert every == 1 or 256 * (every - 1) // every * 3 <= other <= 256 * (every - 1) // every * 30
