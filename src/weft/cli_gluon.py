"""`weft to-gluon`: the kernels that a script launches as Gluon source, without a GPU.

weft to-gluon script.py [args...]                        print the source of each
weft to-gluon -k softmax --target cuda:80 script.py
weft to-gluon -k softmax -o softmax_80.py script.py      write a file; where there are several, one for each
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from weft.cli_script import parsed, run_watched
from weft.runtime.handing_over import Launches

__all__ = ["main"]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        "weft to-gluon", description="Kernels as compiled, as Gluon source.", allow_abbrev=False
    )
    parser.add_argument("-k", dest="name", help="only kernels whose name contains this")
    parser.add_argument("--target", default="cuda:90", help="a GPU by its name; cuda:90 if it is not given")
    parser.add_argument("-o", dest="output", type=Path, metavar="FILE", help="write a file")
    parser.add_argument("script", help="a script")
    return parser


def main(argv: Sequence[str]) -> int:
    """Write what a script launches; the exit code."""
    options: Any = parsed(_parser(), argv)
    if not Path(options.script).exists():
        print(f"weft to-gluon: there is no file {options.script}", file=sys.stderr)
        return 2
    launches = Launches(options.target, options.name)
    run_watched(launches, options, "to-gluon")
    sources = list(launches.sources.values())
    for i, source in enumerate(sources):
        if options.output is None:
            print(source)
            continue
        path = options.output.with_stem(f"{options.output.stem}-{i + 1}") if i else options.output
        source.save(path)
        print(f"{path} written", file=sys.stderr)
    if not sources:
        print(f"weft to-gluon: no kernel {'of that name ' if options.name else ''}was launched", file=sys.stderr)
    return 0 if sources else 1
