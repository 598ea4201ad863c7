"""`weft run`: a script or a module written for Triton, as it stands.

weft run script.py args...
weft run -m module args...
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from weft import compat

__all__ = ["main", "parser"]


def parser(name: str = "run") -> argparse.ArgumentParser:
    """What the command takes; the script's own arguments are not looked at."""
    shown = argparse.ArgumentParser(
        "weft run",
        usage="weft run script.py [args...]\n       weft run -m module [args...]",
        description="Run a script or a module written for Triton, unchanged: `import triton` finds Weft.",
    )
    shown.add_argument("script", help="a Python file")
    return shown


def main(arguments: Sequence[str]) -> int:
    """Run a script to its end; the exit code, if it gives none itself."""
    module = arguments[:1] == ["-m"]
    rest = arguments[1:] if module else arguments
    if arguments[:1] in (["-h"], ["--help"]):
        parser().print_help()
        return 0
    if not rest:
        parser().print_usage(sys.stderr)
        return 2
    if not module and not os.path.exists(rest[0]):
        print(f"weft run: there is no file {rest[0]}", file=sys.stderr)
        return 2
    if module and not compat.module_exists(rest[0]):
        print(f"weft run: there is no module {rest[0]}", file=sys.stderr)
        return 2
    compat.run_script(rest, module=module)
    return 0
