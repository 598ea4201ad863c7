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

from weft.base import publish as _publish

from .expressions import as_linear as as_linear
from .expressions import evaluate as evaluate
from .expressions import parse_layout as parse_layout
from .expressions import placed as placed
from .grid import Cell as Cell
from .grid import Grid as Grid
from .grid import hardware_grid as hardware_grid
from .grid import matrix_grid as matrix_grid
from .grid import tile_grid as tile_grid
from .natural import *
from .page import *
from .pictures import VIEWS as VIEWS
from .pictures import grid_of as grid_of
from .pictures import register as register
from .pictures import side_by_side as side_by_side
from .pictures import to_html as to_html
from .pictures import to_svg as to_svg
from .steps import *
from .svg import *
from .terminal import *

_publish(globals())

register()
