"""triton._C.libtriton.nvidia: products by NVIDIA's library, which Triton's tutorials compare with."""

from __future__ import annotations

import importlib
from types import SimpleNamespace
from typing import Any


class CublasLt:
    """Products of matrices of PyTorch on a GPU by cuBLAS, as PyTorch calls it; it has a workspace of its own."""

    def __init__(self, workspace: Any = None) -> None:
        self._torch = importlib.import_module("torch")

    def _product(self, a: Any, b: Any) -> Any:
        """a @ b.T; elements of 8 bits are multiplied into float16."""
        if a.element_size() > 1:
            return a @ b.T
        one = self._torch.ones((), device=a.device)
        return self._torch._scaled_mm(a, b.T, scale_a=one, scale_b=one, out_dtype=self._torch.float16)

    def matmul(self, a: Any, b: Any, c: Any) -> None:
        """c = a @ b.T"""
        c.copy_(self._product(a, b))

    def gemm(self, a: Any, b: Any, c: Any, d: Any, alpha: float, beta: float) -> None:
        """d = alpha * a @ b.T + beta * c"""
        d.copy_(alpha * self._product(a, b) + beta * c)


cublas = SimpleNamespace(CublasLt=CublasLt)
