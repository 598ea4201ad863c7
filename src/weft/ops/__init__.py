"""What an operation and an element type are, once each, for everyone who reads them.

`elements` is the table of element types.
"""

from .elements import BY_LANGUAGE, ELEMENTS, Element

__all__ = ["BY_LANGUAGE", "ELEMENTS", "Element"]
