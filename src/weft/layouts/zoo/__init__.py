"""Named layouts: the classes of Gluon, each of which stands for a LinearLayout for every shape of a tile."""

from weft.base import publish as _publish

from .amd import *
from .base import *
from .blocked import *
from .cga import make_cga_layout as make_cga_layout
from .dot import *
from .examples import example as example
from .intel import *
from .nvidia import *
from .scales import *
from .shared import *
from .tensor_memory import *

_publish(globals())
