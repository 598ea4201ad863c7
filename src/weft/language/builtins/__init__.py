"""The builtins of the language by family, and as a face what the Triton language and Gluon have in common.

A public name stands in the `__all__` of the file that defines it; faces gather files, they do not repeat the names.
The functions of numbers are in `weft.language.math`, what is written in terms of builtins in `weft.language.standard`.
"""

from weft.base import publish as _publish

from ..constants import constexpr as constexpr, constexpr_type as constexpr_type
from ..dtypes import *
from ..tensors import tensor as tensor
from ..tuples import tuple as tuple
from .arithmetic import *
from .collectives import *
from .control import *
from .external import *
from .hints import *
from .memory import *
from .shapes import *

_publish(globals())
