"""Layouts as linear maps over F2: the algebra, usable alone by anyone who thinks about layouts.

>>> from weft.layouts import LinearLayout
>>> rows = LinearLayout.identity_1d(4, "register", "dim1") * LinearLayout.identity_1d(8, "lane", "dim0")
>>> rows.apply(register=3, lane=5)
{'dim1': 3, 'dim0': 5}
"""

from weft.base import LayoutError as LayoutError, publish as _publish, shorten_face as _shorten_face

from .affine import *
from .conflicts import *
from .corners import *
from .cute import *
from .describe import *
from .dims import coordinates_of as coordinates_of
from .infer import *
from .linear import *
from .pictures import install as _install
from .plan import (
    Cost as Cost,
    Gather as Gather,
    LocalAccess as LocalAccess,
    Machine as Machine,
    Plan as Plan,
    Reduction as Reduction,
    machine_of as machine_of,
    plan_conversion as plan_conversion,
    plan_gather as plan_gather,
    plan_local_access as plan_local_access,
    plan_reduction as plan_reduction,
    vector_width as vector_width,
)
from .printed import *
from .zoo import *

_publish(globals())
_shorten_face(globals())

_install(LinearLayout, AffineLayout, Layout)
