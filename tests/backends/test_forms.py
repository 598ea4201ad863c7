"""Index arithmetic that follows a form across lanes gives the numbers that vectors would give, wrapping included."""

from __future__ import annotations

import ctypes
import random
from typing import Any

import llvmlite.binding as llvm
import numpy as np
import pytest

from weft.backends.cpu import forms
from weft.backends.cpu.forms import Affine, Form, Uniform, Varying, vector_of
from weft.backends.llvm import machine
from weft.backends.llvm.emit import Function, Module
from weft.backends.llvm.values import I8, I16, I32, I64, PTR, VOID, Type, Value, const

Array = np.ndarray[Any, np.dtype[Any]]
LANES = 8
NUMPY = {8: np.int8, 16: np.int16, 32: np.int32, 64: np.int64}
TYPES = {8: I8, 16: I16, 32: I32, 64: I64}
SCALARS = 6


class Both:
    """A form and the numbers it stands for, given the scalars of a run."""

    def __init__(self, form: Form, numbers: Array, bits: int) -> None:
        self.form, self.numbers, self.bits = form, numbers.astype(NUMPY[bits]), bits


def vector(f: Function, both: Both) -> Value:
    """As an LLVM vector, whatever the form."""
    return vector_of(f, both.form, LANES)


class Builder:
    """Random expressions out of scalars known at run time, numbers and ranges."""

    def __init__(self, f: Function, rng: random.Random, scalars: dict[int, list[tuple[Value, int]]]) -> None:
        self.f, self.rng, self.scalars = f, rng, scalars

    def leaf(self, bits: int) -> Both:
        kind = self.rng.randrange(4)
        if kind == 0:
            register, number = self.rng.choice(self.scalars[bits])
            return Both(Uniform(register), np.full(LANES, number), bits)
        if kind == 1:
            number = self.rng.choice((0, 1, -1, 2, 3, 100))
            return Both(Uniform(const(TYPES[bits], number)), np.full(LANES, number), bits)
        lanes = self.rng.choice((tuple(range(LANES)), (7, 6, 5, 4, 3, 2, 1, 0), (0, 0, 1, 1, 2, 2, 3, 3)))
        if kind == 2:
            return Both(Affine(const(TYPES[bits], 0), ((None, lanes),)), np.array(lanes), bits)
        register, number = self.rng.choice(self.scalars[bits])
        return Both(Affine(register, ((None, lanes),)), np.array(lanes) + np.array(number, np.int64), bits)

    def tree(self, bits: int, depth: int) -> Both:
        if depth == 0:
            return self.leaf(bits)
        kind = self.rng.choice(("add", "sub", "mul", "mul", "cast"))
        if kind == "cast":
            narrow = [b for b in NUMPY if b < bits]
            wide = [b for b in NUMPY if b > bits]
            other = self.rng.choice(narrow + wide)
            op = "trunc" if other > bits else self.rng.choice(("sext", "zext"))
            return self.cast(op, self.tree(other, depth - 1), bits)
        a, b = self.tree(bits, depth - 1), self.tree(bits, self.rng.randrange(depth))
        if self.rng.random() < 0.5:
            a, b = b, a
        return self.combine(kind, a, b)

    def combine(self, kind: str, a: Both, b: Both) -> Both:
        f = self.f
        if kind == "mul":
            form, numbers = forms.mul(f, a.form, b.form), a.numbers * b.numbers
        else:
            sign = 1 if kind == "add" else -1
            form, numbers = forms.add(f, a.form, b.form, sign), a.numbers + sign * b.numbers
        if form is None:  # needs a vector
            form = Varying(getattr(f, kind)(vector(f, a), vector(f, b)))
        return Both(form, numbers, a.bits)

    def cast(self, op: str, a: Both, bits: int) -> Both:
        form = forms.cast_int(self.f, op, a.form, TYPES[bits])
        if form is None:
            form = Varying(self.f.cast(op, vector(self.f, a), TYPES[bits].with_lanes(LANES)))
        unsigned = a.numbers.view(f"u{a.bits // 8}")
        return Both(form, unsigned if op == "zext" else a.numbers, bits)


def run(module: Module, *arrays: Array) -> None:
    """Compile the module and call `run` on the arrays' addresses."""
    parsed = machine.parse(module.text())
    target = llvm.Target.from_default_triple().create_target_machine(opt=1)
    engine = llvm.create_mcjit_compiler(parsed, target, use_lmm=True)
    engine.finalize_object()
    address = engine.get_function_address("run")
    ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * len(arrays))(address)(*(a.ctypes.data for a in arrays))


@pytest.mark.parametrize("seed", range(24))
@pytest.mark.thinned(3)
def test_forms_are_the_numbers_of_their_lanes(seed: int) -> None:
    rng = random.Random(seed)
    extremes = [0, 1, -1, 2, 127, -128, 1 << 15, 1 << 31, (1 << 31) - 1, 1 << 40, -(1 << 63), (1 << 63) - 1]
    given = np.array([rng.choice((*extremes, rng.randrange(-1000, 1000))) for _ in range(SCALARS)])
    module = Module()
    f = module.function("run", VOID, [("given", PTR), ("out", PTR)])
    scalars: dict[int, list[tuple[Value, int]]] = {}
    loaded = [f.load(I64, f.gep(I64, f.args[0], const(I64, k)), 8) for k in range(SCALARS)]
    for bits, kind in NUMPY.items():
        held = given.astype(kind)
        registers = [x if bits == 64 else f.cast("trunc", x, TYPES[bits]) for x in loaded]
        scalars[bits] = [(r, int(n)) for r, n in zip(registers, held)]
    builder = Builder(f, rng, scalars)
    wanted = []
    with np.errstate(over="ignore"):
        for k in range(40):
            both = builder.tree(rng.choice(tuple(NUMPY)), rng.randrange(1, 6))
            wide = vector(f, both)
            if not both.bits == 64:
                wide = f.cast("sext", wide, I64.with_lanes(LANES))
            f.store(wide, f.gep(I64, f.args[1], const(I64, k * LANES)), 8)
            wanted.append(both.numbers.astype(np.int64))
    f.ret()
    out = np.zeros((len(wanted), LANES), np.int64)
    run(module, given, out)
    np.testing.assert_array_equal(out, np.stack(wanted))


def test_what_is_folded() -> None:
    """Numbers known while compiling cost nothing."""
    f = Module().function("run", VOID, [("n", I32)])
    n = f.args[0]

    def number(k: int, type: Type = I32) -> Value:
        return const(type, k)

    assert forms.fold_add(f, n, number(0)) is n and forms.fold_add(f, number(0), n) is n
    assert forms.int_const(forms.fold_add(f, number((1 << 31) - 1), number(1))) == -(1 << 31)
    assert forms.fold_mul(f, n, number(1)) is n and forms.int_const(forms.fold_mul(f, n, number(0))) == 0
    assert forms.int_const(forms.cast_scalar(f, "zext", number(-1, I8), I32)) == 255
    assert forms.int_const(forms.cast_scalar(f, "sext", number(-1, I8), I32)) == -1
    assert forms.int_const(forms.cast_scalar(f, "trunc", number(257), I8)) == 1
    ramp = Affine(number(0), ((None, (0, 1, 2, 3)),))
    twice = forms.mul(f, ramp, Uniform(number(2)))
    assert isinstance(twice, Affine) and twice.constant_lanes == (0, 2, 4, 6)
    nothing = forms.add(f, ramp, ramp, -1)
    assert isinstance(nothing, Uniform) and forms.int_const(nothing.value) == 0
    assert [forms.wrap(k, 8) for k in (127, 128, 255, 256, -129)] == [127, -128, -1, 0, 127]
