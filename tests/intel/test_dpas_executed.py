"""DPAS run by an OpenCL device: modules that import it (`imported_products`) are linked with plain code, `dpas.cl`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import weft
from weft.backends.gpu import emit_llvm, emitted_of
from weft.backends.intel import SPIRV, Module, checked, opencl, spirv
from weft.base import LaunchError
from weft.ir.lane import Block, Builder, LaneProgram, Parameter, Value, verify
from weft.machines import machine_of
from weft.targets.instruction import Instruction
from weft.targets.intel import INSTRUCTIONS
from weft.targets.meaning import from_matrix, shape_of

from .test_opencl import needs_device, run_elsewhere

PLAIN = (Path(__file__).parent / "dpas.cl").read_text()
SIZES = {"f16": 2, "bf16": 2, "f32": 4, "i8": 1, "i32": 4}
DTYPES = {"f16": "f2", "bf16": "u2", "f32": "f4", "i8": "i1", "i32": "i4"}
PRODUCTS = [name for name, entry in INSTRUCTIONS.items() if entry.shape and "imported" in entry.params]


def program_of(entry: Instruction) -> LaneProgram:
    """A kernel that loads the registers of one instruction, lane by lane, and stores those of its result."""
    operands = (*entry.operands, *entry.results)
    pointers = [Value("i64", 1) for _ in operands]
    build = Builder(Block(tuple(pointers)))

    bits = 3 if entry.shape[1] == 8 else 4

    def place(pointer: Value, size: int) -> Value:
        offset = build.linear((0,), lane=tuple(size << i for i in range(bits)))
        return build.op("arith.addi", [pointer, build.op("arith.extui", [offset], "i64")], "i64")

    sizes = [SIZES[o.elem] * o.count for o in operands]
    values = [
        build.load("global", place(p, size), o.elem, vector=o.count)
        for p, o, size in zip(pointers, entry.operands, sizes, strict=False)
    ]
    (result,) = entry.results
    made = build.instruction(entry.name, values, [(result.elem, result.count)]).result
    build.store("global", place(pointers[-1], sizes[-1]), made, vector=result.count)
    parameters = tuple(Parameter(o.name, "ptr", o.elem) for o in operands)
    machine = machine_of("xpu:dg2" if entry.shape[1] == 8 else "xpu:pvc")
    program = LaneProgram("product", machine, parameters, build.block, warps=1)
    verify(program)
    return program


def registers_of(entry: Instruction) -> list[Any]:
    """Matrices of every value that a type has, in registers [warp, lane, register]."""
    rng = np.random.default_rng(5)
    registers = []
    for operand in entry.operands:
        assert operand.layout is not None
        shape = (1, *shape_of(operand.layout))
        if operand.elem in ("i8", "i32"):
            bound = 1 << (7 if operand.elem == "i8" else 20)
            matrix = rng.integers(-bound, bound, shape).astype(DTYPES[operand.elem])
        else:
            matrix = rng.standard_normal(shape).astype(weft.ops.dtypes.DTYPES[operand.elem])
        registers.append(from_matrix(matrix, operand.layout))
    return registers


@needs_device
@pytest.mark.parametrize("name", PRODUCTS)
@pytest.mark.thinned(3)
def test_one_instruction_is_what_numpy_says(name: str) -> None:
    entry = INSTRUCTIONS[name]
    program = program_of(entry)
    dialect = SPIRV(program.machine, imports_products=True)
    llir = emit_llvm(program, dialect)
    code = spirv(llir)
    assert checked(code, dialect.imported).extensions == ()
    assert dialect.imported == {entry.params["imported"]} <= set(Module.of(code).imports)
    registers = registers_of(entry)
    (wanted,) = entry.run(*registers)
    given = [np.ascontiguousarray(x[0]) for x in registers]
    out = np.zeros_like(np.ascontiguousarray(wanted[0]))
    opencl.Built(code, emitted_of(program, dialect, llir, "").metadata, PLAIN).run((1, 1, 1), [*given, out])
    if entry.params["accumulator"] == "i32":
        assert np.array_equal(out, wanted[0])
    else:  # sums of doubles, rounded once, in another order
        assert np.abs(out - wanted[0]).max() <= np.spacing(np.abs(wanted[0]).max())


WHOLE = ("matmul_bf16", "matmul_f16", "matmul_f32_tf32", "matmul_int8", "block_pointer_matmul_f16")


@needs_device
@pytest.mark.parametrize("name", [pytest.param(n, marks=() if n == WHOLE[0] else pytest.mark.slow) for n in WHOLE])
def test_whole_products_agree_with_numpy(name: str) -> None:
    """Compiled for a GPU, with DPAS in it; run by what is here."""
    kernel = run_elsewhere(name, "xpu:pvc", {"imported_products": True}, PLAIN)
    assert kernel.metadata.imports and "isa=dpas" in kernel.asm["lane"]


@needs_device
def test_what_nobody_defines_is_not_built() -> None:
    program = program_of(INSTRUCTIONS["dpas.8x16x16.f32.f16.f16"])
    dialect = SPIRV(program.machine, imports_products=True)
    llir = emit_llvm(program, dialect)
    with pytest.raises(LaunchError, match="does not build `product`"):
        opencl.Built(spirv(llir), emitted_of(program, dialect, llir, "").metadata)
