"""Where in an expression an error is: the part of an argument that its message speaks of.

Layouts know nothing of texts; their messages name parameters, bases and values, which is enough to find them.
page/blame.js does the same.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from . import grammar

BASIS = re.compile(r"\bbasis (\d+) of (\w+) (?:is|has)\b")
LISTED = re.compile(r"(?:the basis|the coordinates in (\w+) must .*, got) (\[[^\]]*\])(?: of (\w+) (?:has|moves))?")
ENTRY = re.compile(r"the entries of (\w+) must be powers of two, got (\S+) in \[")
NAME = re.compile(r"no (?:in|out)put dimension '(\w+)'")
SIZE = re.compile(r"the size of the (?:in|out)put dimension (\w+) must be")


def blamed(message: str, nodes: Mapping[str, grammar.Node], values: Mapping[str, Any]) -> grammar.Node | None:
    """The part of the arguments of a call that a message speaks of; None where it speaks of none.

    `nodes` and `values` have what was written for each parameter, and what it stands for.
    """
    return (
        _basis(message, nodes) or _entry(message, nodes) or _name(message, nodes) or _argument(message, nodes, values)
    )


def _item(node: grammar.Node | None, index: int) -> grammar.Node | None:
    return node.items[index] if isinstance(node, grammar.Sequence) and index < len(node.items) else None


def _of(name: str, nodes: Mapping[str, grammar.Node]) -> grammar.Node | None:
    """What is written for a dimension in a mapping, or as a parameter of its own, as lane_bases."""
    for node in nodes.values():
        if isinstance(node, grammar.Dict):
            for key, item in node.items:
                if key.value == name:
                    return item
    return nodes.get("reg_bases" if name == "register" else f"{name}_bases")


def _text(node: grammar.Node) -> str:
    """A list of literals as messages write it."""
    if isinstance(node, grammar.Sequence):
        return f"[{', '.join(map(_text, node.items))}]"
    return repr(node.value) if isinstance(node, grammar.Literal) else ""


def _basis(message: str, nodes: Mapping[str, grammar.Node]) -> grammar.Node | None:
    match = BASIS.search(message)
    if match:
        return _item(_of(match[2], nodes), int(match[1]).bit_length() - 1)
    match = LISTED.search(message)
    return _among(nodes.get(match[1] or match[3]), match[2]) if match else None


def _among(node: grammar.Node | None, text: str) -> grammar.Node | None:
    """The item of a list that is written so."""
    items = node.items if isinstance(node, grammar.Sequence) else ()
    return next((item for item in items if _text(item) == text), None)


def _entry(message: str, nodes: Mapping[str, grammar.Node]) -> grammar.Node | None:
    match = ENTRY.search(message)
    return _among(nodes.get(match[1]), match[2]) if match else None


def _literals(node: grammar.Node) -> Iterator[grammar.Literal]:
    if isinstance(node, grammar.Literal):
        yield node
    elif isinstance(node, grammar.Sequence):
        for item in node.items:
            yield from _literals(item)
    elif isinstance(node, grammar.Dict):
        for _, item in node.items:
            yield from _literals(item)


def _name(message: str, nodes: Mapping[str, grammar.Node]) -> grammar.Node | None:
    match = NAME.search(message)
    if match:
        return next(
            (literal for node in nodes.values() for literal in _literals(node) if literal.value == match[1]), None
        )
    match = SIZE.search(message)
    literal = _of(match[1], nodes) if match else None
    return literal if isinstance(literal, grammar.Literal) else None


def _argument(message: str, nodes: Mapping[str, grammar.Node], values: Mapping[str, Any]) -> grammar.Node | None:
    """Of the arguments that the message names, the one with the value that it says it got, else the first."""
    refused = message.rpartition("got ")[2] if "got " in message else None
    spoken = []
    for name, value in values.items():
        match = re.search(rf"\b{name}\b", message)
        if match and name in nodes:
            spoken.append((refused is None or not refused.startswith(repr(value)), match.start(), name))
    return nodes[min(spoken)[2]] if spoken else None
