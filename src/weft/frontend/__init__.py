"""From Python to tile IR: the one room that knows Python's syntax trees.

    entry        ast_to_ttir: parameters, the function, the module
    frame        a function being traced; the tables of what each kind of syntax means
    expressions, calls, statements, branches, loops      those meanings
    returns      early returns as structured control flow
    places               where in a function Triton says that an error is
    names, arguments, values, unsupported, failures      names, calls, values, and what is said when they are wrong

A kernel is traced, not translated: its body is run once on values of the language, which emit operations as they are
combined; what is known at compile time folds on the way, and functions it calls are traced in their place.
"""

from typing import TYPE_CHECKING

from weft.base import lazy_face

if TYPE_CHECKING:
    from .entry import ast_to_ttir
    from .places import place_in_function

__all__ = ["ast_to_ttir", "place_in_function"]

__getattr__ = lazy_face(__name__, {"entry": "ast_to_ttir", "places": "place_in_function"})
