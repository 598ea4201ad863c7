"""The functions of numbers, under the name of the module that has them in Triton's Gluon."""

from weft.language.math import *
