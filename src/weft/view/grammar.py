"""The grammar of layout expressions: text to a tree, every node with its place in the text.

    expression  = postfix { ( "*" | "@" ) postfix }
    postfix     = primary { "." name | "(" arguments ")" }
    arguments   = [ argument { "," argument } [ "," ] ]       argument = [ name "=" ] expression
    primary     = number | string | name | "[" list "]" | "{" key ":" expression , ... "}" | "(" list ")" | cute | ir
    ir          = "#" name "." name [ "<" ... ">" ], read by weft.ir.gpu.reading
    cute        = what CuTe and its relatives print, see weft/layouts/cute/text.py

It is the part of Python's grammar that Gluon's layouts are written in, with CuTe's notation and the texts of layout IR
beside it. The page has the
same grammar in page/grammar.js. Nothing is ever evaluated by Python itself.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import NoReturn

from weft.base import LayoutError, Span
from weft.layouts import CuteComposed, CuteLayout
from weft.layouts.cute.text import BadText, read_cute, starts_cute

FILE = "<layout>"
LONGEST = 20_000
DEEPEST = 60
WRITTEN = (
    "write BlockedLayout([1, 8], [4, 8], [4, 1], [1, 0]), {'lane': [[0, 1]], 'register': [[1, 0]]} or (4, 8):(8, 1)"
)
"""What an expression is, for hints."""

TOKEN = re.compile(
    r"\s+|#(?![A-Za-z_]\w*\.[A-Za-z_])[^\n]*"
    r"|(?P<ir>#\w+\.\w+)"
    r"|(?P<number>_?-?\d+)"
    r"|(?P<name>[A-Za-z_]\w*)"
    r"|(?P<string>\"[^\"\\\n]*\"|'[^'\\\n]*')"
    r"|(?P<sign>[\[\](){}:,.*@=<>?\u2218])",
    re.ASCII,
)


@dataclass(frozen=True)
class Node:
    """Something that was written, from character `start` up to `end`."""

    start: int
    end: int


@dataclass(frozen=True)
class Literal(Node):
    """A number, a string, True, False or None."""

    value: int | str | bool | None


@dataclass(frozen=True)
class Name(Node):
    """A name."""

    name: str


@dataclass(frozen=True)
class Sequence(Node):
    """A list or a tuple; which of the two makes no difference."""

    items: tuple[Node, ...]


@dataclass(frozen=True)
class Dict(Node):
    """A mapping with strings as keys, in order."""

    items: tuple[tuple[Literal, Node], ...]


@dataclass(frozen=True)
class Attribute(Node):
    """`value.name`."""

    value: Node
    name: str


@dataclass(frozen=True)
class Call(Node):
    """`function(arguments, name=value)`."""

    function: Node
    arguments: tuple[Node, ...]
    named: tuple[tuple[str, Node], ...]


@dataclass(frozen=True)
class Operation(Node):
    """`left * right`, the direct sum, or `left @ right`, the composition."""

    sign: str
    left: Node
    right: Node


@dataclass(frozen=True)
class Cute(Node):
    """A layout in CuTe's notation."""

    make: Callable[[], CuteLayout | CuteComposed]


@dataclass(frozen=True)
class Ir(Node):
    """A layout as layout IR has it: #ttg.blocked<{...}>."""

    text: str


@dataclass(frozen=True)
class _Token:
    kind: str
    text: str
    start: int
    end: int


def fail(text: str, start: int, end: int, message: str, hint: str | None = None) -> NoReturn:
    """Raise LayoutError with carets under a part of the expression; where it has no way out, there is what is right."""
    line = text.replace("\n", " ").replace("\r", " ").replace("\t", " ")
    line = line.encode("utf-8", "replace").decode()  # bytes that are no text come as single surrogates
    col, stop = (len(line[:at].encode()) for at in (start, max(end, start + 1)))
    raise LayoutError(
        message, Span(FILE, 1, col, 1, stop), source_line=line, hint=hint or LayoutError.way_out(message) or WRITTEN
    ) from None


def _tokens(text: str) -> list[_Token]:
    tokens, at = [], 0
    while at < len(text):
        match = TOKEN.match(text, at)
        if match is None:
            fail(text, at, at + 1, f"{text[at]!r} is not allowed in a layout expression")
        end = _end_of_ir(text, match.end()) if match.lastgroup == "ir" else match.end()
        if match.lastgroup:
            tokens.append(_Token(match.lastgroup, text[at:end], at, end))
        at = end
    tokens.append(_Token("end", "", len(text), len(text)))
    return tokens


def _end_of_ir(text: str, at: int) -> int:
    """Where the angle brackets that open here are closed; the end of the text where they never are."""
    if text[at : at + 1] != "<":
        return at
    depth = 0
    for i in range(at, len(text)):
        depth += {"<": 1, ">": -1}.get(text[i], 0)
        if not depth:
            return i + 1
    return len(text)


def parse(text: str) -> Node:
    """The tree of an expression; LayoutError with carets where it is no expression.

    >>> parse("SliceLayout(1, A)").function.name
    'SliceLayout'
    """
    if len(text) > LONGEST:
        beyond = Span(FILE, 1, LONGEST, 1, LONGEST + 1)
        wrong = f"the expression has {len(text)} characters, at most {LONGEST} are read"
        raise LayoutError(wrong, beyond, hint="compute the layout in Python, with weft.layouts")
    parser = _Parser(text)
    node = parser.expression()
    if parser.next.kind != "end":
        parser.unexpected("the end of the expression, `*`, `@` or `.`")
    return node


class _Parser:
    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = _tokens(text)
        self.at = 0
        self.depth = 0

    @property
    def next(self) -> _Token:
        return self.tokens[self.at]

    def take(self) -> _Token:
        token = self.next
        self.at += 1
        return token

    def sees(self, sign: str) -> bool:
        return self.next.kind == "sign" and self.next.text == sign

    def unexpected(self, expected: str) -> NoReturn:
        token = self.next
        shown = f"`{token.text}`" if token.kind != "end" else "the end"
        fail(self.text, token.start, token.end, f"expected {expected}, found {shown}")

    def expect(self, sign: str, name: str) -> _Token:
        if not self.sees(sign):
            self.unexpected(name)
        return self.take()

    def expression(self) -> Node:
        self.depth += 1
        if self.depth > DEEPEST:
            wrong = f"the expression is nested more than {DEEPEST} deep"
            fail(self.text, self.next.start, self.next.end, wrong, "compute the layout in Python, with weft.layouts")
        node = self.postfix()
        while self.sees("*") or self.sees("@"):
            sign = self.take().text
            right = self.postfix()
            node = Operation(node.start, right.end, sign, node, right)
        self.depth -= 1
        return node

    def postfix(self) -> Node:
        node = self.primary()
        while True:
            if self.sees("."):
                self.take()
                if self.next.kind != "name":
                    self.unexpected("a name after `.`")
                name = self.take()
                node = Attribute(node.start, name.end, node, name.text)
            elif self.sees("(") and isinstance(node, (Name, Attribute)):
                node = self.call(node)
            else:
                return node

    def call(self, function: Node) -> Call:
        self.take()
        arguments: list[Node] = []
        named: list[tuple[str, Node]] = []
        while not self.sees(")"):
            follows = self.tokens[self.at + 1] if self.next.kind == "name" else self.next
            if self.next.kind == "name" and follows.text == "=":
                name = self.take()
                self.take()
                if any(name.text == taken for taken, _ in named):
                    fail(
                        self.text, name.start, name.end, f"the argument {name.text} is given twice", "drop one of them"
                    )
                named.append((name.text, self.expression()))
            elif named:
                wrong = "an argument without a name after one with a name"
                fail(
                    self.text, self.next.start, self.next.end, wrong, "name it too, or move it before those with names"
                )
            else:
                arguments.append(self.expression())
            if not self.sees(")"):
                self.expect(",", "`,` or `)`")
        return Call(function.start, self.take().end, function, tuple(arguments), tuple(named))

    def primary(self) -> Node:
        token = self.next
        if starts_cute(self.text, token.start):
            return self.cute()
        if token.kind == "number":
            self.take()
            if len(token.text) > 20:
                fail(
                    self.text, token.start, token.end, "the number is too large", "layouts have sizes up to 1073741824"
                )
            return Literal(token.start, token.end, int(token.text.removeprefix("_")))
        if token.kind == "string":
            self.take()
            return Literal(token.start, token.end, token.text[1:-1])
        if token.kind == "name":
            self.take()
            constants = {"True": True, "False": False, "None": None}
            if token.text in constants:
                return Literal(token.start, token.end, constants[token.text])
            return Name(token.start, token.end, token.text)
        if token.kind == "ir":
            self.take()
            return Ir(token.start, token.end, token.text)
        if self.sees("["):
            return self.items("]")
        if self.sees("("):
            return self.items(")")
        if self.sees("{"):
            return self.mapping()
        return self.unexpected("a layout, a number, a string or a list")

    def items(self, close: str) -> Node:
        """A list, a tuple, or an expression in parentheses."""
        start, items, commas = self.take(), [], 0
        while not self.sees(close):
            items.append(self.expression())
            if not self.sees(close):
                self.expect(",", f"`,` or `{close}`")
                commas += 1
        end = self.take()
        if close == ")" and len(items) == 1 and not commas:
            return items[0]
        return Sequence(start.start, end.end, tuple(items))

    def mapping(self) -> Dict:
        start, pairs = self.take(), list[tuple[Literal, Node]]()
        while not self.sees("}"):
            token = self.next
            if token.kind != "string":
                self.unexpected("the name of a dimension in quotes")
            self.take()
            key = Literal(token.start, token.end, token.text[1:-1])
            if any(key.value == other.value for other, _ in pairs):
                fail(
                    self.text, key.start, key.end, f"the name {key.value} is given twice", "drop or rename one of them"
                )
            self.expect(":", "`:`")
            pairs.append((key, self.expression()))
            if not self.sees("}"):
                self.expect(",", "`,` or `}`")
        return Dict(start.start, self.take().end, tuple(pairs))

    def cute(self) -> Cute:
        """CuTe's notation, which weft.layouts.cute.text reads."""
        start = self.next.start
        try:
            make, end = read_cute(self.text, start)
        except BadText as error:
            rest = self.text[error.at :].split()
            found = f"`{rest[0][:8]}`" if rest else "the end"
            fail(self.text, error.at, error.at + 1, f"expected {error.expected}, found {found}")
        while self.next.kind != "end" and self.next.start < end:
            self.take()
        return Cute(start, end, make)
