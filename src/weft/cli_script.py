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

from weft import compat

__all__ = ["parsed", "run_watched"]


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


def run_watched(watched: Any, options: argparse.Namespace, command: str) -> None:
    """Run the script of a command within a `with` that watches its launches.

    What the script prints goes to stderr. As nothing is computed, checks at its end may fail: that is said, and is an
    error only if nothing was launched before.
    """
    sys.stdout, shown = sys.stderr, sys.stdout
    try:
        with watched:
            compat.run_script([options.script, *options.arguments])
    except SystemExit:
        pass
    except Exception as error:
        if not watched.number:
            raise
        what = f"{type(error).__name__}: {error}".splitlines()[0]
        print(f"weft {command}: the script ended with {what}; no kernel has computed anything", file=sys.stderr)
    finally:
        sys.stdout = shown


def _options(parser: argparse.ArgumentParser) -> list[str]:
    """The options of a parser and its commands."""
    found = list(parser._option_string_actions)
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            found += [name for each in action.choices.values() for name in _options(each)]
    return [name for name in found if name.startswith("--")]
