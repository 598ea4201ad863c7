"""Intel GPUs: SPIR-V of lane programs.

Lane programs become LLVM IR (`SPIRV`), that a module of SPIR-V (`machine`), which is read once more (`module`): calls
that no device knows would else be found at the launch. None of that needs a GPU or a driver.
"""

from typing import TYPE_CHECKING

from weft.base import lazy_face

if TYPE_CHECKING:
    from .dialect import SPIRV
    from .machine import begin, spirv
    from .module import Module, checked
    from .whole_warps import WholeWarps
    from .widening import widened

__all__ = ["SPIRV", "Module", "WholeWarps", "begin", "checked", "spirv", "widened"]

__getattr__ = lazy_face(
    __name__,
    {
        "dialect": "SPIRV",
        "machine": "begin spirv",
        "module": "Module checked",
        "whole_warps": "WholeWarps",
        "widening": "widened",
    },
)
