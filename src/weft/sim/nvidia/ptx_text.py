"""The text of PTX as instructions: what its grammar allows within one block of statements.

    statements("{ .reg .b32 t; add.u32 t, $1, 1; @p mov.b32 $0, t; }")

Declarations are taken in, names are told apart by the braces they are declared in, and all else becomes a list of
`Statement`s. Operands are registers (`$0` among them), numbers, special registers (`%laneid`), groups in braces, and
places in memory (`[$1+8]`). Inline assembly is such a block, and so is the body of a kernel, which has labels as well.
"""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass
from functools import cache, lru_cache


class PTXError(Exception):
    """Text that is no assembly, or that the simulator has no meaning for; the words say what."""


@dataclass(frozen=True)
class Register:
    """A register by its name; of a predicate `negated` is `!p`."""

    name: str
    negated: bool = False


@dataclass(frozen=True)
class Number:
    """An integer; or a float, as the pattern of so many `bits`."""

    value: int
    bits: int | None = None


@dataclass(frozen=True)
class Special:
    """A register of the hardware, as `%laneid`; in a kernel also a name from outside its body, or a label."""

    name: str


@dataclass(frozen=True)
class Group:
    """Registers side by side: `{a, b}`, `p|q` of two results, or `(a, b)` of a call."""

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
    r"|(?P<word>\.?[$%]?[A-Za-z_$%][\w$%]*(?:\.[\w:]+)*|\$\{?\d+(?::\w)?\}?|\.\w+)|(?P<mark>[{}();,|!@<>:\[\]+-]))"
)
_WIDTHS = re.compile(r"\.(?:pred|[bsuf](?:8|16|32|64)|f16x2|b128)$")


def _tokens(text: str) -> list[str]:
    tokens, at = [], 0
    text = _COMMENT.sub(" ", text).replace("$$", "%$").strip()
    for match in _TOKEN.finditer(text):
        if match.start() != at:
            break
        at = match.end()
        tokens.append(match[match.lastindex or 0])
    if at < len(text):
        raise PTXError(f"`{text[at : at + 20].splitlines()[0]}` is no PTX")
    return tokens


class _Reader:
    def __init__(self, text: str, is_kernel: bool = False) -> None:
        self.tokens = _tokens(text)
        self.at = 0
        self.scopes: list[dict[str, str]] = [{}]
        self.declared = 0
        self.statements: list[Statement] = []
        self.is_kernel = is_kernel
        self.labels: dict[str, int] = {}

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
            elif self.is_kernel and self.peek()[0] == ".":  # parameters of calls
                while self.take() != ";":
                    pass
            else:
                self._statement()
        return self.statements

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
            operand = self._operand()
            assert isinstance(operand, Register)
            guard = operand
        name = self.take()
        if self.peek() == ":":
            if not self.is_kernel:
                raise PTXError(f"the label `{name}`")
            self.take()
            self.labels[name] = len(self.statements)
            return
        operands: list[Operand] = []
        while self.peek() not in (";", ""):
            operands.append(self._operand())
            if self.peek() == "|":
                self.take()
                operands[-1] = Group((operands[-1], self._operand()))
            if self.peek() == ",":
                self.take()
        self.statements.append(Statement(guard, _name(name), tuple(operands)))

    def _operand(self) -> Operand:
        token = self.take()
        if token in "{(":
            parts = []
            while self.peek() not in ("}", ")"):
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
                offset = sign * number.value
            self.take("]")
            return Place(base, offset)
        return _number(token) if token[0].isdigit() else self._register(token)

    def _register(self, token: str) -> Operand:
        if token[0] == "$" and not self.is_kernel:
            return Register("$" + re.sub(r"\D", "", token.partition(":")[0]))
        if token == "WARP_SZ":
            return Number(32)
        for scope in reversed(self.scopes):
            if token in scope:
                return Register(scope[token])
        if token == "_":
            return Register("_")
        if token[0] == "%" or self.is_kernel:
            return Special(token.removeprefix("%"))
        raise PTXError(f"`{token}`, which is declared nowhere")


def _number(token: str) -> Number:
    kind = token[:2].lower()
    if kind in ("0f", "0d"):
        return Number(int(token[2:], 16), 4 * len(token[2:]))
    if "." in token:
        return Number(int.from_bytes(struct.pack(">d", float(token))), 64)
    digits = token.rstrip("U")
    if kind not in ("0x", "0b") and len(digits) > 1 and digits[0] == "0":
        return Number(int(digits, 8))
    return Number(int(digits, 0))


@cache
def _name(text: str) -> tuple[str, ...]:
    return tuple(text.split("."))


def body(text: str) -> tuple[tuple[Statement, ...], dict[str, int]]:
    """The instructions of a kernel's body, and where in them each label stands.

    >>> body("$L: add.u32 %r1, %r1, 1; bra $L;")[1]
    {'$L': 0}
    """
    reader = _Reader(text, is_kernel=True)
    return tuple(reader.run()), reader.labels


@lru_cache(maxsize=256)
def statements(text: str) -> tuple[Statement, ...]:
    """The instructions of a text. PTXError for what it cannot read.

    >>> [str(s) for s in statements("{ .reg .pred p; setp.lt.s32 p, $1, 0; @!p mov.b32 $0, $1; }")]
    ['setp.lt.s32', 'mov.b32']
    """
    return tuple(_Reader(text).run())
