"""Kernels for the GPU benchmarks, as source that both Weft and Triton run.

cases("weft")["transpose 64"].compile(90).asm["ptx"]
"""

from __future__ import annotations

import atexit
import importlib.util
import shutil
import sys
import tempfile
import types
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

SOURCE = """
@triton.jit
def add(x, y, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    tl.store(out + i, tl.load(x + i, mask=mask) + tl.load(y + i, mask=mask), mask=mask)


@triton.jit
def softmax(out, x, width, stride, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    column = tl.arange(0, BLOCK)
    mask = column < width
    value = tl.load(x + row * stride + column, mask=mask, other=-float("inf"))
    e = tl.exp(value - tl.max(value, axis=0))
    tl.store(out + row * stride + column, e / tl.sum(e, axis=0), mask=mask)


@triton.jit
def layer_norm(x, out, w, b, stride, width, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    mean_sum = tl.zeros([BLOCK], tl.float32)
    square_sum = tl.zeros([BLOCK], tl.float32)
    for at in range(0, width, BLOCK):
        column = at + tl.arange(0, BLOCK)
        value = tl.load(x + row * stride + column, mask=column < width, other=0.0).to(tl.float32)
        mean_sum += value
        square_sum += value * value
    mean = tl.sum(mean_sum, axis=0) / width
    scale = tl.rsqrt(tl.sum(square_sum, axis=0) / width - mean * mean + eps)
    for at in range(0, width, BLOCK):
        column = at + tl.arange(0, BLOCK)
        mask = column < width
        value = tl.load(x + row * stride + column, mask=mask, other=0.0).to(tl.float32)
        weight = tl.load(w + column, mask=mask)
        bias = tl.load(b + column, mask=mask)
        tl.store(out + row * stride + column, (value - mean) * scale * weight + bias, mask=mask)


@triton.jit
def transpose(x, out, m, n, BLOCK: tl.constexpr):
    rows = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    columns = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + rows[:, None] * n + columns[None, :])
    tl.store(out + columns[:, None] * m + rows[None, :], tl.trans(value))


@triton.jit
def reduce_rows(x, out, n, M: tl.constexpr, N: tl.constexpr):
    rows = tl.program_id(0) * M + tl.arange(0, M)
    columns = tl.arange(0, N)
    value = tl.load(x + rows[:, None] * n + columns[None, :])
    tl.store(out + rows, tl.sum(value, axis=1))


@triton.jit
def matmul(a, b, c, m, n, k, stride_a, stride_b, stride_c, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    rows = tl.program_id(0) * M + tl.arange(0, M)
    columns = tl.program_id(1) * N + tl.arange(0, N)
    inner = tl.arange(0, K)
    left = a + rows[:, None] * stride_a + inner[None, :]
    right = b + inner[:, None] * stride_b + columns[None, :]
    total = tl.zeros((M, N), tl.float32)
    for _ in range(0, tl.cdiv(k, K)):
        total = tl.dot(tl.load(left), tl.load(right), total)
        left += K
        right += K * stride_b
    tl.store(c + rows[:, None] * stride_c + columns[None, :], total.to(tl.float16))
"""
NAMES = {"fp16": "*fp16", "fp32": "*fp32"}


@dataclass
class Case:
    """A kernel with its types, constants, and which arguments are divisible by 16."""

    kernel: str
    signature: dict[str, str]
    constants: dict[str, int]
    options: dict[str, int] = field(default_factory=dict)
    own: str = "weft"

    def source(self) -> Any:
        """An ASTSource of whoever compiles."""
        function = getattr(_module(self.own), self.kernel)
        order = [*self.signature, *self.constants]
        types_ = {**self.signature, **dict.fromkeys(self.constants, "constexpr")}
        aligned = {(order.index(n),): [["tt.divisibility", 16]] for n, t in self.signature.items() if t != "fp32"}
        if self.own == "weft":
            import weft

            return weft.ASTSource(function, types_, self.constants, aligned)
        from triton.compiler import ASTSource

        return ASTSource(function, types_, self.constants, aligned)

    def compile(self, capability: int) -> Any:
        """The compiled kernel, up to its PTX."""
        source = self.source()
        if self.own == "weft":
            import weft
            from weft.compiler import compile as compile_source

            return compile_source(source, weft.compiler.GPUTarget("cuda", capability, 32), self.options)
        return _triton_ptx(source, capability, self.options)


def _triton_ptx(source: Any, capability: int, options: dict[str, int]) -> Any:
    """Triton's own stages, up to its PTX; nothing is read from or written to its cache."""
    from triton._C.libtriton import ir
    from triton.backends.compiler import GPUTarget
    from triton.compiler.compiler import make_backend

    target = GPUTarget("cuda", capability, 32)
    backend = make_backend(target)
    chosen = backend.parse_options(dict(options))
    stages: dict[str, Callable[..., Any]] = {}
    backend.add_stages(stages, chosen, source.language)
    context = ir.context()
    ir.load_dialects(context)
    backend.load_dialects(context)
    module = source.make_ir(
        target, chosen, backend.get_codegen_implementation(chosen), backend.get_module_map(), context
    )
    metadata: dict[str, Any] = {"hash": "", "target": target, **chosen.__dict__}
    asm: dict[str, Any] = {}
    for name, run in stages.items():
        if name == "cubin":
            break
        module = run(module, metadata)
        asm[name] = module if isinstance(module, str) else str(module)
    return types.SimpleNamespace(asm=asm, metadata=types.SimpleNamespace(**metadata))


_modules: dict[str, Any] = {}


def _module(own: str) -> Any:
    """The kernels, decorated by Weft or by Triton; a file, because both read the source from one."""
    if own not in _modules:
        head = "import triton\nimport triton.language as tl\n"
        if own == "weft":
            head = "import weft as triton\nimport weft.language as tl\n"
        folder = Path(tempfile.mkdtemp(prefix="weft-benchmark-"))
        atexit.register(shutil.rmtree, folder, ignore_errors=True)  # messages quote the source until then
        path = folder / f"kernels_{own}.py"
        path.write_text(head + SOURCE, encoding="utf-8")
        spec = importlib.util.spec_from_file_location(path.stem, path)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[path.stem] = module
        spec.loader.exec_module(module)
        _modules[own] = module
    return _modules[own]


def cases(own: str) -> dict[str, Case]:
    """All kernels, for "weft" or "triton"."""
    f16, f32, i32 = "*fp16", "*fp32", "i32"
    product = {"a": f16, "b": f16, "c": f16, **dict.fromkeys(("m", "n", "k", "stride_a", "stride_b", "stride_c"), i32)}
    tile = {"M": 128, "N": 128, "K": 64}
    found = {
        "add": Case("add", {"x": f32, "y": f32, "out": f32, "n": i32}, {"BLOCK": 1024}),
        "softmax 4096": Case("softmax", {"out": f32, "x": f32, "width": i32, "stride": i32}, {"BLOCK": 4096}),
        "layer norm": Case(
            "layer_norm",
            {"x": f16, "out": f16, "w": f32, "b": f32, "stride": i32, "width": i32, "eps": "fp32"},
            {"BLOCK": 1024},
        ),
        "transpose 64": Case("transpose", {"x": f32, "out": f32, "m": i32, "n": i32}, {"BLOCK": 64}),
        "rows 64x128": Case("reduce_rows", {"x": f32, "out": f32, "n": i32}, {"M": 64, "N": 128}),
        "matmul 64x64x32": Case("matmul", product, {"M": 64, "N": 64, "K": 32}),
        "matmul 128x128x64": Case("matmul", product, tile),
        "matmul 128x128x64, 8 warps": Case("matmul", product, tile, {"num_warps": 8}),
    }
    for case in found.values():
        case.own = own
    return found
