"""triton.compiler."""

from weft.compiler import CompiledKernel
from weft.runtime import errors
from weft.runtime.errors import CompilationError

from . import code_generator, compiler
from .compiler import ASTSource, IRSource, LazyDict, compile, make_backend, max_shared_mem
