"""Text with a few of its tokens wrong: a rule for any language whose tokens are known.

    change("f(a, 1)", WORDS, random.Random(3), pool)      # 'f(a, a, 1)', 'f(a 1)', 'f(a, 0)', ...

Everything else of the text, its lines above all, stays as it was.
"""

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence

__all__ = ["NUMBERS", "change", "pool_of", "tokens_of"]

NUMBERS = ["0", "1", "2", "3", "-1", "7", "33", "64", "4096", "65536", str(2**31), str(2**63), str(-(2**63)), "9" * 30]
"""What numbers are replaced by: corners, and what is no power of two."""

Token = tuple[str, int, int]
"""Kind, start and end."""


def tokens_of(text: str, language: re.Pattern[str]) -> list[Token]:
    """The tokens of a text, spaces left out; kinds are the names of the pattern's groups."""
    found = [(m.lastgroup or "", m.start(), m.end()) for m in language.finditer(text)]
    return [t for t in found if t[0] not in ("", "w") and t[2] > t[1]]


def pool_of(texts: Sequence[str], language: re.Pattern[str]) -> dict[str, list[str]]:
    """All the tokens of a corpus by kind."""
    pool: dict[str, set[str]] = {}
    for text in texts:
        for kind, start, end in tokens_of(text, language):
            pool.setdefault(kind, set()).add(text[start:end])
    return {kind: sorted(words) for kind, words in sorted(pool.items())}


def change(text: str, language: re.Pattern[str], draw: random.Random, pool: Mapping[str, Sequence[str]]) -> str:
    """The text with one to three things wrong with it."""
    for _ in range(draw.choice((1, 1, 1, 2, 3))):
        tokens = tokens_of(text, language)
        if tokens:
            text = draw.choice(RULES)(text, tokens, draw, pool)
    return text


def _replaced(text: str, token: Token, by: str) -> str:
    return text[: token[1]] + by + text[token[2] :]


def _dropped(text: str, tokens: list[Token], draw: random.Random, pool: Mapping[str, Sequence[str]]) -> str:
    return _replaced(text, draw.choice(tokens), "")


def _doubled(text: str, tokens: list[Token], draw: random.Random, pool: Mapping[str, Sequence[str]]) -> str:
    token = draw.choice(tokens)
    return _replaced(text, token, " ".join([text[token[1] : token[2]]] * draw.choice((2, 2, 5))))


def _swapped(text: str, tokens: list[Token], draw: random.Random, pool: Mapping[str, Sequence[str]]) -> str:
    """Two tokens in each other's place, neighbours or of one kind."""
    at = draw.randrange(len(tokens))
    same = [k for k, t in enumerate(tokens) if t[0] == tokens[at][0]]
    other = draw.choice([min(at + 1, len(tokens) - 1), draw.choice(same)])
    first, last = sorted((tokens[at], tokens[other]), key=lambda t: t[1])
    if first[2] > last[1]:
        return text
    a, b = text[first[1] : first[2]], text[last[1] : last[2]]
    return text[: first[1]] + b + text[first[2] : last[1]] + a + text[last[2] :]


def _of_its_kind(text: str, tokens: list[Token], draw: random.Random, pool: Mapping[str, Sequence[str]]) -> str:
    kind = draw.choice(sorted({t[0] for t in tokens}))
    token = draw.choice([t for t in tokens if t[0] == kind])
    return _replaced(text, token, draw.choice(pool.get(kind) or ["0"]))


def _of_any_kind(text: str, tokens: list[Token], draw: random.Random, pool: Mapping[str, Sequence[str]]) -> str:
    return _replaced(text, draw.choice(tokens), draw.choice(pool[draw.choice(list(pool))]))


def _inserted(text: str, tokens: list[Token], draw: random.Random, pool: Mapping[str, Sequence[str]]) -> str:
    _, start, _ = draw.choice(tokens)
    return f"{text[:start]}{draw.choice(pool[draw.choice(list(pool))])} {text[start:]}"


def _numbered(text: str, tokens: list[Token], draw: random.Random, pool: Mapping[str, Sequence[str]]) -> str:
    """Another number, also within a token (a type, say)."""
    numbers = list(re.finditer(r"(?<![\w%])-?\d+", text))
    if not numbers:
        return text
    found = draw.choice(numbers)
    return text[: found.start()] + draw.choice(NUMBERS) + text[found.end() :]


def _everywhere(text: str, tokens: list[Token], draw: random.Random, pool: Mapping[str, Sequence[str]]) -> str:
    """One word replaced by another of its kind wherever it stands."""
    kind, start, end = draw.choice(tokens)
    old, new = text[start:end], draw.choice(pool.get(kind) or ["0"])
    for _, start, end in [t for t in reversed(tokens) if text[t[1] : t[2]] == old]:
        text = text[:start] + new + text[end:]
    return text


def _lines(text: str, tokens: list[Token], draw: random.Random, pool: Mapping[str, Sequence[str]]) -> str:
    """A line dropped, doubled, moved."""
    lines = text.split("\n")
    at, to = draw.randrange(len(lines)), draw.randrange(len(lines))
    how = draw.randrange(3)
    line = lines[at] if how == 1 else lines.pop(at)
    if how:
        lines.insert(to, line)
    return "\n".join(lines)


def _cut(text: str, tokens: list[Token], draw: random.Random, pool: Mapping[str, Sequence[str]]) -> str:
    """The text ends, or begins, in the middle."""
    at = draw.choice(tokens)[draw.choice((1, 2))]
    return text[:at] if draw.random() < 0.8 else text[at:]


def _unbracketed(text: str, tokens: list[Token], draw: random.Random, pool: Mapping[str, Sequence[str]]) -> str:
    """What is between two brackets is gone, or is there twice."""
    pairs = list(re.finditer(r"\([^()\n]*\)|\[[^\[\]\n]*\]|\{[^{}\n]*\}|<[^<>\n]*>", text))
    if not pairs:
        return text
    found = draw.choice(pairs)
    inner = found.group()[1:-1]
    new = draw.choice(["", f"{inner}, {inner}", f"{found.group()[0]}{inner}{found.group()[-1]}"])
    return text[: found.start() + 1] + new + text[found.end() - 1 :]


RULES = (
    _dropped, _doubled, _swapped, _of_its_kind, _of_its_kind, _of_its_kind, _of_any_kind, _inserted, _numbered,
    _numbered, _everywhere, _everywhere, _lines, _cut, _unbracketed,
)  # fmt: skip
