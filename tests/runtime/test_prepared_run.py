"""`kernel.run` of a kernel that is loaded and kept, as by PyTorch's Inductor: native from the second launch."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

import weft
import weft.language as tl
from weft.compiler import CompiledKernel
from weft.runtime import knobs
from weft.runtime.prepared import supported

pytestmark = pytest.mark.skipif(not supported(), reason="launches are prepared on CPython of 64 bits")


@weft.jit
def scaled(x, out, factor, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, mask=i < n) * factor, mask=i < n)


class Run:
    """`run` of a loaded kernel, which counts the launches that went through Python."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.x, self.out = np.arange(64, dtype=np.float32), np.zeros(64, np.float32)
        self.compiled = scaled.warmup(self.x, self.out, 2.0, 64, BLOCK=16, grid=(4,))
        self.python = 0
        general = CompiledKernel.run

        def counted(*args: Any) -> None:
            self.python += 1
            general(*args)

        monkeypatch.setattr(CompiledKernel, "run", counted)
        self.compiled._init_handles()
        self.kept = self.compiled.run

    def __call__(self, factor: Any = 2.0, n: int = 64, hooks: tuple[Any, Any] = (None, None), grid: Any = 4) -> int:
        """Launches that went through Python, of this one; the result is checked."""
        before, self.out[:] = self.python, -1
        self.kept(grid, 1, 1, None, self.compiled.function, self.compiled.packed_metadata, None, *hooks,
                  self.x, self.out, factor, n, 16)  # fmt: skip
        here = np.arange(64) < min(n, 16 * grid)
        assert (self.out == np.where(here, self.x * np.float32(factor), -1)).all()
        return self.python - before


def test_native_from_the_second_launch(monkeypatch: pytest.MonkeyPatch) -> None:
    run = Run(monkeypatch)
    assert [run(), run(), run(3.5, 50), run(grid=2)] == [1, 0, 0, 0]


def test_what_else_is_given_goes_through_python(monkeypatch: pytest.MonkeyPatch) -> None:
    run = Run(monkeypatch)
    run()
    assert run(2) == 1  # an integer for a float is no mistake
    with pytest.raises(weft.LaunchError):
        run(grid=-1)
    with pytest.raises(TypeError):
        run(factor="two")


def test_hooks_are_called_from_when_they_are_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """The lists of the knobs, which are handed to `run` as they are: a hook may come into one of them at any time."""
    run = Run(monkeypatch)
    told: list[Any] = []
    chains = (knobs.runtime.launch_enter_hook, knobs.runtime.launch_exit_hook)
    assert [run(hooks=chains), run(hooks=chains)] == [1, 0]
    chains[0].add(told.append)
    try:
        assert run(hooks=chains) == 1 and len(told) == 1
    finally:
        chains[0].remove(told.append)
    assert run(hooks=chains) == 0 and len(told) == 1
    assert run(hooks=(told.append, None)) == 1 and len(told) == 2
    assert run(hooks=(None, None)) == 1  # others than those it was planned for
    assert [run(hooks=(None, None)), run(hooks=chains)] == [0, 0]


def test_a_loaded_kernel_can_be_pickled(monkeypatch: pytest.MonkeyPatch) -> None:
    run = Run(monkeypatch)
    run()
    assert "run" not in run.compiled.__getstate__()
    monkeypatch.undo()
    assert pickle.loads(pickle.dumps(run.compiled.asm)) == run.compiled.asm
