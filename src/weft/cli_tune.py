"""`weft tune`: the configurations of autotuned kernels ranked by predicted times, without a GPU.

weft tune script.py [args...]                     every tuned kernel that the script launches, once for each key
weft tune --target cuda:90 -k matmul script.py
weft tune -o winners.json script.py               one file of winners; otherwise NAME.tuned.json beside each NAME.py
weft tune --dry script.py                         print the tables, write nothing

The script runs to its end without launching anything. The files may be committed: launches with the same source, the
same configurations, the same key and the same target take the winner and measure nothing.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from weft.base import WeftError
from weft.cli_script import parsed, run_watched
from weft.explain.costs import calibrated
from weft.runtime import ranking, winners

__all__ = ["main", "parser"]

DEFAULT = calibrated()[0]
SHOWN = 5
"""Configurations of each kernel that are shown."""


def parser(name: str = "tune") -> argparse.ArgumentParser:
    """What the command takes."""
    shown = argparse.ArgumentParser(
        "weft tune",
        description="Rank the configurations of tuned kernels by predicted time, without a GPU.",
        allow_abbrev=False,
    )
    shown.add_argument("-k", dest="name", help="only kernels whose name contains this")
    shown.add_argument("--target", default=DEFAULT, help=f"the GPU to predict times for (default: {DEFAULT})")
    shown.add_argument("-o", dest="file", metavar="FILE", help="write all winners to this file")
    shown.add_argument("--dry", action="store_true", help="do not write the winners")
    shown.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes to use (default: all cores)")
    shown.add_argument("--json", action="store_true", help="print every configuration with its time as JSON")
    shown.add_argument("script", help="a script")
    return shown


def _noted(options: Any) -> ranking.Tunings:
    """Run a script, and note what it launches."""
    tunings = ranking.Tunings(options.target, options.name)
    run_watched(tunings, options, "tune")
    return tunings


def _table(case: ranking.Case, rows: Sequence[ranking.Ranked]) -> str:
    """The first configurations, and how many cannot be run."""
    lines = [f"{case.kernel.__name__}, {len(rows)} configurations"]
    for at, row in enumerate(rows[:SHOWN]):
        lines.append(f"  {at + 1}. {row.time}   {row.config}" if row.time is not None else f"  -  {row.problem}")
    if bad := sum(row.time is None for row in rows):
        lines.append(f"  {bad} cannot be run, as: {next(row.problem for row in rows if row.time is None)}")
    return "\n".join(lines)


def _plain(row: ranking.Ranked) -> dict[str, Any]:
    """A configuration as plain data."""
    time = row.time
    times = {"microseconds": time.microseconds, "low": time.low, "high": time.high} if time is not None else {}
    return {"config": str(row.config), **times, "problem": row.problem or None}


def _tune(options: Any) -> int:
    if not Path(options.script).exists():
        print(f"weft tune: there is no file {options.script}", file=sys.stderr)
        return 2
    cases = _noted(options).cases
    told: list[dict[str, Any]] = []
    files: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)
    for case in cases:
        rows = ranking.ranked(case.tuner, case.args, case.grid, case.kwargs, options.target, options.jobs)
        told.append({"kernel": case.kernel.__name__, "key": case.key, "configurations": [_plain(row) for row in rows]})
        if not options.json:
            print(_table(case, rows), flush=True)
        if rows[0].time is not None:
            path = options.file or winners.beside(case.kernel.file_name)
            files[path].append(ranking.entry(case, options.target, rows[0]))
    if options.json:
        print(json.dumps(told, indent=1))
    for path, entries in files.items() if not options.dry else ():
        winners.written(path, entries)
        print(f"{path} written", file=sys.stderr)
    if not cases:
        print(f"weft tune: no tuned kernel {'of that name ' if options.name else ''}was launched", file=sys.stderr)
    return 0 if files else 1


def main(arguments: Sequence[str]) -> int:
    """Do what the command line says; the exit code."""
    options: Any = parsed(parser(), arguments)
    try:
        return _tune(options)
    except BrokenPipeError:  # the reader has seen enough
        raise
    except (WeftError, OSError, ValueError) as error:
        text = str(error)
        print(text if text.startswith("error:") else f"error: {text}", file=sys.stderr)
        return 2
