"""Random Gluon kernels on random layouts, against NumPy: integers, so that every bit counts."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import weft

HEAD = """from weft import gluon
import weft.gluon.language as gl


@gluon.jit
def plus(a, b):
    return a + b


@gluon.jit
def kernel(x, y):
"""


class Program:
    """A kernel that is being written, with what it computes on an array."""

    def __init__(self, seed: int) -> None:
        self.draw = random.Random(seed)
        self.lines: list[str] = []
        self.steps: list[Callable[[Any], Any]] = []
        self.shape = [1 << self.draw.randrange(3, 7), 1 << self.draw.randrange(3, 7)]
        self.first = list(self.shape)
        self.buffers = 0

    def parts(self, log: int) -> list[int]:
        found = [1, 1]
        for _ in range(log):
            found[self.draw.randrange(2)] *= 2
        return found

    def layout(self, pairs: bool = False) -> str:
        """A layout of two dimensions; with `pairs`, one whose threads have neighbours of the last dimension."""
        kind = self.draw.randrange(6)
        if kind == 0 and not pairs and min(self.shape) >= 16:
            return f"gl.NVMMADistributedLayout([2, 0], {self.parts(2)}, [16, 8])"
        if kind == 1 and not pairs:
            dim = self.draw.randrange(3)
            warps = [*self.parts(2), 1]
            return f"gl.SliceLayout({dim}, gl.BlockedLayout([1, 1, 1], [2, 4, 4], {warps}, [2, 1, 0]))"
        sizes = self.parts(self.draw.randrange(4))
        order = [1, 0] if pairs or self.draw.random() < 0.6 else [0, 1]
        sizes[1] *= 2 if pairs else 1
        return f"gl.BlockedLayout({sizes}, {self.parts(5)}, {self.parts(2)}, {order})"

    def say(self, line: str, step: Callable[[Any], Any] = lambda v: v) -> None:
        self.lines.append(f"    {line}")
        self.steps.append(step)

    def convert(self, pairs: bool = False) -> None:
        self.say(f"v = gl.convert_layout(v, {self.layout(pairs)})")

    def transpose(self) -> None:
        self.shape.reverse()
        self.say("v = gl.permute(v, [1, 0])", lambda v: v.T)

    def cut(self) -> None:
        log = (self.shape[0] * self.shape[1]).bit_length() - 1
        rows = self.draw.randrange(2, log - 1)
        shape = [1 << rows, 1 << (log - rows)]
        self.shape = list(shape)
        self.say(f"v = gl.reshape(v, {shape})", lambda v: v.reshape(shape))

    def combine(self) -> None:
        axis = self.draw.randrange(2)
        op, fn = self.draw.choice([("sum", np.sum), ("max", np.max), ("min", np.min)])
        self.say(
            f"v = v * 3 + gl.{op}(v, {axis}, keep_dims=True)",
            lambda v: (
                v * np.int32(3) + fn(v, axis=axis, keepdims=True, dtype=np.int32)
                if op == "sum"
                else v * np.int32(3) + fn(v, axis=axis, keepdims=True)
            ),
        )

    def run_along(self) -> None:
        axis, back = self.draw.randrange(2), self.draw.random() < 0.5
        flip = (lambda v: np.flip(v, axis)) if back else (lambda v: v)
        self.say(
            f"v = gl.associative_scan(v, {axis}, plus, reverse={back})",
            lambda v: flip(np.cumsum(flip(v), axis, dtype=np.int32)),
        )

    def swap_neighbours(self) -> None:
        self.convert(pairs=True)
        rows, columns = self.shape
        self.say(f"a, b = gl.split(gl.reshape(v, [{rows}, {columns // 2}, 2]))")
        self.say(
            f"v = gl.reshape(gl.join(b, a - b), [{rows}, {columns}])",
            lambda v: np.stack([v[:, 1::2], v[:, ::2] - v[:, 1::2]], -1).reshape(v.shape),
        )

    def through_memory(self) -> None:
        vec, most, order = self.draw.choice([1, 2, 4]), self.draw.choice([1, 2, 4]), self.draw.choice([[1, 0], [0, 1]])
        shared = f"gl.SwizzledSharedLayout({vec}, 1, {most}, {order})"
        name = f"m{self.buffers}"
        self.buffers += 1
        self.say(f"{name} = gl.allocate_shared_memory(gl.int32, {list(self.shape)}, {shared}, v)")
        if self.draw.random() < 0.5:
            self.shape.reverse()
            self.say(f"v = {name}.permute([1, 0]).load({self.layout()})", lambda v: v.T)
        else:
            self.say(f"v = {name}.load({self.layout()})")

    def pick(self) -> None:
        axis = self.draw.randrange(2)
        size = self.shape[axis]
        self.say(
            f"v = gl.gather(v, v & {size - 1}, {axis}) ^ v",
            lambda v: np.take_along_axis(v, (v & (size - 1)).astype(np.int64), axis) ^ v,
        )

    def calculate(self) -> None:
        self.say("v = gl.where(v > 0, v - 7, v * 5) + (v >> 3)", lambda v: np.where(v > 0, v - 7, v * 5) + (v >> 3))

    def write(self) -> str:
        """The whole kernel, of up to ten steps."""
        body = [f"    first: gl.constexpr = {self.layout()}"]
        body += self.offsets("first", self.first) + ["    v = gl.load(x + at)"]
        steps = (self.convert, self.transpose, self.cut, self.combine, self.run_along, self.swap_neighbours)
        steps += (self.through_memory, self.pick, self.calculate)  # type: ignore[assignment]
        for _ in range(self.draw.randrange(4, 11)):
            self.draw.choice(steps)()
        last = [f"    last: gl.constexpr = {self.layout()}", *self.offsets("last", self.shape)]
        return HEAD + "\n".join([*body, *self.lines, *last, "    gl.store(y + at, gl.convert_layout(v, last))", ""])

    @staticmethod
    def offsets(layout: str, shape: list[int]) -> list[str]:
        return [
            f"    i = gl.arange(0, {shape[0]}, gl.SliceLayout(1, {layout}))",
            f"    j = gl.arange(0, {shape[1]}, gl.SliceLayout(0, {layout}))",
            f"    at = i[:, None] * {shape[1]} + j[None, :]",
        ]


@pytest.mark.parametrize("seed", range(60))
@pytest.mark.thinned(2)
def test_random_kernel(seed: int, tmp_path: Path) -> None:
    program = Program(seed)
    file = tmp_path / f"random_{seed}.py"
    file.write_text(program.write(), encoding="utf-8")
    module = sys.modules[file.stem] = ModuleType(file.stem)
    exec(compile(file.read_text(encoding="utf-8"), str(file), "exec", dont_inherit=True), module.__dict__)
    x = np.random.default_rng(seed).integers(-1000, 1000, program.first).astype(np.int32)
    y = np.zeros(program.shape, np.int32)
    with weft.target("sim:cuda:80"):
        module.kernel[(1,)](x, y)
    expected = x
    with np.errstate(over="ignore"):
        for step in program.steps:
            expected = step(expected)
    np.testing.assert_array_equal(y, expected, err_msg=file.read_text(encoding="utf-8"))
