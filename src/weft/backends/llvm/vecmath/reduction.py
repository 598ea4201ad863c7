"""Taking the multiples of pi/2 out of an argument, however large: x = n pi/2 + r with |r| <= pi/4.

Usual arguments: Cody and Waite's subtraction in three parts, made exact by fma. Large ones: Payne and Hanek (Muller, Elementary
Functions, chapter 11). With x = m 2^q, m an integer, only the bits of 2/pi around place q matter: those far above give multiples of
four quarter turns, those far below nothing. A window of 192 bits leaves, in the worst case for doubles (61 bits cancel), more than
64 good bits of r.
"""

from __future__ import annotations

from ..emit import Type, Value, mangle, vec
from . import dd
from .expr import X, constant_table, fabs, fma, rarely, where

_FLOAT_PARTS = (1.5707962512969971, 7.5497894158615964e-08, 5.390302953474239e-15)
_DOUBLE_PARTS = (1.5707963267341256, 6.077100506303966e-11, 2.0222662487959506e-21)
FLOAT_LIMIT = 100000.0
DOUBLE_LIMIT = 1000000.0
PI_HALF = (1.5707963267948966, 6.123233995736766e-17)
_TWO_OVER_PI = 0.6366197723675814

TWO_OVER_PI_BITS = (
)
