"""The text of inline assembly as instructions: what PTX's grammar allows within one block of statements.

    statements("{ .reg .b32 t; add.u32 t, $1, 1; @p mov.b32 $0, t; }")

Declarations are taken in, names are told apart by the braces they are declared in, and all else becomes a list of
`Statement`s. Operands are registers (`$0` among them), numbers, special registers (`%laneid`), groups in braces, and
places in memory (`[$1+8]`).
"""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass
from functools import lru_cache

__all__ = ["Group", "Number", "PTXError", "Place", "Register", "Special", "Statement", "statements"]


class PTXError(Exception):
    """Text that is no assembly, or that the simulator has no meaning for; the words say what."""


@dataclass(frozen=True)
class Register:
    """A register by its name; of a predicate `negated` is `!p`."""

    name: str
    negated: bool = False


@dataclass(frozen=True)
class Number:
    """An integer, or a float (`bits` then is its pattern, 32 or 64 bits wide)."""

    value: int | float
    bits: int | None = None


@dataclass(frozen=True)
class Special:
    """A register of the hardware, as `%laneid`."""

    name: str


@dataclass(frozen=True)
class Group:
    """Registers side by side: `{a, b}`, or `p|q` of two results."""

    parts: tuple[Operand, ...]


@dataclass(frozen=True)
class Place:
    """Memory: `[$1+8]`, so many bytes behind the address in a register."""

    base: Operand
    offset: int


Operand = Register | Number | Special | Group | Place


@dataclass(frozen=True)
class Statement:
    """One instruction: its guard, its name cut at the dots, its operands."""

    guard: Register | None
    name: tuple[str, ...]
    operands: tuple[Operand, ...]

    def __str__(self) -> str:
        return ".".join(self.name)


_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.S)
_TOKEN = re.compile(
    r"\s*(?:(?P<number>0[fF][0-9a-fA-F]{8}|0[dD][0-9a-fA-F]{16}|0[xX][0-9a-fA-F]+U?|0[bB][01]+U?"
    r"|\d+\.\d*(?:[eE][-+]?\d+)?|\d+U?)"
    r"|(?P<word>\.?[$%]?[A-Za-z_$%][\w$%]*(?:\.[\w:]+)*|\$\{?\d+(?::\w)?\}?|\.\w+)|(?P<mark>[{};,|!@<>:\[\]+-]))"
)
_WIDTHS = re.compile(r"\.(?:pred|[bsuf](?:8|16|32|64)|f16x2|b128)$")
MODULUS = 1 << 64


def _tokens(text: str) -> list[str]:
    found, at = [], 0
    text = _COMMENT.sub(" ", text).replace("$$", "%$").strip()
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None or match.end() == at:
            raise PTXError(f"`{text[at : at + 20].splitlines()[0]}` is no PTX")
        found.append(match.group().strip())
        at = match.end()
    return found


class _Reader:
    def __init__(self, text: str) -> None:
        self.tokens = _tokens(text)
        self.at = 0
        self.scopes: list[dict[str, str]] = [{}]
        self.declared = 0
        self.found: list[Statement] = []

    def peek(self) -> str:
        return self.tokens[self.at] if self.at < len(self.tokens) else ""

    def take(self, wanted: str | None = None) -> str:
        token = self.peek()
        if not token or (wanted is not None and token != wanted):
            raise PTXError(f"expected `{wanted or 'more'}` before `{token}`" if token else "the text ends too early")
        self.at += 1
        return token

    def run(self) -> list[Statement]:
        while self.peek():
            if self.peek() == "{":
                self.take()
                self.scopes.append({})
            elif self.peek() == "}":
                self.take()
                if len(self.scopes) == 1:
                    raise PTXError("a `}` without its `{`")
                self.scopes.pop()
            elif self.peek() == ";":
                self.take()
            elif self.peek() == ".reg":
                self._declaration()
            else:
                self._statement()
        return self.found

    def _declaration(self) -> None:
        self.take()
        kind = self.take()
        if not _WIDTHS.match(kind):
            raise PTXError(f"`.reg {kind}`")
        while True:
            name = self.take()
            names = [name]
            if self.peek() == "<":
                self.take()
                names = [f"{name}{i}" for i in range(int(self.take()))]
                self.take(">")
            for n in names:
                self.declared += 1
                self.scopes[-1][n] = f"{n}#{self.declared}"
            if self.take() == ";":
                return

    def _statement(self) -> None:
        guard = None
        if self.peek() == "@":
            self.take()
            found = self._operand()
            assert isinstance(found, Register)
            guard = found
        name = self.take()
        if self.peek() == ":":
            raise PTXError(f"the label `{name}`")
        operands: list[Operand] = []
        while self.peek() not in (";", ""):
            operands.append(self._operand())
            if self.peek() == "|":
                self.take()
                operands[-1] = Group((operands[-1], self._operand()))
            if self.peek() == ",":
                self.take()
        self.found.append(Statement(guard, tuple(name.split(".")), tuple(operands)))

    def _operand(self) -> Operand:
        token = self.take()
        if token == "{":
            parts = []
            while self.peek() != "}":
                parts.append(self._operand())
                if self.peek() == ",":
                    self.take()
            self.take()
            return Group(tuple(parts))
        if token == "!":
            inner = self._operand()
            assert isinstance(inner, Register)
            return Register(inner.name, not inner.negated)
        if token == "-":
            number = self._operand()
            if isinstance(number, Number) and number.bits is None:
                return Number(-number.value)
            raise PTXError("a `-` before what is no number")
        if token == "[":
            base, offset = self._operand(), 0
            if self.peek() in ("+", "-"):
                sign = -1 if self.take() == "-" else 1
                number = self._operand()
                if not isinstance(number, Number) or number.bits is not None:
                    raise PTXError("an offset that is no integer")
                offset = sign * int(number.value)
            self.take("]")
            return Place(base, offset)
        return _number(token) if token[0].isdigit() else self._register(token)

    def _register(self, token: str) -> Operand:
        if token[0] == "$":
            return Register("$" + re.sub(r"\D", "", token.partition(":")[0]))
        if token == "WARP_SZ":
            return Number(32)
        for scope in reversed(self.scopes):
            if token in scope:
                return Register(scope[token])
        if token[0] == "%":
            return Special(token[1:])
        if token == "_":
            return Register("_")
        raise PTXError(f"`{token}`, which is declared nowhere")


def _number(token: str) -> Number:
    kind = token[:2].lower()
    if kind == "0f":
        return Number(struct.unpack(">f", bytes.fromhex(token[2:]))[0], 32)
    if kind == "0d":
        return Number(struct.unpack(">d", bytes.fromhex(token[2:]))[0], 64)
    if "." in token:
        return Number(float(token), 64)
    digits = token.rstrip("U")
    if kind not in ("0x", "0b") and len(digits) > 1 and digits[0] == "0":
        return Number(int(digits, 8))
    return Number(int(digits, 0))


@lru_cache(maxsize=256)
def statements(text: str) -> tuple[Statement, ...]:
    """The instructions of a text. PTXError for what it cannot read.

    >>> [str(s) for s in statements("{ .reg .pred p; setp.lt.s32 p, $1, 0; @!p mov.b32 $0, $1; }")]
    ['setp.lt.s32', 'mov.b32']
    """
    return tuple(_Reader(text).run())
