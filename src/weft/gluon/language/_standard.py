"""The functions written in the language, under the name of the module that has them in Triton's Gluon."""

from __future__ import annotations

from weft.language.standard import *  # noqa: F403

from .core import full_like as full_like
from .core import zeros as zeros  # type: ignore[assignment]
from .core import zeros_like as zeros_like  # type: ignore[assignment]
