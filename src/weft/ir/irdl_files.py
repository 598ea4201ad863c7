"""What xDSL does to Python's imports, undone where it goes too far.

xDSL can import dialects from `.irdl` files: it adds a finder for them to `sys.meta_path`, which is asked for every
module that is not found otherwise, and looks for top-level ones in the current directory, whatever `sys.path` says. So
a file `msvcrt.irdl` of a stranger is run, and in a directory that was removed `try: import x` raises FileNotFoundError.
Inside of packages the finder stays as it is.

>>> keep_to_packages()
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from xdsl.utils.dialect_loader import IRDLDialectFinder


class _Packages:
    """A finder that is asked for what is in packages only."""

    def __init__(self, finder: IRDLDialectFinder) -> None:
        self._finder = finder

    def find_spec(self, fullname: str, path: Sequence[str] | None, target: Any = None) -> Any:
        """Where a module is, if a package has it as `.irdl` file."""
        return None if path is None else self._finder.find_spec(fullname, path, target)


def keep_to_packages() -> None:
    """Have xDSL look for `.irdl` files in packages, and not in the current directory."""
    sys.meta_path[:] = [_Packages(f) if isinstance(f, IRDLDialectFinder) else f for f in sys.meta_path]
