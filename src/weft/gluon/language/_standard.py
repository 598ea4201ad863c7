"""The functions written in the language, under the name of the module that has them in Triton's Gluon."""

from weft.language.sorting import sort_impl as sort_impl
from weft.language.standard import *
from weft.language.standard import squeeze as squeeze, unsqueeze as unsqueeze

from .core import full_like as full_like, zeros as zeros, zeros_like as zeros_like  # type: ignore[assignment]
