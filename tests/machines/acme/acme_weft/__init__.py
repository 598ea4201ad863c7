"""A vendor of GPUs that Weft knows nothing of: 16 lanes, a matrix instruction, the host's instruction set.

What it needs is written as `weft.backends.gpu.Dialect` and `weft.compiler.backends` want it; nothing of another vendor
is imported. It is tried as a package that joins by its entry point, and as folders in a copy of the tree.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from weft.backends.gpu import emit_llvm, emitted_of
from weft.compiler.gpu_kernels import GPUKernel
from weft.machines import Machine

from .dialect import Dialect
from .driver import Driver
from .host import Loaded
from .rows import ROWS

__all__ = ["BACKEND"]


class Backend:
    """See `weft.compiler.backends.Backend`."""

    machines: tuple[Machine, ...] = ROWS
    texts = shown = ("llir",)
    codes: tuple[str, ...] = ()
    binary, in_worker, small_arrays = "", False, 0
    parts: Mapping[str, str] = {"targets": "acme_weft.instructions"}
    driver, kernel = Driver(), GPUKernel

    def options(self, given: Mapping[str, Any]) -> dict[str, Any]:
        return {}

    def begin(self, machine: Machine) -> None:
        """Nothing takes long."""

    def tell(self, module: Any, given: Mapping[str, Any]) -> None:
        """No pass asks for an option."""

    def make(self, program: Any, language: Any, given: Any, timings: Any) -> tuple[dict[str, Any], dict[str, str]]:
        dialect: Any = Dialect(program)
        llir = emit_llvm(program, dialect, language.enable_fp_fusion, lines=False)
        return emitted_of(program, dialect, llir, llir).metadata, {"llir": llir}

    def tool(self, name: str) -> Any:
        return None

    def load(self, kernel: Any) -> Loaded:
        return Loaded(kernel.asm["llir"], kernel.metadata._asdict())


BACKEND = Backend()
