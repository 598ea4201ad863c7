"""Pictures of layouts: terminal, SVG, notebook, and a page that needs nothing but a browser. Compiles nothing.

>>> from weft.layouts import BlockedLayout
>>> print(render_text(grid_of(BlockedLayout([1, 2], [2, 2], [1, 1], [1, 0]))))
tile dim0 2 x dim1 4
each element: lane:register
<BLANKLINE>
    0   1   2   3
0 0:0 0:1 1:0 1:1
1 2:0 2:1 3:0 3:1
"""

from weft.base import publish as _publish, shorten_face as _shorten_face

from .expressions import as_linear as as_linear, evaluate as evaluate, parse_layout as parse_layout, placed as placed
from .grid import (
    Cell as Cell,
    Grid as Grid,
    hardware_grid as hardware_grid,
    matrix_grid as matrix_grid,
    tile_grid as tile_grid,
)
from .linked import *
from .natural import *
from .page import *
from .pictures import (
    VIEWS as VIEWS,
    grid_of as grid_of,
    register as register,
    side_by_side as side_by_side,
    to_html as to_html,
    to_svg as to_svg,
)
from .printed import *
from .steps import *
from .svg import *
from .terminal import *

_publish(globals())
_shorten_face(globals())

register()
