"""For type checkers alone: whatever is taken from here is `Any`, as an annotation, as a value and as a base class.

`Any` itself cannot be called and is refused in some places where a name that a stub leaves open is not.
"""

from typing import Any

def __getattr__(name: str) -> Any: ...
