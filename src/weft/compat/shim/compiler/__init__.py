"""triton.compiler."""

from weft.compiler import CompiledKernel as CompiledKernel
from weft.runtime import errors as errors
from weft.runtime.errors import CompilationError as CompilationError

from . import code_generator as code_generator
from . import compiler as compiler
from .compiler import ASTSource as ASTSource
from .compiler import IRSource as IRSource
from .compiler import LazyDict as LazyDict
from .compiler import compile as compile
from .compiler import make_backend as make_backend
from .compiler import max_shared_mem as max_shared_mem
