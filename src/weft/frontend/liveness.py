"""Which variables are read later: found once for a function, over its syntax tree, before it is traced.

    k = 5                        # k is not read before the inner loop sets it, nor after: no loop carries it
    for i in range(n):           # entering: total        (read before it is set in an iteration, or after the loop)
        for k in range(m):       # after the inner loop: total
            total += k
    store(total)

Every statement reads some names before it sets them (`gen`) and sets some for sure (`kill`).  Going backwards, what is
live before a statement is `gen | (after & ~kill)`.  For a loop, whose body may run again or not at all, the solution
of the equation needs no iteration: `after | gen`.  Two walks make it: summaries from the inside out, then what is live
after each statement from the outside in.  Both keep their own stack and hold sets of names as the bits of an integer,
so the time grows with the length of a function, not with its depth.

A name is only said to be dead if no path reads it: branches that are chosen at compile time count as possible.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from typing import Final

_EVERYTHING: Final = -1
"""All names: what a `return` sets, as nothing behind it is reached; what is live around an unknown statement."""

Loop = ast.For | ast.While


def _blocks(node: ast.stmt) -> list[list[ast.stmt]]:
    """The lists of statements inside a statement."""
    if isinstance(node, ast.If | ast.For | ast.While):
        return [node.body, node.orelse]
    return [node.body] if isinstance(node, ast.With) else []


def _has_iterations(iterator: ast.expr) -> bool:
    """Whether a loop over `range(3)`, `tl.static_range(3, 0, -1)` and the like is known to have iterations."""
    try:
        numbers = [ast.literal_eval(a) for a in iterator.args] if isinstance(iterator, ast.Call) else []
        return bool(range(*numbers))
    except (TypeError, ValueError):  # no numbers, or too many or too few
        return False


class Liveness:
    """Answers about one function's body."""

    def __init__(self, body: Sequence[ast.stmt]) -> None:
        self.body = body
        """Kept, as nodes are known by their identity."""
        self._bits: dict[str, int] = {}
        self._summaries: dict[int, tuple[int, int]] = {}
        self._after: dict[int, int] = {}
        self._entering: dict[int, int] = {}
        inside, work = [], [body]
        while work:
            for node in work.pop():
                blocks = _blocks(node)
                if blocks:
                    inside.append(node)
                    work += blocks
        for node in reversed(inside):
            self._summaries[id(node)] = self._compound(node)
        self._propagate()

    def after(self, node: ast.stmt, name: str) -> bool:
        """Whether the variable may be read after an `if` or a loop."""
        return bool(self._after.get(id(node), _EVERYTHING) >> self._bit(name) & 1)

    def entering(self, node: Loop, name: str) -> bool:
        """Whether the variable may be read in an iteration of a loop before that iteration sets it, or after the
        loop.
        """
        return bool(self._entering.get(id(node), _EVERYTHING) >> self._bit(name) & 1)

    # -- from the inside out -------------------------------------------------------------------------------------------

    def _bit(self, name: str) -> int:
        return self._bits.setdefault(name, len(self._bits))

    def _reads(self, *nodes: ast.AST | None) -> int:
        return self._loads(part for node in nodes if node is not None for part in ast.walk(node))

    def _loads(self, parts: Iterable[ast.AST]) -> int:
        bits = 0
        for part in parts:
            if type(part) is ast.Name and type(part.ctx) is ast.Load:
                bits |= 1 << self._bit(part.id)
        return bits

    def _sets(self, *nodes: ast.AST | None) -> int:
        bits = 0
        for node in nodes:
            for part in ast.walk(node) if node is not None else ():
                if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store):
                    bits |= 1 << self._bit(part.id)
        return bits

    def _summary(self, node: ast.stmt) -> tuple[int, int]:
        """What a statement reads before it sets it, and what it sets on every path."""
        summary = self._summaries.get(id(node))
        if summary is None:
            summary = self._summaries[id(node)] = self._simple(node)
        return summary

    def _named(self, *nodes: ast.AST | None) -> int:
        """What expressions set by `:=` on every path."""
        bits, work = 0, list(nodes)
        while work:
            part = work.pop()
            if isinstance(part, ast.NamedExpr):
                bits |= 1 << self._bit(part.target.id)
            if isinstance(part, ast.IfExp):
                work.append(part.test)
            elif isinstance(part, ast.BoolOp):
                work.append(part.values[0])
            elif part is not None and not isinstance(part, ast.ListComp):
                work += ast.iter_child_nodes(part)
        return bits

    def _simple(self, node: ast.stmt) -> tuple[int, int]:
        parts = list(ast.walk(node))
        reads = self._loads(parts)
        sets = self._named(node) if any(type(part) is ast.NamedExpr for part in parts) else 0
        if isinstance(node, ast.Assign):
            sets |= self._sets(*node.targets)
        elif isinstance(node, ast.AugAssign):
            changed = self._sets(node.target)
            sets |= changed
            reads |= changed
        elif isinstance(node, ast.AnnAssign) and node.value is not None:
            sets |= self._sets(node.target)
        elif isinstance(node, ast.Return):
            sets = _EVERYTHING
        return reads, sets

    def _sequence(self, statements: Sequence[ast.stmt]) -> tuple[int, int]:
        gen = kill = 0
        for node in statements:
            reads, sets = self._summary(node)
            gen |= reads & ~kill
            kill |= sets
        return gen, kill

    def _compound(self, node: ast.stmt) -> tuple[int, int]:
        if isinstance(node, ast.If):
            (then, in_then), (other, in_other) = self._sequence(node.body), self._sequence(node.orelse)
            named = self._named(node.test)
            return self._reads(node.test) | (then | other) & ~named, named | in_then & in_other
        if isinstance(node, ast.For):
            body, in_body = self._sequence(node.body)
            variable, named = self._sets(node.target), self._named(node.iter)
            reads = self._reads(node.iter) | body & ~variable & ~named
            return reads, named | variable | in_body if _has_iterations(node.iter) else named
        if isinstance(node, ast.While):
            return self._reads(node.test) | self._sequence(node.body)[0], 0
        assert isinstance(node, ast.With)
        body, in_body = self._sequence(node.body)
        sets = self._sets(*(item.optional_vars for item in node.items))
        return self._reads(*(item.context_expr for item in node.items)) | body & ~sets, sets | in_body

    # -- from the outside in -------------------------------------------------------------------------------------------

    def _propagate(self) -> None:
        work = [(self.body, 0)]
        while work:
            statements, live = work.pop()
            for node in reversed(statements):
                reads, sets = self._summary(node)
                inside = live
                if isinstance(node, ast.For):
                    inside |= self._sequence(node.body)[0] & ~self._sets(node.target)
                elif isinstance(node, ast.While):
                    inside |= reads
                blocks = _blocks(node)
                if blocks:
                    self._after[id(node)] = live
                    self._entering[id(node)] = inside
                    work += [(block, inside) for block in blocks if block]
                live = reads | live & ~sets
