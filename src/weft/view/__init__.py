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

from .expressions import as_linear, evaluate, parse_layout, placed
from .grid import Cell, Grid, hardware_grid, matrix_grid, tile_grid
from .natural import name_of, natural_shape
from .page import PageLayout, render_page
from .pictures import VIEWS, grid_of, register, side_by_side, to_html, to_svg
from .steps import Step, plan_steps
from .svg import render_svg
from .terminal import render_text

__all__ = [
    # layouts as they are written
    "as_linear",
    "evaluate",
    "name_of",
    "natural_shape",
    "parse_layout",
    "placed",
    # pictures as grids of cells
    "Cell",
    "Grid",
    "VIEWS",
    "grid_of",
    "hardware_grid",
    "matrix_grid",
    "tile_grid",
    # drawing them
    "PageLayout",
    "render_page",
    "render_svg",
    "render_text",
    "side_by_side",
    "to_html",
    "to_svg",
    # plans, step by step
    "Step",
    "plan_steps",
    # notebooks
    "register",
]

register()
