"""Command lines with a script, `weft explain script.py --html e.html --epochs 3`: whose is which option.

Options of the command are taken wherever they are, before or after the script; what it does not know and everything
behind `--` is the script's.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from difflib import get_close_matches
from typing import Any

__all__ = ["parsed"]


def parsed(parser: argparse.ArgumentParser, argv: Sequence[str]) -> Any:
    """The options of a parser with a positional argument `script`; those of the script are `arguments`.

    >>> parser = argparse.ArgumentParser(allow_abbrev=False)
    >>> action = parser.add_argument("--html")
    >>> action = parser.add_argument("script")
    >>> parsed(parser, ["train.py", "--epochs", "3", "--html", "e.html", "--", "--html", "theirs.html"])
    Namespace(html='e.html', script='train.py', arguments=['--epochs', '3', '--html', 'theirs.html'])
    """
    cut = list(argv).index("--") if "--" in argv else len(argv)
    options, rest = parser.parse_known_args(argv[:cut])
    script = getattr(options, "script", None)
    if script is None:  # a command without one
        if rest:
            parser.error(f"unrecognized arguments: {' '.join(rest)}")
        return options
    before = [word for word in argv[: list(argv).index(script)] if word in rest]
    if before:
        parser.error(f"unrecognized arguments: {' '.join(before)}")
    options.arguments = [*rest, *argv[cut + 1 :]]
    for word in rest:
        near = get_close_matches(word, _options(parser), 1, 0.75) if word.startswith("--") else []
        if near:
            print(f"{parser.prog}: {word} goes to {script}; there is an option {near[0]}", file=sys.stderr)
    return options


def _options(parser: argparse.ArgumentParser) -> list[str]:
    """The options of a parser and its commands."""
    found = list(parser._option_string_actions)
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            found += [name for each in action.choices.values() for name in _options(each)]
    return [name for name in found if name.startswith("--")]
