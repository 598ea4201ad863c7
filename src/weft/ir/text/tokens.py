"""Tokens of MLIR's text, found in one pass, and a cursor over them.

A type such as `tensor<128x!tt.ptr<f32>>` is one token: a kernel names few types very often, and each distinct text is
then read once (see `types`). Positions are kept as offsets and turned into lines and columns only for an error.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NoReturn

from weft.base import CompilationError, Span

MAX_TEXT = 64 << 20
"""Longest text that is read, in characters. Triton's own modules are below one million."""

MAX_DEPTH = 205
"""Deepest nesting of regions, and of brackets in attributes, that is read. Python takes 98 levels of indentation, and
within them chains of branches are up to 100 deep (see `weft.frontend.chains`): compile workers read what was traced."""

# Kinds are single letters, the names of the groups below. Brackets of types nest at most three deep in Triton's text;
# what nests deeper (an encoding) is read from its parts. Atomic groups keep the time linear on hostile text.
_INNER = r"[^<>\"\n]*+(?:<[^<>\"\n]*+(?:<[^<>\"\n]*+(?:<[^<>\"\n]*+>[^<>\"\n]*+)*+>[^<>\"\n]*+)*+>[^<>\"\n]*+)*+"
_TOKEN = re.compile(
    rf"""(?P<w>(?:[ \t\r\n]+|//[^\n]*)+)
    |(?P<v>%(?:[0-9]+|[A-Za-z$._-][\w$.-]*)(?:\#[0-9]+)?)
    |(?P<t>(?:!tt\.ptr|!tt\.tensordesc|!ttng\.tensordesc_im2col|!ttg\.memdesc|tensor)<{_INNER}>)
    |(?P<i>[A-Za-z_][\w$.]*)
    |(?P<n>-?0x[0-9a-fA-F]+|[-+]?[0-9]+\.[0-9]*(?:[eE][-+]?[0-9]+)?|-?[0-9]+)
    |(?P<p>->|::|[(){{}}\[\]<>,:=*?+|/-])
    |(?P<b>\^[\w$.-]+)
    |(?P<s>"(?:[^"\\\n]|\\.)*+")
    |(?P<a>[\#!](?:[0-9]+|[A-Za-z_$][\w$.-]*))
    |(?P<y>@(?:[A-Za-z_][\w$.]*|"(?:[^"\\\n]|\\.)*+"))
    """,
    re.VERBOSE | re.ASCII,
)
_SHOWN = {"v": "value", "t": "type", "i": "word", "n": "number", "b": "block", "s": "string", "y": "symbol, @name"}


class ParseError(CompilationError):
    """The text is not the IR it should be."""


def _span_at(text: str, filename: str, start: int, end: int) -> tuple[Span, str]:
    line = text.count("\n", 0, start) + 1
    begin = text.rfind("\n", 0, start) + 1
    stop = text.find("\n", start)
    stop = len(text) if stop < 0 else stop
    end = min(end, stop)
    shown = text[begin:stop]
    col = len(shown[: start - begin].encode("utf-8", "replace"))
    width = len(text[start:end].encode("utf-8", "replace"))
    return Span(filename, line, col, line, col + max(width, 1)), shown[:2000]


def tokenize(text: str, filename: str) -> tuple[list[str], list[str], list[int]]:
    """The kinds, texts and offsets of all tokens, ended by one of kind `e`."""
    if len(text) > MAX_TEXT:
        raise ParseError(
            f"the text is too long to read: {len(text)} characters, at most {MAX_TEXT} are allowed",
            Span(filename, 1, 0),
            hint="split the module, a kernel in each",
        )
    kinds: list[str] = []
    texts: list[str] = []
    starts: list[int] = []
    at = 0
    for match in _TOKEN.finditer(text):
        start = match.start()
        if start != at:
            break
        at = match.end()
        kind = match.lastgroup
        if kind != "w":
            kinds.append(kind)  # type: ignore[arg-type]
            texts.append(match.group())
            starts.append(start)
    if at != len(text):
        span, line = _span_at(text, filename, at, at + 1)
        hint = "the string that begins here does not end on its line" if text[at] == '"' else None
        hint = (
            hint
            or "remove it: MLIR's text has names, numbers, strings and the marks -> : , = ( ) { } [ ] < > # ! % @ ^"
        )
        raise ParseError(f"unexpected character {text[at]!r}", span, source_line=line, hint=hint)
    kinds.append("e")
    texts.append("")
    starts.append(len(text))
    return kinds, texts, starts


_ESCAPE = re.compile(r"\\(?:([0-9a-fA-F]{2})|(.))", re.ASCII | re.DOTALL)
_LETTERS = {"n": "\n", "t": "\t", "\\": "\\", '"': '"'}


def unescape(quoted: str) -> str:
    r"""The content of a string token: `"a\0Ab"` is a, newline, b. Bytes are UTF-8."""
    body = quoted[1:-1]
    if "\\" not in body:
        return body

    def one(match: re.Match[str]) -> bytes:
        code, letter = match.groups()
        return bytes([int(code, 16)]) if code else _LETTERS.get(letter, letter).encode("utf-8", "surrogateescape")

    out, last = bytearray(), 0
    for match in _ESCAPE.finditer(body):
        out += body[last : match.start()].encode("utf-8", "surrogateescape") + one(match)
        last = match.end()
    out += body[last:].encode("utf-8", "surrogateescape")
    return out.decode("utf-8", "replace")


class Cursor:
    """A place in a list of tokens, and the ways to step over them."""

    __slots__ = ("at", "depth", "filename", "kinds", "starts", "text", "texts")

    def __init__(self, text: str, filename: str):
        self.text = text
        self.filename = filename
        self.kinds, self.texts, self.starts = tokenize(text, filename)
        self.at = 0
        self.depth = 0

    def fail(self, message: str, at: int | None = None, hint: str | None = None) -> NoReturn:
        """Raise an error that points at the current token, or at the given one."""
        index = self.at if at is None else at
        start = self.starts[index]
        span, line = _span_at(self.text, self.filename, start, start + max(len(self.texts[index]), 1))
        raise ParseError(message, span, source_line=line, hint=hint)

    def line_of(self, at: int) -> int:
        """The line that a token stands on."""
        return self.text.count("\n", 0, self.starts[at]) + 1

    def found(self) -> str:
        """The current token, for a message."""
        kind, text = self.kinds[self.at], self.texts[self.at]
        if kind == "e":
            return "the end of the text"
        return f"'{text[:60]}'"

    def accept(self, text: str) -> bool:
        """Step over this word or mark if it is next."""
        if self.texts[self.at] == text:
            self.at += 1
            return True
        return False

    def expect(self, text: str, where: str = "", hint: str | None = None) -> None:
        """Step over this word or mark, which must be next."""
        if self.texts[self.at] != text or self.kinds[self.at] == "s":
            self.fail(f"expected '{text}'{where}, found {self.found()}", hint=hint)
        self.at += 1

    def items(self, close: str, hint: str | None = None) -> Iterator[int]:
        """For each of the items between commas, up to and with the closing bracket, where it begins."""
        while self.texts[self.at] != close:
            yield self.at
            if not self.accept(","):
                break
        self.expect(close, hint=hint)

    def take(self, kind: str) -> str | None:
        """Step over a token of this kind if it is next, and give its text."""
        if self.kinds[self.at] != kind:
            return None
        self.at += 1
        return self.texts[self.at - 1]

    def need(self, kind: str, where: str = "") -> str:
        """Step over a token of this kind, which must be next, and give its text."""
        if self.kinds[self.at] != kind:
            self.fail(f"expected a {_SHOWN[kind]}{where}, found {self.found()}")
        self.at += 1
        return self.texts[self.at - 1]

    def integer(self, where: str = "") -> int:
        """Step over an integer, which must be next."""
        text = self.need("n", where)
        if len(text) > 40 or "." in text:
            self.at -= 1
            self.fail(f"expected an integer{where}, found {self.found()}")
        return int(text, 16 if "0x" in text else 10)

    def enter(self) -> None:
        """Go one level deeper, or give up where the nesting is too deep."""
        self.depth += 1
        if self.depth > MAX_DEPTH:
            self.fail(
                f"nested too deep: more than {MAX_DEPTH} levels", hint="move the inner ones into a function, tt.call"
            )

    def leave(self) -> None:
        """Come back from a level."""
        self.depth -= 1
