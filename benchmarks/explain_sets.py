# mypy: ignore-errors
"""The kernels whose times explain_time.py predicts and measures, in five sets, each with its arguments on a GPU.

wider      those of gpu_wider.py
ncu        those of ncu.py, which are small
more       others of the project's, at sizes of their own: rows of any length, transposes, products
ways       one for each technique of the compiler that the other sets do not use
inductor   those that torch.compile writes for the graphs below, made by PyTorch when the benchmark runs

A kernel of `inductor` is written by PyTorch's compiler, which must find Weft where it looks for Triton; Weft's code for
it is launched as any other. Its name is that of the graph, and the number of the kernel in it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

__all__ = ["SETS", "Case", "cases_of"]

SETS = ("wider", "ncu", "more", "ways", "inductor")


@dataclass
class Case:
    """A launch."""

    name: str
    kernel: Any
    grid: Any
    args: tuple[Any, ...]
    more: dict[str, Any] = field(default_factory=dict)


def cases_of(which: str, wanted: Callable[[str], bool]) -> Iterator[Case]:
    """The kernels of a set whose names are wanted; some of the others are made, too."""
    made = {"wider": _wider, "ncu": _ncu, "more": _more, "ways": _ways, "inductor": _inductor}[which]
    return (case for case in made(wanted) if wanted(case.name))


def _wider(wanted: Callable[[str], bool]) -> Iterator[Case]:
    import gpu_wider
    import weft.language as tl

    for group in gpu_wider.GROUPS:
        for name, kernel, grid, args, more, *_ in group():
            given = {k: getattr(tl, v) if k == "ACC" else v for k, v in more.items()}
            ours = next(getattr(file, kernel) for file in gpu_wider.OURS if hasattr(file, kernel))
            yield Case(name, ours, grid, args, given)


def _ncu(wanted: Callable[[str], bool]) -> Iterator[Case]:
    import numpy as np
    import torch

    from ncu_kernels import WORKS

    for name, work in WORKS.items():
        if wanted(f"ncu: {name}") and work.least <= 90:
            launch = work.make()
            args = tuple(torch.from_numpy(a).cuda() if isinstance(a, np.ndarray) else a for a in launch.arguments)
            yield Case(f"ncu: {name}", work.kernel, launch.grid, args, dict(work.constants))


def _more(wanted: Callable[[str], bool]) -> Iterator[Case]:
    import torch

    import weft
    from gpu_sides import load_side

    plain, odd = (load_side("time", f, jit=weft.jit, tl=weft.language) for f in ("gpu_kernels", "gpu_odd_kernels"))

    def rand(*shape: int, dtype: Any = torch.float32) -> Any:
        return torch.randn(*shape, device="cuda").to(dtype)

    for n, block in ((1 << 12, 256), (1 << 18, 1024), (3_000_001, 512), (1 << 26, 4096)):
        x, y = rand(n), rand(n)
        yield Case(f"more: add of {n}", plain.add, (-(-n // block),), (x, y, torch.empty_like(x), n), {"BLOCK": block})
    for dtype, n in ((torch.float16, 1 << 20), (torch.int8, 1 << 25)):
        x = rand(n).to(dtype)
        args = (x, torch.empty_like(x), n)
        yield Case(f"more: copy of {n} {str(dtype)[6:]}", plain.copy_1d, (n // 1024,), args, {"BLOCK": 1024})
    for rows, columns, warps in ((64, 8192, 8), (2048, 512, 2), (16384, 1024, 4), (4096, 16384, 16)):
        x = rand(rows, columns)
        more = {"BLOCK": columns, "num_warps": warps}
        yield Case(f"more: softmax {rows}x{columns}", plain.softmax, (rows,), (x, torch.empty_like(x), columns), more)
    x, w = rand(1000, 4096), rand(4096)
    args = (x, torch.empty_like(x), w, w, 4096, 1e-5)
    yield Case("more: layer norm 1000x4096", plain.layer_norm, (1000,), args, {"BLOCK": 4096, "num_warps": 8})
    for size, block, warps, dtype in ((1024, 32, 4, torch.float32), (8192, 64, 4, torch.float16)):
        x = rand(size, size, dtype=dtype)
        more = {"BLOCK": block, "num_warps": warps}
        grid = (size // block, size // block)
        yield Case(f"more: transpose {size}", plain.transpose, grid, (x, torch.empty_like(x), size, size), more)
    x = rand(5000, 3001)
    args = (x, torch.empty(3001, 5000, device="cuda"), 5000, 3001)
    yield Case("more: transpose 5000x3001", odd.transpose, (79, 47), args, {"BLOCK": 64, "num_warps": 4})
    bf16, f16 = torch.bfloat16, torch.float16
    for rows, columns, dtype in ((20000, 1001, bf16), (3000, 12345, torch.float32), (700, 50257, f16)):
        x, w = rand(rows, columns, dtype=dtype), rand(columns, dtype=dtype)
        block = 1 << (columns - 1).bit_length()
        more = {"BLOCK": block, "num_warps": 4 if columns <= 2048 else 16}
        out = torch.empty_like(x)
        yield Case(f"more: rms norm {rows}x{columns}", odd.rms_norm, (rows,), (x, w, out, columns, 1e-6), more)
        yield Case(f"more: scale {rows}x{columns}", odd.scale, (rows,), (x, w, out, columns), more)
    for size, dtype, (bm, bn, bk), warps in (
        (512, torch.float16, (64, 64, 64), 4),
        (1024, torch.bfloat16, (128, 64, 32), 4),
        (2048, torch.float16, (128, 128, 64), 8),
        (8192, torch.bfloat16, (128, 256, 64), 8),
    ):
        a, b = rand(size, size, dtype=dtype), rand(size, size, dtype=dtype)
        more = {"BM": bm, "BN": bn, "BK": bk, "GROUP": 8, "num_warps": warps}
        args = (a, b, torch.empty_like(a), size, size, size)
        yield Case(f"more: product {size}", plain.matmul, (size // bm * (size // bn),), args, more)


def _ways(wanted: Callable[[str], bool]) -> Iterator[Case]:
    """Several programs in a block, prefetched rows of clusters, rows at any address kept in shared memory, gradients of
    attention, the copy engine for loads through pointers, and early and late waits for copies in a loop."""
    import torch

    import weft
    from gpu_sides import load_side

    of_rows, pointed, gradients, plain = (
        load_side("time", f"gpu_{name}kernels", jit=weft.jit, tl=weft.language)
        for name in ("rows_", "pointed_", "attention_backward_", "")
    )
    bf16, f16, f32 = torch.bfloat16, torch.float16, torch.float32

    def rand(*shape: int, dtype: Any = bf16) -> Any:
        return torch.randn(*shape, device="cuda").to(dtype)

    def of(name: str, rows: int, columns: int, warps: int, dtype: Any = bf16) -> Case:
        x, w, b = rand(rows, columns, dtype=dtype), rand(columns, dtype=dtype), rand(columns, dtype=dtype)
        out = torch.empty_like(x)
        if name == "cross_entropy":
            w, out = torch.randint(0, columns, (rows,), device="cuda"), torch.empty(rows, device="cuda")
        more = {"BLOCK": 1 << (columns - 1).bit_length(), "num_warps": warps}
        kernel = getattr(of_rows, f"{name}_tile")
        return Case(f"ways: {name} {rows}x{columns}", kernel, (rows,), (x, w, b, out, columns, 1e-6), more)

    yield of("cross_entropy", 1 << 17, 1024, 1)
    yield of("softmax", 1 << 18, 256, 1, f32)
    yield of("layer_norm", 1024, 1 << 17, 16)
    yield of("rms_norm", 2670, 50257, 16)

    heads, length, head, bm, bn = 16, 2048, 64, 64, 128
    q, k, v, dout, dk, dv = (rand(heads * length, head) for _ in range(6))
    boxes = ((q, bm), (k, bn), (v, bn), (dout, bm), (dk, bn), (dv, bn))
    described = (weft.TensorDescriptor(x, [heads * length, head], [head, 1], [rows, head]) for x, rows in boxes)
    most, sums = (rand(heads * length, dtype=f32) for _ in range(2))
    args = (*described, most, sums, 0.18, length)
    more = {"HEAD": head, "BM": bm, "BN": bn, "CAUSAL": False, "SPECIALIZE": False, "NARROW": False}
    more |= {"num_warps": 8, "num_stages": 2}
    yield Case("ways: gradients of keys", gradients.keys_and_values, (length // bn, heads), args, more)

    n = 4096
    a, b, c = rand(n, n), rand(n, n), rand(n, n)
    more = {"BM": 128, "BN": 256, "BK": 64, "GROUP": 8, "ASKED": False, "num_warps": 8, "num_stages": 4}
    args = (a, b, c, n, n, n, n, 1, n, 1, n, 1)
    yield Case("ways: product by pointers", pointed.matmul, (n // 128 * (n // 256),), args, more)
    a, b, c = (x.to(f16) for x in (a, b, c))
    for side in (64, 128):
        more = {"BM": side, "BN": side, "BK": 32, "GROUP": 8, "num_warps": 4, "num_stages": 4}
        yield Case(f"ways: product of {side}x{side}x32", plain.matmul, ((n // side) ** 2,), (a, b, c, n, n, n), more)


def _graphs() -> dict[str, Callable[[], tuple[Callable[..., Any], tuple[Any, ...]]]]:
    """What is given to torch.compile, by name."""
    import torch
    import torch.nn.functional as F

    def rand(*shape: int, dtype: Any = torch.float32) -> Any:
        return torch.randn(*shape, device="cuda").to(dtype)

    bf16, half = torch.bfloat16, torch.float16
    return {
        "gelu of a sum": lambda: (lambda x, b: F.gelu(x + b), (rand(8192, 4096), rand(4096))),
        "gated": lambda: (lambda x, y: torch.tanh(x) * torch.sigmoid(y) + x, (rand(1 << 24), rand(1 << 24))),
        "swiglu": lambda: (lambda g, u: F.silu(g) * u, (rand(8192, 11008, dtype=bf16), rand(8192, 11008, dtype=bf16))),
        "layer norm": lambda: (
            lambda x, w, b: F.layer_norm(x, (4096,), w, b),
            (rand(8192, 4096, dtype=half), rand(4096, dtype=half), rand(4096, dtype=half)),
        ),
        "rms norm and residual": lambda: (
            lambda x, r, w: (x + r) * torch.rsqrt((x + r).float().pow(2).mean(-1, keepdim=True) + 1e-6).to(bf16) * w,
            (rand(16384, 2048, dtype=bf16), rand(16384, 2048, dtype=bf16), rand(2048, dtype=bf16)),
        ),
        "softmax": lambda: (lambda x: torch.softmax(x, -1), (rand(4096, 8192),)),
        "softmax of few rows": lambda: (lambda x: torch.softmax(x, -1), (rand(64, 50257),)),
        "log softmax of scores": lambda: (
            lambda x: F.log_softmax(x.float() * 0.5, -1), (rand(2048, 32000, dtype=bf16),),
        ),
        "cross entropy": lambda: (
            F.cross_entropy, (rand(4096, 10000), torch.randint(0, 10000, (4096,), device="cuda")),
        ),
        "batch norm": lambda: (
            lambda x: F.relu(F.batch_norm(x, None, None, training=True)), (rand(32, 256, 56, 56, dtype=half),),
        ),
        "group norm": lambda: (lambda x: F.silu(F.group_norm(x, 32)), (rand(16, 256, 64, 64),)),
        "sums of columns": lambda: (lambda x: x.sum(0), (rand(16384, 4096),)),
        "mean and variance": lambda: (lambda x: torch.var_mean(x, -1), (rand(8192, 4097),)),
        "sum of all": lambda: (lambda x: (x * x).sum(), (rand(1 << 25),)),
        "transposed sum": lambda: (lambda x, y: x.t() + y, (rand(4096, 4096), rand(4096, 4096))),
        "permuted": lambda: (lambda x: x.permute(0, 2, 3, 1).contiguous() * 2, (rand(32, 64, 112, 112),)),
        "embedding": lambda: (
            lambda w, i: F.embedding(i, w) * 1.5,
            (rand(50000, 1024, dtype=bf16), torch.randint(0, 50000, (32768,), device="cuda")),
        ),
        "picked and scaled": lambda: (
            lambda x, i: x.gather(1, i).exp(), (rand(8192, 4096), torch.randint(0, 4096, (8192, 512), device="cuda")),
        ),
        "average pool": lambda: (lambda x: F.avg_pool2d(x, 2), (rand(64, 64, 112, 112),)),
        "greatest of pools": lambda: (lambda x: F.max_pool2d(x, 3, 2, 1), (rand(32, 64, 112, 112),)),
        "nearest": lambda: (lambda x: F.interpolate(x, scale_factor=2.0), (rand(16, 64, 64, 64),)),
        "running sum": lambda: (lambda x: x.cumsum(-1), (rand(8192, 2048),)),
        "greatest and where": lambda: (lambda x: x.max(-1), (rand(8192, 4096),)),
        "normalized": lambda: (lambda x: F.normalize(x, dim=-1), (rand(65536, 128, dtype=half),)),
        "small": lambda: (lambda x, y: torch.relu(x) * y, (rand(64, 1000), rand(64, 1000))),
        "dropped out": lambda: (lambda x: F.dropout(x, 0.1, True) + x, (rand(1 << 24),)),
    }  # fmt: skip


def _inductor(wanted: Callable[[str], bool]) -> Iterator[Case]:
    """Kernels in the order in which PyTorch launches them, with the arguments that it launches them with."""
    import os

    import weft.compat

    weft.compat.install()
    os.environ["TORCHINDUCTOR_COMPILE_THREADS"] = "1"
    os.environ["TORCHINDUCTOR_FORCE_DISABLE_CACHES"] = "1"
    import torch
    from torch._inductor.runtime.triton_heuristics import CachingAutotuner

    launched: list[Case] = []
    graph = ""

    def precompile(tuner: Any, *_args: Any, **_kwargs: Any) -> None:
        """Nothing: launches compile."""

    def run(tuner: Any, *args: Any, stream: Any = None, **_kwargs: Any) -> None:
        config = tuner.configs[0]
        args, grid = tuner._interpret_args_grid(args, config)
        more = {**config.kwargs, "num_warps": config.num_warps, "num_stages": config.num_stages}
        tuner.fn[grid](*args, **more)
        launched.append(Case(f"inductor: {graph}, {len(launched)}", tuner.fn, grid, tuple(args), more))

    CachingAutotuner.precompile, CachingAutotuner.run = precompile, run
    for graph, make in _graphs().items():
        if not wanted(f"inductor: {graph}, 0"):
            continue
        torch._dynamo.reset()
        launched.clear()
        try:
            work, args = make()
            torch.compile(work)(*args)
        except Exception as error:
            print(f"inductor: {graph}: {type(error).__name__}: {str(error).strip()[:300]}", flush=True)
        yield from list(launched)
