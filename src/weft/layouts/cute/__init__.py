"""CuTe layouts: `Shape:Stride` with nested modes, `Swizzle<B,M,S>` and compositions, read and written.

A CuTe layout is a function from coordinates to an offset: it adds up coordinate times stride over all modes, the first
mode of a nested one being the fastest (coordinates are colexicographic). A composed one applies a swizzle, or another
layout, to that offset.

    >>> from_cute("(8,(4,2)):(4,(1,32))").bases
    {'dim0': ((4,), (8,), (16,)), 'dim1': ((1,), (2,), (32,))}
    >>> from_cute("Sw<3,4,3> o smem_ptr[16b](unset) o (_8,_64):(_64,_1)").apply(dim0=1, dim1=0)
    {'offset': 72}
    >>> to_cute(from_cute("Swizzle<2,0,3> o 0 o (8,8):(8,1)"))
    'Swizzle<2,0,3> o 0 o (8,8):(8,1)'

Which of them are linear over F2 is decided exactly (affine.py); a message says where one is not. The texts are those
that CuTe prints in C++ and in Python, and those of pycute and tensor-layouts (text.py).

Layouts here go from coordinates to offsets. A SharedLayout goes the other way: `to_linear(shape).invert()` is what
`to_cute` takes, and `cute_memory` what a CuTe layout is as a layout of memory, padded ones included.

    layout    the functions themselves: swizzles, Shape:Stride, compositions
    affine    the linear or affine map that one is, or why it is none
    memory    a CuTe layout as a layout of shared memory: linear, or with padding
    text      reading
    written   the CuTe layout that a linear map is

C. Cecka, CuTe Layout Representation and Algebra, arXiv 2603.02298; NVIDIA, CUTLASS, cute/swizzle.hpp (definition).
"""

from .layout import *
from .memory import *
from .text import *
from .written import *
