"""The builtins of the language by family, and as a face what the Triton language and Gluon have in common.

A public name stands in the `__all__` of the file that defines it; faces gather files, they do not repeat the names.
The functions of numbers are in `weft.language.math`, what is written in terms of builtins in `weft.language.standard`.
"""

from typing import TYPE_CHECKING

from weft.base import publish as _publish

from ..annotations import *
from ..constants import constexpr_type as constexpr_type
from ..dtypes import block_type as block_type, dtype as dtype, pointer_type as pointer_type
from ..tensors import tensor as tensor
from ..tuples import tuple as tuple
from .arithmetic import *
from .collectives import *
from .control import *
from .external import *
from .hints import *
from .memory import *
from .shapes import *

if not TYPE_CHECKING:  # which are told by `annotations` that constants and element types are anything
    from ..constants import constexpr as constexpr
    from ..dtypes import *

_publish(globals())
