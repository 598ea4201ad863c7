"""The figures of docs/explanation/decisions: what the ways that were not taken would have cost.

python benchmarks/choices.py
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from pathlib import Path

import llvmlite.binding as llvm
from llvmlite import ir as llvmlite_ir
from xdsl.context import Context
from xdsl.dialects import arith, builtin, func
from xdsl.ir import Block
from xdsl.parser import Parser

from weft.backends.llvm.emit import Module
from weft.backends.llvm.values import FLOAT
from weft.ir import Builder, f32, parse_module, print_module

COUNT = 20_000
TTIR = Path(__file__).resolve().parent.parent / "tests" / "data" / "ttir"


def seconds(work: Callable[[], object], repeats: int = 5) -> float:
    """The shortest time of some runs, the collector of garbage off as in timeit."""
    gc.disable()
    best = float("inf")
    for _ in range(repeats):
        begin = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - begin)
    gc.enable()
    return best


def as_text() -> str:
    """A function of many additions, written as Weft does."""
    module = Module()
    f = module.function("sums", FLOAT, [("x", FLOAT)])
    value = f.args[0]
    for _ in range(COUNT):
        value = f.fadd(value, f.args[0])
    f.ret(value)
    return module.text()


def as_llvmlite() -> str:
    """The same with llvmlite's builder."""
    module = llvmlite_ir.Module()
    kind = llvmlite_ir.FloatType()
    function = llvmlite_ir.Function(module, llvmlite_ir.FunctionType(kind, [kind]), "sums")
    builder = llvmlite_ir.IRBuilder(function.append_basic_block("entry"))
    value = function.args[0]
    for _ in range(COUNT):
        value = builder.fadd(value, function.args[0])
    builder.ret(value)
    return str(module)


def made_by_builder() -> Block:
    """Many additions of tile IR, made as Weft does."""
    block = Block(arg_types=(f32,))
    b = Builder.at_end(block)
    value = block.args[0]
    for _ in range(COUNT):
        value = b.create(arith.AddfOp, (value, block.args[0]), (f32,)).results[0]
    return block


def made_by_constructors() -> None:
    """The same through the constructors that xDSL gives its operations."""
    block = Block(arg_types=(f32,))
    value = block.args[0]
    for _ in range(COUNT):
        op = arith.AddfOp(value, block.args[0])
        block.add_op(op)
        value = op.results[0]


def main() -> None:
    """Measure and print."""
    each = 1e6 / COUNT
    print("microseconds for one instruction of LLVM IR, from nothing to text")
    print(f"    own text       {seconds(as_text) * each:6.2f}")
    print(f"    llvmlite.ir    {seconds(as_llvmlite) * each:6.2f}")
    text = as_text()
    print(f"    parsed by LLVM {seconds(lambda: llvm.parse_assembly(text)) * each:6.2f}")
    print("microseconds for one operation of tile IR")
    print(f"    Builder.create {seconds(made_by_builder) * each:6.2f}")
    print(f"    constructors   {seconds(made_by_constructors) * each:6.2f}")
    block = made_by_builder()
    print(f"    xDSL's verify  {seconds(lambda: [op.verify() for op in block.ops]) * each:6.2f}")
    context = Context()
    for dialect in (builtin.Builtin, arith.Arith, func.Func):
        context.load_dialect(dialect)
    lines = "\n".join(f"  %{i + 1} = arith.addf %{i}, %{i} : f32" for i in range(2000))
    body = f"(%0: f32) {{\n{lines}\n"
    ours = f"module {{\n tt.func public @f{body}  tt.return\n }}\n}}"
    theirs = f"builtin.module {{\n func.func @f{body}  func.return\n }}\n}}"
    print("microseconds for reading one operation (2000 additions)")
    print(f"    weft.ir.parse_module {seconds(lambda: parse_module(ours)) * 1e6 / 2000:6.2f}")
    print(f"    xdsl.parser.Parser   {seconds(lambda: Parser(context, theirs).parse_module()) * 1e6 / 2000:6.2f}")
    files = [p.read_text(encoding="utf-8") for p in sorted(TTIR.glob("*.ttir"))]
    if files:
        modules = [parse_module(f) for f in files]
        operations = sum(1 for m in modules for _ in m.walk())
        print(f"microseconds for one operation, {len(files)} kernels written by Triton, {operations} operations")
        print(f"    read    {seconds(lambda: [parse_module(f) for f in files], 2) * 1e6 / operations:6.2f}")
        print(f"    written {seconds(lambda: [print_module(m) for m in modules], 2) * 1e6 / operations:6.2f}")


if __name__ == "__main__":
    main()
