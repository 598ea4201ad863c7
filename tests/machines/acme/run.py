"""Compile and launch kernels for a GPU of a vendor whose back end joins by its entry point."""

import numpy as np

import weft
import weft.language as tl


@weft.jit
def rows(out, x, y, width, stride, BLOCK: tl.constexpr):
    row, column = tl.program_id(0), tl.arange(0, BLOCK)
    mask = column < width
    a = tl.load(x + row * stride + column, mask=mask, other=1.0)
    b = tl.load(y + row * stride + column, mask=mask, other=1.0)
    tl.store(out + row * stride + column, tl.exp2(a) / b + row % 3, mask=mask)


rng = np.random.default_rng(1)
x, y = (rng.uniform(1, 4, (5, 112)).astype(np.float32) for _ in range(2))
with weft.target("acme:one"):
    a, b, out = (weft.cuda.to_device(v) for v in (x, y, np.zeros_like(x)))
    kernel = rows[(5,)](out, a, b, 96, 112, BLOCK=128)
    found = out.numpy()
expected = np.where(np.arange(112) < 96, np.exp2(x) / y + np.arange(5)[:, None] % 3, 0)
assert np.allclose(found, expected, rtol=1e-6), abs(found - expected).max()
assert kernel.asm["lane"] and "ptx" not in kernel.asm.keys() and kernel.metadata.warp_size == 16
assert str(kernel.metadata.target) == "acme:one" and "acme:one" in weft.compiler.TARGETS

simulated = np.zeros_like(x)
with weft.target("sim:acme:one"):
    rows[(5,)](simulated, x, y, 96, 112, BLOCK=128)
assert np.allclose(simulated, expected, rtol=1e-6)
print("acme")
