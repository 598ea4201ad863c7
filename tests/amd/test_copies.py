"""Copies from global memory to LDS: the instruction, masks, and waits that count single copies."""

from __future__ import annotations

import re

import pytest

from weft.backends.amd import AMDGPU, assembly, linked, object_code
from weft.backends.gpu import emit_llvm
from weft.ir.lane import Allocation, Block, Builder, LaneOp, LaneProgram, Parameter, Value, verify
from weft.machines import machine_of

from .container import problems
from .waits import check


def copies(target: str, size: int) -> LaneProgram:
    """A warp copies three pieces to LDS, the last for five lanes, and stores each as soon as it is there."""
    machine = machine_of(target)
    x, out = Value("i64", 1), Value("i64", 1)
    build = Builder(Block((x, out)))
    bits = machine.lanes.bit_length() - 1
    program = LaneProgram("copies", machine, (Parameter("x", "ptr", "f32"), Parameter("out", "ptr", "f32")),
                          build.block, warps=1)  # fmt: skip
    program.shared.append(Allocation(4096, 128, 0))
    base = build.add("shared", [], [("i32", 1)], {"allocation": 0}).result
    offset = build.linear((0,), lane=tuple(size << i for i in range(bits)))
    lane = build.linear((0,), lane=tuple(1 << i for i in range(bits)))
    mask = build.add("arith.cmpi", [lane, build.constant("i32", 5)], [("i1", 1)], {"predicate": 2}).result
    distance = build.op("arith.extui", [offset], "i64")

    def place(of: Value, piece: int) -> Value:
        total = build.op("arith.addi", [of, distance], "i64")
        return build.op("arith.addi", [total, build.constant("i64", 4096 * piece)], "i64")

    def buffer(piece: int) -> Value:
        within = build.op("arith.addi", [offset, build.constant("i32", 1024 * piece)], "i32")
        return build.op("arith.addi", [base, within], "i32")

    for piece in range(3):
        operands = (buffer(piece), place(x, piece), *([mask] if piece == 2 else []))
        build.block.ops.append(LaneOp("copy_async", operands, (), {"bytes": size}))
        build.block.ops.append(LaneOp("commit_async"))
    for piece in range(3):
        build.block.ops.append(LaneOp("wait_async", (), (), {"pending": 2 - piece}))
        build.block.ops.append(LaneOp("barrier", (), (), {"scope": "block", "inserted": True}))
        value = build.load("shared", buffer(piece), "f32", vector=size // 4)
        build.store("global", place(out, piece), value, vector=size // 4)
    build.block.ops.append(LaneOp("return"))
    verify(program)
    return program


@pytest.mark.parametrize(("processor", "size", "name"), [("gfx942", 4, "dword"), ("gfx950", 16, "dwordx4")])
def test_copies_are_waited_for_by_their_number(processor: str, size: int, name: str) -> None:
    program = copies(f"hip:{processor}", size)
    dialect = AMDGPU(program.machine)
    llir = emit_llvm(program, dialect)
    text = assembly(llir, dialect.target)
    wanted = re.compile(r"^\t(global_load_lds_\w+|ds_read_\w+|s_waitcnt vmcnt\(\d+\))", re.MULTILINE)
    steps = ["s_waitcnt vmcnt(2)", "ds_read", "s_waitcnt vmcnt(1)", "ds_read", "s_waitcnt vmcnt(0)", "ds_read"]
    found = [step if step[0] != "d" else "ds_read" for step in wanted.findall(text)]
    assert found == [f"global_load_lds_{name}"] * 3 + steps
    assert "zeros@rel32@lo" in text  # what lanes copy that the mask leaves out
    assert problems(linked(object_code(llir, dialect.target)), processor, [8, 8]) == []
    assert check(text) == []
