"""`weft check`: a kernel file against a reference, without a GPU and without trust in the file.

weft check kernel.py --reference reference.py
weft check kernel.py --reference reference.py --json            for graders and agents
weft check kernel.py --reference reference.py --target cuda:80 --seeds 5 --seconds 30 --memory 2G

Exit codes: 0 right, 1 wrong, 2 the command or the reference is at fault, 3 the file failed.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from weft.base import WeftError
from weft.checking import Limits, Settings, Verdict, check
from weft.cli_sizes import read

__all__ = ["main", "parser"]


def parser(name: str = "check") -> argparse.ArgumentParser:
    """What the command takes."""
    defaults = Settings()
    shown = argparse.ArgumentParser(
        "weft check",
        description="Check an untrusted kernel file against a reference, without a GPU.",
    )
    shown.add_argument("kernel", help="a file with `run(*inputs)`, which launches kernels and returns arrays")
    shown.add_argument("--reference", required=True, help="a file with `inputs(seed)` and `reference(*inputs)`")
    shown.add_argument("--json", action="store_true", help="print the verdict as JSON")
    shown.add_argument("--target", default=defaults.target, help=f"the GPU to simulate (default: {defaults.target})")
    shown.add_argument(
        "--seeds", type=_count, default=defaults.seeds, help=f"how many inputs to try (default: {defaults.seeds})"
    )
    shown.add_argument("--seconds", type=float, default=60, help="time limit of each process (default: 60)")
    shown.add_argument("--memory", type=read, default=4 << 30, help="memory limit of each process (default: 4G)")
    shown.add_argument(
        "--allow",
        action="append",
        default=[],
        metavar="FOLDER",
        help="a folder that the kernel file may read; can be repeated",
    )
    return shown


def _count(text: str) -> int:
    if not text.isdecimal() or not int(text):
        raise argparse.ArgumentTypeError(f"a number from 1 on is needed, got {text!r}")
    return int(text)


def main(arguments: Sequence[str]) -> int:
    """Do what comes after `weft check`; the exit code."""
    options: Any = parser().parse_args(arguments)
    folders = tuple(os.path.abspath(folder) for folder in options.allow)
    settings = Settings(options.seeds, options.target, Limits(options.seconds, options.memory), folders)
    try:
        verdict = check(options.kernel, options.reference, settings)
    except (WeftError, OSError) as error:
        text = str(error)
        print(text if text.startswith("error:") else f"error: {text}", file=sys.stderr)
        return 2
    if options.json:
        print(json.dumps(verdict.to_dict(), indent=1))
    else:
        print(_text(verdict, Path(options.kernel).name))
    return verdict.code


def _text(verdict: Verdict, name: str) -> str:
    """The verdict for people."""
    lines = [f"{name}: {verdict.kind}", *(f"  {reason}" for reason in verdict.reasons)]
    if verdict.cpu:
        right = sum(all(output["ok"] for output in row["outputs"]) for row in verdict.cpu)
        errors = [output["error"] for row in verdict.cpu for output in row["outputs"]]
        worst = f", largest error {max(errors):.2g} times the tolerance" if None not in errors and errors else ""
        lines.append(f"  CPU        {right} of {len(verdict.cpu)} inputs right{worst}")
    if verdict.simulator:
        found = verdict.simulator["errors"]
        told = _number(len(found), "error") if found else "no race, no access out of bounds"
        lines.append(
            f"  simulator  {verdict.simulator['target']}: {_number(verdict.simulator['launches'], 'launch')}, {told}"
        )
    if verdict.predicted:
        lines += _times(verdict.predicted)
    return "\n".join(lines)


def _times(predicted: dict[str, Any]) -> list[str]:
    total = predicted["microseconds"]
    told = f"{total:.2f} us" if total is not None else "no time"
    lines = [f"  predicted  {told} on {predicted['target']}"]
    for launch in predicted["launches"]:
        grid = ", ".join(map(str, launch["grid"]))
        time = launch["microseconds"]
        what = f"{time:.2f} us, bound by {launch['bound']}" if time is not None else launch["note"]
        lines.append(f"    {launch['kernel']}[{grid}]: {what}")
        lines += [f"      {f['place'] or ''} {f['code']}: {f['what']}; fix: {f['fix']}" for f in launch["findings"]]
    return lines


def _number(count: int, what: str) -> str:
    """A number with its noun.

    >>> _number(1, "launch"), _number(2, "launch"), _number(2, "error")
    ('1 launch', '2 launches', '2 errors')
    """
    return f"{count} {what}" if count == 1 else f"{count} {what}{'es' if what.endswith('ch') else 's'}"
