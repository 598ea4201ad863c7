"""Tiles whose elements are repeated: each thread repeats those that it has loaded."""

from __future__ import annotations

import re

import weft
import weft.language as tl


@weft.jit
def unpacked_product(a, words, out, stride):
    rows, columns = tl.arange(0, 32), tl.arange(0, 4)
    packed = tl.load(words + rows[:, None] * stride + columns[None, :])
    pairs = tl.interleave(packed, packed)
    quarters = tl.interleave(pairs, pairs)
    wide = tl.interleave(quarters, quarters)
    b = ((wide >> (4 * (tl.arange(0, 32) % 8))[None, :]) & 15).to(tl.float16)
    left = tl.load(a + tl.arange(0, 16)[:, None] * 32 + rows[None, :])
    tl.store(out + tl.arange(0, 16)[:, None] * 32 + rows[None, :], tl.dot(left, b))


def test_a_word_becomes_eight_numbers_in_its_thread() -> None:
    """Lanes were along the rows of the wide tile, and each loaded a word for each of its rows."""
    pointers = [weft.MockTensor(name) for name in ("fp16", "i32", "fp32")]
    text = unpacked_product.warmup(*pointers, 513, grid=(1,), target="cuda:90", num_warps=4).asm["ttgir"]
    layout = re.search(r"arith\.sitofp .* to tensor<32x32xf16, #(\w+)>", text)
    assert layout is not None
    assert f"#{layout[1]} = #ttg.linear<{{register = [[0, 1], [0, 2], [0, 4]], lane = [[0, 8], [0, 16]," in text
