"""What an operation and an element type are, once each, for everyone who reads them.

elements   the table of element types                dtypes     NumPy's types of them
row        what a row of operations says             table      all rows, by name; `compute`, their meaning
integers, floats, casts   the rows and what they mean          rounding   floats to element types

This face has the element types alone: a launch out of the cache needs no more.
"""

from .elements import BY_LANGUAGE, ELEMENTS, Element

__all__ = ["BY_LANGUAGE", "ELEMENTS", "Element"]
