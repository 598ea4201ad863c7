"""Layout IR as Gluon source: the kernel that the compiler made, in the words of `gl`, to be read and taken over.

    made         the way of a kernel to its layout IR, and so to its source: `written(src, target, options)`
    kernel       a file that runs by itself: imports, helper functions, the kernel
    writer       statements in the order of the IR; what is used once stands where it is used
    variables    which values are one variable, as loops and branches change it
    layouts      layouts as named constants
    kinds        element types, with the signs that the IR does not have
    words        a table: what writes an operation
    arithmetic, shapes, memory, combining, control, copies, products, outside
                 the words, one file for a family of operations; those of one vendor are in a folder with its name

What Gluon has no word for is `NoWord`, an error that names the user's line.
"""

from weft.base import publish as _publish

from .kernel import *
from .made import *
from .words import *

_publish(globals())
