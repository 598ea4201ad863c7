"""Spans, diagnostics and options: what every other room may use and none may do without."""

from typing import TYPE_CHECKING

from .errors import *
from .faces import lazy_face as lazy_face, load as load, publish as publish
from .frames import shorten as shorten, shorten_face as shorten_face, shortened as shortened, told as told
from .launch_errors import *
from .options import *
from .progress import progress as progress
from .spans import *
from .tables import *
from .warned import *

if TYPE_CHECKING:
    from .graphs import *
    from .remarks import Remarks as Remarks

__getattr__ = lazy_face(__name__, {"graphs": "each_once postorder", "remarks": "Remarks"})  # for compiling
