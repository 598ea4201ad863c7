"""Quotients and remainders of integers: what they are, and what they cost.

The LLVM IR of a kernel runs on the processor of this machine, lane by lane, with LLVM's division in place of PTX's.
"""

from __future__ import annotations

import ctypes
import re

import llvmlite.binding as llvm
import numpy as np
import pytest

from sim.kit import Kit
from vecmath.jit import optimise
from weft.backends.gpu import emit_llvm
from weft.backends.nvidia import PTX, emit

from .assembling import kinds
from .test_elementwise import program

LANES = 32
TYPES = {"i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64}


def on_the_host(text: str) -> str:
    """A kernel's IR as a function of three addresses and a lane."""
    text = text.replace("ptx_kernel ", "").replace(" addrspace(1)", "").replace(' convergent "nvvm.reqntid"="32"', "")
    text = re.sub(r"call range\(i32 0, 32\) i32 @llvm\.nvvm\.read\.ptx\.sreg\.tid\.x\(\)", "add i32 0, %lane", text)
    text = re.sub(
        r'call i64 asm "div\.(.)64 \$0, \$1, \$2;", "=l,l,l"\(i64 (\S+), i64 (\S+)\) #\d', r"\1div i64 \2, \3", text
    )
    text = re.sub(r"(define void @kernel\([^)]*)\)", r"\1, i32 %lane)", text)
    assert "asm" not in text and "sreg.tid.x() #" not in text
    return re.sub(r", !dbg !\d+| !dbg !\d+|, !prof !\{[^}]*\}|(?m:^!.*$)|(?m:^attributes.*$)", "", text)


def divided(name: str, elem: str, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """What each of 32 lanes computes of its part of a and b."""
    count = len(a) // LANES
    made = program(f"arith.{name}", [elem, elem], elem, "cuda:90", count)
    text = emit_llvm(made, PTX(made.machine), lines=False)
    parsed, machine = optimise(on_the_host(text), level=1)
    engine = llvm.create_mcjit_compiler(parsed, machine, use_lmm=True)
    engine.finalize_object()
    run = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 3, ctypes.c_int32)(engine.get_function_address("kernel"))
    out = np.zeros_like(a)
    for lane in range(LANES):
        run(a.ctypes.data, b.ctypes.data, out.ctypes.data, lane)
    return out


def wanted(name: str, a: int, b: int, bits: int) -> int:
    """In integers without bounds."""
    if name.endswith("ui"):
        a, b = a % 2**bits, b % 2**bits
    quotient = abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1) if b else 0
    found = (a - quotient * b if "rem" in name else quotient) % 2**bits
    return found - 2**bits if found >> (bits - 1) else found


@pytest.mark.parametrize("elem", TYPES)
@pytest.mark.parametrize("name", ["divsi", "remsi", "divui", "remui"])
def test_results(name: str, elem: str) -> None:
    bits = np.dtype(TYPES[elem]).itemsize * 8
    ends = [0, 1, -1, 2, -2, 3, 7, 2 ** (bits - 1) - 1, -(2 ** (bits - 1)), 100, -100]
    ends += [2**32, 2**32 - 1, 2**31, -(2**31), 2**33 + 5] if bits == 64 else []
    pairs = [(x, y) for x in ends for y in ends]
    random = np.random.default_rng(5)
    for _ in range(256):
        low, high = (int(random.integers(1, bits)) for _ in range(2))
        pairs.append((int(random.integers(-(2**low), 2**low)), int(random.integers(-(2**high), 2**high))))
    pairs = sorted(pairs) + pairs  # where neighbours are of one size, and where they are not
    pairs = pairs[: len(pairs) // (2 * LANES) * 2 * LANES]
    for first in range(0, len(pairs), 16 * LANES):
        part = (pairs[first : first + 16 * LANES] * 16)[: 16 * LANES]
        a, b = (np.array([p[i] for p in part], TYPES[elem]) for i in range(2))
        found = divided(name, elem, a, b)
        for x, y, z in zip(a, b, found, strict=True):
            assert z == wanted(name, int(x), int(y), bits), (int(x), int(y))


def test_one_branch_for_the_registers_of_a_tile() -> None:
    """Four numbers of 64 bits: whether they fit in 32 is asked once."""
    found = kinds(emit(program("arith.divsi", ["i64", "i64"], "i64", "cuda:90", 4)).code)
    assert found.count("div.u32") == found.count("div.s64") == 4
    assert sum(k.startswith("bra") for k in found) <= 3


def test_little_beside_the_division() -> None:
    """The divisor and a factor are chosen, once for all registers that share it; each has a product."""
    kit = Kit("a:i32*", "b:i32*", "out:i32*", target="cuda:90")
    place = kit.thread((0,), 4)
    x = kit.load("global", kit.place("a", place), "i32", 4)
    y = kit.load("global", kit.place("b", kit.thread((0,))), "i32")
    kit.store("global", kit.place("out", place), kit.op("arith.divsi", [x, y], "i32"), 4)
    found = kinds(emit(kit.program()).code)
    assert found.count("div.s32") == 4
    assert sum(k.startswith("selp") for k in found) == 2
