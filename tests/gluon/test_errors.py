"""What is said of wrong Gluon kernels, whole.

The messages are in errors.txt. To see what changed: WEFT_UPDATE=1 pytest tests/gluon/test_errors.py, and read the diff.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import weft
from weft import gluon
from weft.base import CompilationError, OutOfResources, WeftError
from weft.gluon import language as gl
from weft.gluon.language.nvidia.hopper import cluster, fence_async_shared, mbarrier
from weft.gluon.nvidia.hopper import TensorDescriptor
from weft.runtime import compiling, knobs

from . import bad_kernels

HERE = Path(__file__).resolve().parent
STORED = HERE / "errors.txt"
AMPERE = ("registers_on_ampere",)
"""Kernels that are wrong on sm_80 only; all others are launched for sm_90."""
FOUND_BY_PASSES = (
    *("nothing_says_layout", "two_layouts", "registers_on_ampere", "registers_beyond_the_file", "warps_beyond_a_block"),
    *("other_widths_along_k", "order_that_wgmma_cannot_read", "copies_of_single_elements", "copies_across_the_order"),
)
"""Kernels that can be traced: a compile worker finds what is wrong with them."""
KERNELS = {n: k for n, k in vars(bad_kernels).items() if hasattr(k, "arg_names") and not n.startswith("_")}


def told(kernel: Any) -> str:
    x = np.zeros(4096, np.float32)
    numbers = (3,) * (len(kernel.arg_names) - 1)
    target = "sim:cuda:80" if kernel.__name__ in AMPERE else "sim:cuda:90"
    with weft.target(target), pytest.raises((CompilationError, OutOfResources)) as caught:
        kernel[(1,)](x, *numbers)
    return str(caught.value).replace(str(HERE) + os.sep, "")


def message(kernel: Any) -> str:
    return plain(told(kernel))


def plain(text: str) -> str:
    """Without this folder, and with columns that are as wide wherever it is."""
    return re.sub(r"(?<=\S) {3,}", "   ", text.replace(str(HERE) + os.sep, ""))


def stored() -> dict[str, str]:
    cases = STORED.read_text(encoding="utf-8").split("[case ")[1:]
    return {name: plain(text.rstrip()) for name, _, text in (case.partition("]\n") for case in cases)}


if os.environ.get("WEFT_UPDATE"):
    STORED.write_text("\n".join(f"[case {n}]\n{told(k)}\n" for n, k in KERNELS.items()), encoding="utf-8")


def test_all_are_there() -> None:
    assert set(stored()) == set(KERNELS)


@pytest.mark.parametrize("name", KERNELS)
def test_message(name: str) -> None:
    assert message(KERNELS[name]) == stored()[name]


def test_a_compile_worker_says_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """Text of the IR goes to it, and an error comes back: with the same place, lines, notes and hint."""
    compile_elsewhere, asked = compiling._elsewhere, []
    watched = lambda executor: asked.append(compile_elsewhere(executor)) or asked[-1]
    monkeypatch.setattr(compiling, "_elsewhere", watched)
    late = {name: kernel for name, kernel in KERNELS.items() if name in FOUND_BY_PASSES}

    def compiled(kernel: Any) -> str:
        constants = {p.name: 3 for p in kernel.params if p.is_constexpr}
        signature = {n: "constexpr" if n in constants else "i32" for n in kernel.arg_names}
        target = "cuda:80" if kernel.__name__ in AMPERE else "cuda:90"
        with pytest.raises((CompilationError, OutOfResources)) as caught:
            weft.compile(weft.ASTSource(kernel, {**signature, kernel.arg_names[0]: "*fp32"}, constants), target)
        return str(caught.value)

    alone = {name: compiled(kernel) for name, kernel in late.items()}
    with knobs.compilation.scope():
        knobs.compilation.isolate = True
        assert {name: compiled(kernel) for name, kernel in late.items()} == alone
    assert asked[: len(late)] == [None] * len(late) and None not in asked[len(late) :]


@pytest.mark.parametrize("target", ["cuda:90", "sim:cuda:90"])
def test_too_much_memory_is_found_when_compiling(target: str) -> None:
    source = weft.ASTSource(bad_kernels.more_memory_than_there_is, {"x": "*fp32"}, {})
    with pytest.raises(OutOfResources) as caught:
        weft.compile(source, target=target)
    assert plain(str(caught.value)) == stored()["more_memory_than_there_is"]


def test_on_the_cpu() -> None:
    with pytest.raises(weft.Unsupported) as caught:
        bad_kernels.too_many_warps[(1,)](np.zeros(4, np.float32))
    assert str(caught.value) == (
        "error: a Gluon kernel (too_many_warps), whose layouts are for the threads of a GPU, is not supported on "
        'target cpu\nhint: `with weft.target("sim:cuda:80"):` around the launch, or WEFT_TARGET=sim:cuda:80, runs it '
        "on this machine"
    )


@gluon.jit
def _announces(x):
    bar = gl.allocate_shared_memory(gl.int64, [1], mbarrier.MBarrierLayout())
    mbarrier.init(bar, count=1)
    mbarrier.expect(bar, 64)


@gluon.jit
def _fences(x):
    fence_async_shared()


@gluon.jit
def _meets(x):
    cluster.arrive()


@pytest.mark.parametrize("kernel", [_announces, _fences, _meets], ids=lambda k: str(k.__name__))
@pytest.mark.parametrize("target", ["cuda:80", "sim:cuda:80"])
def test_what_came_with_hopper_is_refused_before(kernel: Any, target: str) -> None:
    """In the simulator as by the compiler: nobody finds out on the machine."""
    found = {_announces: "the instruction `mbarrier.arrive.expect_tx`", _fences: "a fence for the asynchronous proxy"}
    with pytest.raises(weft.Unsupported) as caught:
        if target.startswith("sim"):
            kernel[(1,)](np.zeros(4, np.float32), target=target)
        weft.compile(weft.ASTSource(kernel, {"x": "*fp32"}, {}), target=target)
    assert caught.value.span is not None
    what = found.get(kernel, "the instruction `barrier.cluster.arrive`")
    assert f"{what} is not supported on target cuda:80" in str(caught.value)


def test_outside_of_a_kernel() -> None:
    with pytest.raises(WeftError, match="^`arange` builds kernel code and works only inside a kernel"):
        gl.arange(0, 4)


@pytest.mark.parametrize(
    ("dtype", "block", "layout", "said"),
    [
        (np.float32, [16, 64], gl.NVMMASharedLayout(128, 16), "is for elements of 16 bits, the array holds fp32"),
        (np.float16, [16, 32], gl.NVMMASharedLayout(128, 16), "descriptor cannot have this layout: .* has 32"),
        (
            np.float16,
            [16, 4],
            gl.NVMMASharedLayout(0, 16),
            r"16 bytes or more in the last dimension, .* has 8",
        ),
        (np.float16, [16, 64], gl.NVMMASharedLayout(0, 16, 3), "of 2 dimensions needs a layout of as many"),
        (np.float16, [16, 64], gl.SwizzledSharedLayout(8, 1, 8, [1, 0]), "must be an NVMMASharedLayout"),
    ],
)
def test_descriptors_of_blocks_that_cannot_lie_so(dtype: Any, block: Any, layout: Any, said: str) -> None:
    """Where they are made, not where a kernel is compiled for them."""
    with pytest.raises(weft.LaunchError, match=said):
        TensorDescriptor(np.zeros((64, 64), dtype), [64, 64], [64, 1], block, layout)
