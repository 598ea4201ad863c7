"""What the compiler decided about a kernel, and why: `remark` has what all have in common, the others their kinds."""

from ..faces import publish as _publish
from .barriers import *
from .combining import *
from .layouts import *
from .loops import *
from .memory import *
from .nests import *
from .others import *
from .products import *
from .remark import *

_publish(globals())
