"""`import weft.remarks`: what the compiler decided about a kernel, as in `weft.base.remarks`, where it is written."""

from .base.faces import publish as _publish
from .base.remarks import *  # noqa: F403

_publish(globals())
