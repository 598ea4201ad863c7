"""The command line: `python -m weft ...`, or `weft ...`.

weft run script.py args...       a script written for Triton, as it stands
weft run -m module args...
weft demo                        every example, checked and timed
weft cache ls | verify | prune | clear | dir
weft info                        this machine, versions, settings
weft bench layouts               tables of published results, computed here
weft explain script.py           explain the kernels that a script launches, without a GPU
weft tune script.py              rank the configurations of tuned kernels, without a GPU
weft check kernel.py --reference reference.py   right or wrong, races, time: for graders and agents
weft diff a.json b.json          what two explanations differ in
weft to-gluon script.py          the kernels that a script launches as Gluon source
weft layout show | convert | conflicts   pictures of layouts, conversions, bank conflicts

Layouts need no compiler, and kernels no pictures: only what does the command is loaded.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from weft.base import load


def main(argv: Sequence[str] | None = None) -> int:
    """Do what the command line says; the exit code."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    if arguments[:1] == ["layout"]:
        code: int = load("weft.cli_layout").main(arguments[1:])
    elif arguments[:1] in (["explain"], ["diff"]):
        code = load("weft.cli_explain").main(arguments)
    elif arguments[:1] == ["to-gluon"]:
        code = load("weft.cli_gluon").main(arguments[1:])
    elif arguments[:1] == ["check"]:
        code = load("weft.cli_check").main(arguments[1:])
    elif arguments[:1] == ["tune"]:
        code = load("weft.cli_tune").main(arguments[1:])
    else:
        code = load("weft.cli_commands").main(arguments)
    return code


if __name__ == "__main__":
    raise SystemExit(main())
