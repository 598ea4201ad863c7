"""`gl.fpsan`: floats embedded in a ring of integers by a checker of Triton 3.8; Weft has no such checker.

>>> try:
...     evaluate("gl.fpsan.embed(x)", x=[1.0])
... except weft.CompilationError as error:
...     print(str(error).partition("error: ")[2].splitlines()[0])
fpsan.embed, which is for Triton's floating-point sanitizer, is not supported on target cuda:80
"""

from ..elsewhere import unsupported as _unsupported

__getattr__ = _unsupported(globals(), "fpsan", "Triton's floating-point sanitizer", "embed unembed")
