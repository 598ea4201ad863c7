"""Mistakes that users make. Both type checkers refuse each line that says so, or the one that it names."""

from __future__ import annotations

import numpy as np
import weft
from kernels import add, relu, scale

x = np.ones(8, np.float32)
add[(1,)](x, x, x, 8, BLOKC=64)  # refused: misspelt
add[(1,)](x, x, x, 8, BLOKC=64, num_warps=4)  # refused: misspelt with option
add[(1,)](x, x, x, 8)  # refused: missing
add[(1,)](x, x, x, 8, num_warps=4)  # refused: missing with option
add[(1,)](x, x, x, BLOCK=64, num_warps=4)  # refused: missing with option
add[(1,)](x, x, x, 8, BLOCK=64, num_warp=4)  # refused: misspelt option
add[(1,)](x, x, x, 8, BLOCK=64, num_warps="4")  # refused: kind of option
add[(1, 1, 1, 1)](x, x, x, 8, BLOCK=64)  # refused: grid of four
add[lambda meta: (1, 1, 1, 1)](x, x, x, 8, BLOCK=64)  # refused by pyright: grid of four
add["a"](x, x, x, 8, BLOCK=64)  # refused: grid is text
add[(1.5,)](x, x, x, 8, BLOCK=64)  # refused: grid is float
add[()](x, x, x, 8, BLOCK=64)  # refused: grid of none
add[(1,)]([1.0], x, x, 8, BLOCK=64)  # refused: list
add[(1,)]([1.0], x, x, 8, BLOCK=64, num_warps=4)  # refused: list with option
add[(1,)](x, x, x, x, BLOCK=64, num_warps=4)  # refused: array for number
add[(1,)](x, x, x, 8, 64, 3)  # refused: too many
add[(1,)](x, x, x, 8, 64, 3, num_stages=4)  # refused: too many
add[(1,)](x, x, x, 8, 64, BLOCK=3, num_stages=4)  # refused: twice
add.warmup(x, x, x, 8, BLOKC=64, grid=(1,))  # refused: misspelt
add.warmup(x, x, x, 8, BLOCK=64)  # refused: grid missing
add.warmup(x, x, x, 8, grid=(1,), num_warps=4)  # refused: missing
add.warmup(x, x, x, 8, BLOCK=64, grid=(1, 2, 3, 4))  # refused: grid of four
add.warmup(x, x, x, 8, BLOCK=64, grid=(1,)).asmm  # refused: attribute
add[(1,)](x, x, x, 8, BLOCK=64).asn  # refused: attribute
weft.sim.last_run().totl  # refused: attribute
weft.compile(weft.ASTSource(add, {"x": "*fp32"}), taget="cuda:90")  # refused: keyword
weft.compile(weft.ASTSource(add, {"x": "*fp32"})).asn  # refused: attribute
scale[(1, 1, 1, 1)](x, 8, 2.0)  # refused: grid of four
scale[(1,)]([1], 8, 2.0)  # refused: list
scale[(1,)](x, 8, 2.0, BLOKC=3)  # accepted: misspelt, tuned
relu(x, 3)  # refused: too many
weft.jit(do_not_specialise=["n"])  # refused: keyword
weft.Config({"BLOCK": 4}, num_warp=4)  # refused: keyword
weft.autotune([weft.Config({})], keys=["n"])  # refused: keyword
