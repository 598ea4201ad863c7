"""What type checkers are told of `weft.gluon`, whose names come from rooms below it too."""

from weft.language.callable import constexpr_function as constexpr_function
from weft.language.core import _aggregate as aggregate, must_use_result as must_use_result
from weft.runtime.gluon import (
    GluonASTSource as GluonASTSource,
    GluonJITFunction as GluonJITFunction,
    jit as jit,
)

from . import amd as amd, language as language, nvidia as nvidia

__all__ = ["aggregate", "amd", "constexpr_function", "jit", "must_use_result", "nvidia"]
