"""Layouts as linear maps over F2: the algebra, usable alone by anyone who thinks about layouts.

>>> from weft.layouts import LinearLayout
>>> rows = LinearLayout.identity_1d(4, "register", "dim1") * LinearLayout.identity_1d(8, "lane", "dim0")
>>> rows.apply(register=3, lane=5)
{'dim1': 3, 'dim0': 5}
"""

from weft.base import LayoutError

from .linear import LinearLayout

__all__ = [
    # the algebra
    "LinearLayout",
    "LayoutError",
]
