"""Time the kernels of table_kernels.py on small data, with Weft or in Triton's interpreter. cpu.py runs this file.

python benchmarks/interpreter.py weft
python benchmarks/interpreter.py triton     # sets TRITON_INTERPRET=1
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np


def use_triton_interpreter() -> None:
    """Make `import weft` give Triton with its interpreter switched on."""
    os.environ["TRITON_INTERPRET"] = "1"
    import triton
    import triton.language
    from triton.runtime import interpreter

    patch = interpreter._patch_lang_tensor

    def patch_for_new_numpy(tensor: Any, scope: Any) -> None:
        # NumPy 2.4 refuses int() of an array with one element, which the interpreter does for loop bounds.
        patch(tensor, scope)
        scope.set_attr(tensor, "__index__", lambda self: int(self.handle.data.item()))

    interpreter._patch_lang_tensor = patch_for_new_numpy
    sys.modules["weft"] = triton
    sys.modules["weft.language"] = triton.language


def works(wrap: Callable[[Any], Any]) -> dict[str, tuple[Callable[[], None], Any]]:
    """Each kernel on small data, with the array it fills."""
    import table_kernels as kernels

    rng = np.random.default_rng(0)

    def draw(*shape: int) -> Any:
        return wrap(rng.standard_normal(shape, np.float32))

    def empty(*shape: int) -> Any:
        return wrap(np.zeros(shape, np.float32))

    v = [draw(1 << 18), draw(1 << 18), empty(1 << 18)]
    s = [draw(256, 1024), empty(256, 1024)]
    ln = [draw(256, 1024), draw(1024), draw(1024), empty(256, 1024), empty(256), empty(256)]
    g = [draw(1 << 18), empty(1 << 18)]
    t = [draw(512, 512), empty(512, 512)]
    mm = [draw(256, 256), draw(256, 256), empty(256, 256)]
    a = [draw(1, 2, 256, 64), draw(1, 2, 256, 64), draw(1, 2, 256, 64), empty(1, 2, 256, 64)]
    return {
        "vector add": (lambda: kernels.add(*v), v[2]),
        "softmax": (lambda: kernels.softmax(*s), s[1]),
        "layer norm": (lambda: kernels.layer_norm(*ln), ln[3]),
        "gelu": (lambda: kernels.gelu(*g), g[1]),
        "transposed copy": (lambda: kernels.transpose(*t), t[1]),
        "matmul": (lambda: kernels.matmul(*mm, block=(64, 64, 64)), mm[2]),
        "attention": (lambda: kernels.attention(*a), a[3]),
    }


def main(which: str) -> None:
    """Print seconds and a checksum for each kernel."""
    if which == "triton":
        use_triton_interpreter()
        import torch

        wrap: Callable[[Any], Any] = torch.from_numpy
    else:
        wrap = lambda array: array  # noqa: E731
    rows = {}
    for name, (work, out) in works(wrap).items():
        work()
        best = float("inf")
        for _ in range(3 if which == "triton" else 20):
            start = time.perf_counter()
            work()
            best = min(best, time.perf_counter() - start)
        rows[name] = {"seconds": best, "checksum": float(np.asarray(out, np.float64).sum())}
    print("RESULT" + json.dumps(rows))


if __name__ == "__main__":
    main(sys.argv[1])
