"""Code for AMD's GPUs is made in a compile worker: LLVM ends the process where it finds no instruction."""

from __future__ import annotations

import os
from typing import Any

import pytest

import weft
import weft.language as tl
from weft.backends.amd import object_code, processor_of
from weft.base import CompilerCrash
from weft.compiler import as_target, work_of
from weft.machines import machine_of
from weft.runtime import WorkerPool, knobs, workers

UNSELECTED = """
declare { i32, i32 } @llvm.amdgcn.permlane32.swap(i32, i32, i1, i1)
define amdgpu_kernel void @half_of_a_wave(ptr addrspace(1) %out, i32 %x) {
  %z = call { i32, i32 } @llvm.amdgcn.permlane32.swap(i32 %x, i32 %x, i1 false, i1 false)
  %y = extractvalue { i32, i32 } %z, 0
  store i32 %y, ptr addrspace(1) %out
  ret void
}
"""


@weft.jit
def doubled(x, n, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x + i, 2 * tl.load(x + i, mask=i < n), mask=i < n)


def source() -> Any:
    return weft.ASTSource(doubled, {"x": "*i32", "n": "i32"}, {"BLOCK": 256})


def test_what_llvm_cannot_select_ends_the_worker_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    with WorkerPool(1) as pool:
        with pytest.raises(CompilerCrash) as caught:
            pool.submit(object_code, UNSELECTED, processor_of(machine_of("hip:gfx90a"))).result()
        assert "the process that was running object_code() ended by signal SIGABRT: " in caught.value.message
        assert "annot select" in caught.value.message and "`half_of_a_wave`" in caught.value.message
        facts, blobs, _ = pool.compile(work_of(source(), as_target("hip:gfx90a"), {}))
        assert facts["name"] == "doubled" and blobs["hsaco"][:4] == b"\x7fELF"
        asked: list[int] = []
        monkeypatch.setattr(workers, "default_pool", lambda: asked.append(os.getpid()) or pool)
        with knobs.cache.scope():
            knobs.cache.disabled = True
            kernel = weft.compile(source(), "hip:gfx90a")
            assert kernel.asm["hsaco"] == blobs["hsaco"] and asked
            assert weft.compile(source(), "cuda:90").asm["ptx"] and len(asked) == 1
