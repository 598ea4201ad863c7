"""triton.compiler."""

from weft.compiler import CompiledKernel as CompiledKernel
from weft.runtime import errors as errors
from weft.runtime.errors import CompilationError as CompilationError

from . import code_generator as code_generator, compiler as compiler
from .compiler import (
    ASTSource as ASTSource,
    IRSource as IRSource,
    LazyDict as LazyDict,
    compile as compile,
    make_backend as make_backend,
    max_shared_mem as max_shared_mem,
)
