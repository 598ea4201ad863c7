"""The command line: `weft ...`, or `python -m weft ...`. `weft` alone lists what there is, by task.

A command is a module with `parser(name)` and `main(arguments)`, loaded when it is asked for: layouts need no compiler,
and kernels no pictures.
"""

from __future__ import annotations

import difflib
import os
import sys
from collections.abc import Sequence
from importlib import metadata
from typing import Any, NamedTuple

from weft.base import WeftError, load

__all__ = ["COMMANDS", "GROUPS", "main", "module_of"]


class Command(NamedTuple):
    """Where a command is, and what it is for."""

    module: str
    help: str
    reports: bool = True
    """Whether errors are told here; a user's script has its own tracebacks."""


GROUPS: dict[str, dict[str, Command]] = {
    "Start": {
        "demo": Command("cli_demo", "run, check and time examples on this machine", reports=False),
        "run": Command("cli_run", "run a script written for Triton, unchanged", reports=False),
        "doctor": Command("cli_doctor", "report what Weft finds on this machine, what is missing, and what to do"),
    },
    "Is it right": {
        "check": Command("cli_check", "check an untrusted kernel file against a reference"),
    },
    "Why is it slow": {
        "explain": Command("cli_explain", "explain the kernels that a script launches, without a GPU"),
        "diff": Command("cli_explain", "show how two explanations differ"),
        "calibrate": Command("cli_calibrate", "measure this CPU, so that explanations for it predict times"),
        "tune": Command("cli_tune", "rank the configurations of a script's tuned kernels, without a GPU"),
    },
    "Layouts": {
        "layout": Command("cli_layout", "draw layouts, plan conversions, count bank conflicts"),
        "bench": Command("cli_bench", "recompute published results about layouts"),
    },
    "Go on in Gluon": {
        "to-gluon": Command("cli_gluon", "write the kernels that a script launches as Gluon source"),
    },
    "Housekeeping": {
        "cache": Command("cli_cache", "list, check and empty the cache of compiled kernels"),
        "info": Command("cli_info", "print versions, this machine, and every setting"),
        "completions": Command("cli_completions", "print a completion script for bash, zsh or fish"),
    },
}
COMMANDS = {name: command for group in GROUPS.values() for name, command in group.items()}


def module_of(name: str) -> Any:
    """The module of a command, with its `parser` and `main`."""
    return load(f"weft.{COMMANDS[name].module}")


def _help() -> str:
    """All commands, by what a user wants to do."""
    lines = [
        "Compile, run, check and explain Triton kernels on the machine you have.",
        "",
        "usage: weft COMMAND ...        weft COMMAND --help        weft --version",
    ]
    for title, commands in GROUPS.items():
        lines += ["", f"{title}:", *(f"  {name:<12} {command.help}" for name, command in commands.items())]
    lines += ["", "Begin with `weft demo`. Commands that print facts take --json."]
    return "\n".join(lines)


def main(argv: Sequence[str] | None = None) -> int:
    """Do what the command line says; the exit code. A reader who has seen enough, as `head`, is no error."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    first = arguments[0] if arguments else "--help"
    try:
        try:
            return _run(first, arguments[1:])
        finally:  # of `--help`, too, which ends the process
            sys.stdout.flush()
    except BrokenPipeError:
        if first == "run":  # the user's script may do with it what it wants
            raise
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


def _run(first: str, rest: list[str]) -> int:
    """Run a command, or print what there is. Errors are a line or two on stderr, and exit code 2."""
    if first in ("-h", "--help", "help"):
        print(_help())
        return 0
    if first == "--version":
        print(f"weft {metadata.version('weft')}")
        return 0
    if first not in COMMANDS:
        near = difflib.get_close_matches(first, COMMANDS, 1, 0.5)
        hint = f"did you mean `weft {near[0]}`? " if near else ""
        print(f"weft: there is no command {first!r}; {hint}`weft` lists them", file=sys.stderr)
        return 2
    command = COMMANDS[first]
    module = module_of(first)
    words = [first, *rest] if command.module == "cli_explain" else rest
    try:
        code: int = module.main(words)
    except BrokenPipeError:
        raise
    except (WeftError, OSError) as error:
        if not command.reports:
            raise
        text = str(error)
        print(text if text.startswith("error:") else f"error: {text}", file=sys.stderr)
        return 2
    return code


if __name__ == "__main__":
    raise SystemExit(main())
