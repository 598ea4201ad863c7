"""`weft completions`: a script for a shell that completes commands, options and their values.

weft completions bash >> ~/.bashrc
weft completions zsh > ~/.zfunc/_weft             # a folder of fpath
weft completions fish > ~/.config/fish/completions/weft.fish

The script is made from the parsers and has all in it: completing runs the shell alone, and imports nothing.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence

from weft.cli import COMMANDS, module_of

__all__ = ["main", "parser", "words"]

SHELLS = ("bash", "zsh", "fish")


def parser(name: str = "completions") -> argparse.ArgumentParser:
    """What the command takes."""
    shown = argparse.ArgumentParser(
        "weft completions", description="Print a script that completes the commands of weft in a shell."
    )
    shown.add_argument("shell", choices=SHELLS)
    return shown


def parsers() -> Iterator[tuple[str, argparse.ArgumentParser]]:
    """The parser of every command and of its commands: ("layout show", ...)."""
    for name in COMMANDS:
        made: argparse.ArgumentParser = module_of(name).parser(name)
        yield name, made
        for action in made._actions:
            if isinstance(action, argparse._SubParsersAction):
                yield from ((f"{name} {each}", below) for each, below in action.choices.items())


def words() -> dict[str, list[str]]:
    """What may follow what was typed: after "" commands, after "layout" its own, after "layout show --bits" sizes."""
    found: dict[str, list[str]] = {"": [*COMMANDS, "--help", "--version"]}
    for path, made in parsers():
        found[path] = []
        for action in made._actions:
            options = [o for o in action.option_strings if o.startswith("--")] or list(action.option_strings)
            found[path] += options
            if action.choices is None:
                continue
            if action.option_strings:
                found |= {f"{path} {option}": list(map(str, action.choices)) for option in action.option_strings}
            else:
                found[path] += map(str, action.choices)
    return found


FOLLOWS = """\
_weft_follows() {
  case "$1" in
%s
    *) return 1 ;;
  esac
}
"""
BASH = """\
_weft() {
  local word words path="" previous="${COMP_WORDS[COMP_CWORD-1]}" current="${COMP_WORDS[COMP_CWORD]}"
  for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    [[ $word != -* ]] && _weft_follows "${path:+$path }$word" > /dev/null && path="${path:+$path }$word"
  done
  words=$([[ $previous == -* ]] && _weft_follows "$path $previous" || _weft_follows "$path")
  COMPREPLY=($(compgen -W "$words" -- "$current"))
}
complete -o default -F _weft weft
"""
ZSH = """\
_weft() {
  local word follow place="" previous="${words[CURRENT-1]}"
  for word in ${words[2,CURRENT-1]}; do
    [[ $word != -* ]] && _weft_follows "${place:+$place }$word" > /dev/null && place="${place:+$place }$word"
  done
  follow=$([[ $previous == -* ]] && _weft_follows "$place $previous" || _weft_follows "$place")
  compadd -- ${=follow}
  _files
}
compdef _weft weft
"""
FISH = """\
function __weft_path
  set -l path
  for word in (commandline -opc)[2..-1]
    if contains -- (string join " " $path $word) %s
      set path $path $word
    end
  end
  string join " " $path
end
%s
"""


def _follows(table: dict[str, list[str]]) -> str:
    """A function of a shell that prints what may follow, and fails for what is no place."""
    return FOLLOWS % "\n".join(f'    "{path}") echo "{" ".join(follow)}" ;;' for path, follow in table.items())


def _bash(table: dict[str, list[str]]) -> str:
    return _follows(table) + BASH


def _zsh(table: dict[str, list[str]]) -> str:
    return "#compdef weft\n" + _follows(table) + ZSH


def _fish(table: dict[str, list[str]]) -> str:
    paths = [path for path in table if path and " -" not in path]
    lines = []
    for path in ["", *paths]:
        asked = f"test (__weft_path | string collect --allow-empty) = '{path}'"
        for word in table[path]:
            if not word.startswith("-"):
                lines.append(f'complete -c weft -n "{asked}" -a {word}')
                continue
            values = table.get(f"{path} {word}")
            follow = f" -x -a '{' '.join(values)}'" if values else ""
            name = f"-l {word[2:]}" if word.startswith("--") else f"-s {word[1:]}"
            lines.append(f'complete -c weft -n "{asked}" {name}{follow}')
    return FISH % (" ".join(f'"{path}"' for path in paths), "\n".join(lines))


def main(arguments: Sequence[str]) -> int:
    """Print the script of a shell."""
    options = parser().parse_args(arguments)
    print({"bash": _bash, "zsh": _zsh, "fish": _fish}[options.shell](words()), end="")
    return 0
