"""The simulator: runs lane programs on NumPy, whole blocks at a time, counts what they do and checks how they do it.

It judges what the lowering makes, and knows nothing of it.
"""

from weft.base import publish as _publish, shorten_face as _shorten_face

from .control import Uncountable as Uncountable
from .count import *
from .debugger import Stop as Stop, Stops as Stops, debug as debug
from .errors import *
from .launch import last_run as last_run, run as run
from .options import *
from .report import *
from .sliced import *
from .trips import *

_publish(globals())
_shorten_face(globals())
