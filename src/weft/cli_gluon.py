"""`weft to-gluon`: the kernels that a script launches as Gluon source, without a GPU.

weft to-gluon script.py [args...]                        print the source of each
weft to-gluon -k softmax --target cuda:80 script.py
weft to-gluon -k softmax -o softmax_80.py script.py      write a file; where there are several, one for each
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from weft.cli_script import parsed, run_watched
from weft.runtime.handing_over import Launches

__all__ = ["main", "parser"]


def parser(name: str = "to-gluon") -> argparse.ArgumentParser:
    """What the command takes."""
    shown = argparse.ArgumentParser(
        "weft to-gluon", description="Write the kernels that a script launches as Gluon source.", allow_abbrev=False
    )
    shown.add_argument("-k", dest="name", help="only kernels whose name contains this")
    shown.add_argument("--target", default="cuda:90", help="a GPU (default: cuda:90)")
    shown.add_argument(
        "-o", dest="output", type=Path, metavar="FILE", help="write to a file instead of standard output"
    )
    shown.add_argument("--json", action="store_true", help="print JSON: the name and the source of each kernel")
    shown.add_argument("script", help="a script")
    return shown


def main(argv: Sequence[str]) -> int:
    """Write what a script launches; the exit code."""
    options: Any = parsed(parser(), argv)
    if not Path(options.script).exists():
        print(f"weft to-gluon: there is no file {options.script}", file=sys.stderr)
        return 2
    launches = Launches(options.target, options.name)
    run_watched(launches, options, "to-gluon")
    sources = list(launches.sources.values())
    if options.json:
        print(json.dumps([{"kernel": source.name, "source": source.text} for source in sources], indent=1))
    for i, source in enumerate(sources):
        if options.output is None:
            if options.json:
                continue
            print(source)
            continue
        path = options.output.with_stem(f"{options.output.stem}-{i + 1}") if i else options.output
        source.save(path)
        print(f"{path} written", file=sys.stderr)
    if not sources:
        print(f"weft to-gluon: no kernel {'of that name ' if options.name else ''}was launched", file=sys.stderr)
    return 0 if sources else 1
