"""The functions written in the language, under the name of the module that has them in Triton's Gluon."""

from __future__ import annotations

from weft.language.sorting import sort_impl as sort_impl
from weft.language.standard import *
from weft.language.standard import squeeze as squeeze
from weft.language.standard import unsqueeze as unsqueeze

from .core import full_like as full_like
from .core import zeros as zeros  # type: ignore[assignment]
from .core import zeros_like as zeros_like  # type: ignore[assignment]
