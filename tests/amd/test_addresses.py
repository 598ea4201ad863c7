"""Accesses through buffer descriptors: where they are, and that nothing changes but how an address is written."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import weft
import weft.language as tl
from weft.backends.amd.addresses import RECORDS

from .waits import check

SMALL = [["tt.pointer_range", 32], ["tt.divisibility", 16]]


@weft.jit
def shifted(x, y, out, n, BLOCK: tl.constexpr):
    """Distances below the beginning of an array, masks, and what is behind them."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK) - 5
    mask = (i >= 0) & (i < n)
    first = tl.load(x + i, mask=mask, other=7.0)
    second = tl.load(y + (n - 1 - i), mask=mask)
    tl.store(out + i, first * 2 + second, mask=mask)


def compiled(target: str, small: bool, fn: Any = shifted) -> Any:
    facts = {(i,): SMALL for i in range(3)} if small else {}
    signature = {"x": "*fp32", "y": "*fp32", "out": "*fp32", "n": "i32"}
    return weft.compile(weft.ASTSource(fn, signature, {"BLOCK": 256}, facts), target)


@pytest.mark.parametrize("processor", ["gfx942", "gfx1201", "gfx1250"])
def test_small_arrays_have_descriptors(processor: str) -> None:
    text = compiled(f"hip:{processor}", True).asm["amdgcn"]
    assert text.count("buffer_load") >= 2 and "buffer_store" in text
    assert "global_load" not in text and "saveexec" not in text  # and masks need no branch


def test_others_have_addresses_of_64_bits() -> None:
    text = compiled("hip:gfx942", False).asm["amdgcn"]
    assert "buffer_load" not in text and "global_load" in text


def test_the_descriptors_of_gfx1250() -> None:
    """A pointer of 57 bits, the lowest 7 bits of the number of records behind them, the others in a word of their own,
    and in the highest word that distances are compared."""
    text = compiled("hip:gfx1250", True).asm["amdgcn"]
    records = RECORDS >> 7
    assert RECORDS & 127 == 0 and f"s_mov_b32 s6, {records:#x}" in text and "s_brev_b32 s7, 12" in text


@weft.jit
def walked(x, y, out, n, BLOCK: tl.constexpr):
    """A loop moves all pointers of a tile alike."""
    pointers = x + tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for _ in range(n):
        total += tl.load(pointers)
        pointers += BLOCK
    tl.store(out + tl.arange(0, BLOCK), total)


def test_a_loop_moves_the_descriptor() -> None:
    """Nothing is added to a vector register but the sum."""
    text = compiled("hip:gfx942", True, walked).asm["amdgcn"]
    loop = text[text.index("buffer_load") - 600 :].partition("s_cbranch")[0]
    assert "v_lshl_add_u64" not in loop and "v_addc" not in loop


@pytest.mark.parametrize("target", ["sim:hip:gfx942", "sim:hip:gfx1201"])
def test_simulated(target: str) -> None:
    x = np.arange(500, dtype=np.float32)
    y, out = x * 3, np.full(500, -1, np.float32)
    with weft.target(target):
        shifted[(2,)](x, y, out, 490, BLOCK=256)
    assert (out[:490] == 2 * x[:490] + y[:490][::-1]).all() and (out[490:] == -1).all()


@weft.jit
def multiplied(a, b, c, K, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    pa, pb = a + i[:, None] * 256 + i[None, :], b + i[:, None] * 256 + i[None, :]
    total = tl.zeros((BLOCK, BLOCK), tl.float32)
    for _ in range(0, K, BLOCK):
        total = tl.dot(tl.load(pa), tl.load(pb), total)
        pa += BLOCK
        pb += BLOCK * 256
    tl.store(c + i[:, None] * 256 + i[None, :], total)


@pytest.mark.parametrize("processor", ["gfx942", "gfx1201"])
def test_what_is_loaded_ahead_is_waited_for_behind_the_products(processor: str) -> None:
    facts = {(i,): SMALL for i in range(3)}
    source = weft.ASTSource(multiplied, {"a": "*fp16", "b": "*fp16", "c": "*fp32", "K": "i32"}, {"BLOCK": 64}, facts)
    text = weft.compile(source, f"hip:{processor}").asm["amdgcn"]
    first = text.index("mfma" if processor == "gfx942" else "v_wmma")
    begun = text.rindex("buffer_load", 0, first)
    assert not re.search(r"s_wait_loadcnt|vmcnt", text[begun:first].partition("\n")[2])


@weft.jit
def followed(x, out, n):  # type: ignore[no-untyped-def]
    for i in range(n):
        a = tl.load(x + i, mask=i < n - 1, other=0)
        tl.store(out + i, a)
        b = tl.load(out + tl.maximum(tl.load(x + a), a))
        tl.store(out + b, a + 1)


@pytest.mark.parametrize("elem", ["i8", "i32", "i64"])
def test_addresses_that_are_loaded(elem: str) -> None:
    """LLVM ends the process where gfx1250 is to multiply a distance of 0, behind a pointer in vector registers."""
    source = weft.ASTSource(followed, {"x": f"*{elem}", "out": f"*{elem}", "n": "i32"})
    text = weft.compile(source, "hip:gfx1250").asm["amdgcn"]
    assert not check(text)
