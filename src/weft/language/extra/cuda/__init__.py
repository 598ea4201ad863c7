"""What NVIDIA GPUs have: `libdevice` works everywhere, the rest only there."""

from weft.base import publish as _publish

from . import libdevice as libdevice
from .functions import *

_publish(globals(), modules="libdevice")
