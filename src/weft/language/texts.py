"""The source of functions that stand in no file: given by `python -c`, by `exec`, or on standard input.

Python keeps such a text in `linecache` in some cases (3.13 does for `-c`). Where it does not, the text may still be at
hand: among the arguments of the process, in a file that is standard input, in a variable of the function that called
`exec`, or in a file that it names. A text is taken for the source only if compiling it gives the very code of the
function.

>>> text = "def double(x):\\n    return x + x\\n"
>>> space = {}
>>> exec(text, space)
>>> source_lines(space["double"].__code__)
['def double(x):\\n', '    return x + x\\n']
"""

from __future__ import annotations
import __future__

import os
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator
from types import CodeType
from typing import Any, TypeGuard

MOST_FRAMES = 64
"""How many callers are asked for a text, the innermost first."""
read: list[Callable[[str], str | None]] = [lambda name: None]
"""Gives the text of a file, or None; of standard input for the name "". Set by `weft.runtime`, which may read files."""
_FUTURES = 0
for _name in __future__.all_feature_names:
    _FUTURES |= getattr(__future__, _name).compiler_flag


def source_lines(code: CodeType) -> list[str]:
    """The lines of the text that the code of a function was compiled from; none where it is not at hand."""
    for text in _candidates(code):
        if f"def {code.co_name}" in text and _compiles_to(text, code):
            return text.splitlines(keepends=True)
    return []


def _compiles_to(text: str, code: CodeType) -> bool:
    """Whether a text, compiled, contains the code."""
    try:
        module = compile(text, code.co_filename, "exec", code.co_flags & _FUTURES, dont_inherit=True)
    except (SyntaxError, ValueError):
        return False
    left = [module]
    while left:
        inner = [each for each in left.pop().co_consts if isinstance(each, CodeType)]
        if code in inner:
            return True
        left += inner
    return False


def _candidates(code: CodeType) -> Iterator[str]:
    """Texts that may be the source, the likeliest first."""
    if code.co_filename == "<string>":
        for text in _given_by_option():
            yield text
            yield textwrap.dedent(text)  # Python 3.14 does so
    if code.co_filename == "<stdin>":
        yield read[0]("") or ""
    frame = sys._getframe(1)
    for _ in range(MOST_FRAMES):
        values = [*frame.f_locals.values(), *frame.f_code.co_consts]
        yield from _texts(values)
        for name in filter(_may_name_a_file, values):  # exec(open("k.py").read())
            yield read[0](os.fspath(name)) or ""
        if frame.f_back is None:
            return
        frame = frame.f_back


def _may_name_a_file(value: Any) -> TypeGuard[str | os.PathLike[str]]:
    """Is it a name of Python source, or a path?"""
    return isinstance(value, os.PathLike) or (isinstance(value, str) and value.endswith((".py", ".txt")))


def _given_by_option() -> Iterator[str]:
    """The text behind `-c` among the arguments of the process; options before it may stand together, as in `-Ic`."""
    arguments = sys.orig_argv[1:]
    for at, argument in enumerate(arguments):
        if argument in ("-m", "-") or not argument.startswith("-"):
            return
        if not argument.startswith("--") and "c" in argument:
            text = argument.partition("c")[2]
            yield text or "".join(arguments[at + 1 : at + 2])
            return


def _texts(values: Iterable[object], deep: bool = True) -> Iterator[str]:
    """The texts among values, and among the parts of lists, dictionaries and objects that hold some."""
    for value in values:
        if isinstance(value, str):
            yield value
        elif deep and isinstance(value, (list, tuple)):
            yield from _texts(value, deep=False)
        elif deep and isinstance(value, dict):
            yield from _texts(list(value.values()), deep=False)
        elif deep and isinstance(getattr(value, "__dict__", None), dict):
            yield from _texts(list(value.__dict__.values()), deep=False)
