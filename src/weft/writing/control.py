"""Loops and branches."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from xdsl.ir import Operation, SSAValue

from . import kinds
from .expressions import Text
from .products import begun, is_begun
from .words import no_word, writes
from .writer import Writer


def begin(w: Writer, op: Operation, initial: Sequence[SSAValue]) -> list[Text]:
    """Assign what a loop carries, and give its texts."""
    texts: list[Text] = []
    for value, result in zip(initial, op.results, strict=True):
        if result in w.variables.set_early:
            texts.append(w.texts[result])
        elif w.variables.group(value) is w.variables.group(result):
            texts.append(w.texts[value])
        else:
            (text,) = w.take(value)
            w.flush()
            w.comment(op)
            w.assign(result, begun(w, text) if is_begun(result) else text)
            texts.append(w.texts[result])
        if is_begun(result) and not texts[-1].begun:
            name = w.name(result)
            w.statement(f"{name} = {begun(w, texts[-1]).text}")
            texts[-1] = replace(texts[-1], begun=True)
    return texts


def bind(w: Writer, values: Sequence[SSAValue], texts: Sequence[Text], results: Sequence[SSAValue]) -> None:
    """Let values that are variables of a loop be written as these."""
    for value, text, result in zip(values, texts, results, strict=True):
        w.texts[value] = text.named(w.name(result))


def leave(w: Writer, last: Operation, values: Sequence[SSAValue], results: Sequence[SSAValue]) -> None:
    """Assign what an iteration, or a branch, leaves in variables."""
    open_ = [(v, r) for v, r in zip(values, results, strict=True) if w.variables.group(v) is not w.variables.group(r)]
    if not open_:
        w.flush()
        settle(w, values, results)
        return
    texts = [w.whole(t) for t in w.take(*(v for v, _ in open_))]
    w.flush()
    names = [w.name(r) for _, r in open_]
    pairs = []
    for (_, result), text, name in zip(open_, texts, names, strict=True):
        before = w.texts.get(result)
        if before is not None:
            text = begun(w, text) if before.begun else text
            text = w.in_layout(text, before.layout)
            text = w.in_kind(text, before.kind) if kinds.is_integer(before.kind) else text
        w.texts[result] = text.named(name)
        pairs.append((name, text.text))
    clash = any(re.search(rf"\b{re.escape(name)}\b", later) for i, (name, _) in enumerate(pairs)
                for _, later in pairs[i + 1 :])  # fmt: skip
    if clash:
        w.statement(f"{', '.join(n for n, _ in pairs)} = {', '.join(t for _, t in pairs)}")
        settle(w, values, results)
        return
    for name, assigned in pairs:
        if name != assigned:
            w.statement(f"{name} = {assigned}")
    settle(w, values, results)


def settle(w: Writer, values: Sequence[SSAValue], results: Sequence[SSAValue]) -> None:
    """Give variables that have their last value already the kind, and the name of the layout, that they had before."""
    for value, result in zip(values, results, strict=True):
        before, now = w.texts.get(result), w.texts.get(value)
        if before is None or now is None or w.variables.group(value) is not w.variables.group(result):
            continue
        text = w.in_layout(now, before.layout)
        text = w.in_kind(text, before.kind) if kinds.is_integer(before.kind) else text
        if text is not now:
            w.statement(f"{now.text} = {text.text}")
            w.texts[value] = before.named(now.text)


@writes("scf.for")
def _for(w: Writer, op: Any) -> None:
    low, high, step, *initial = op.operands
    texts = begin(w, op, initial)
    bounds = [w.in_kind(t, kinds.with_sign(t.kind, unsigned=False)) for t in w.take(low, high, step)]
    w.flush()
    if bounds[0].kind != "i32":  # numbers are int32 by themselves
        bounds = [w.whole(t) for t in bounds]
    shown = [t.text for t in bounds]
    kind = next((t.kind for t in bounds if t.number is None), "i32")
    shown = shown[:2] if bounds[2].number == 1 else shown
    shown = shown[1:] if len(shown) == 2 and bounds[0].number == 0 else shown
    body = op.regions[0].blocks[0]
    w.comment(op)
    index = body.args[0]
    name = w.name(index)
    w.texts[index] = Text(name, kind)
    for result, text in zip(op.results, texts, strict=True):
        w.texts[result] = text
    bind(w, body.args[1:], texts, op.results)
    w.statement(f"for {name} in range({', '.join(shown)}):")
    with w.indented():
        last = w.block(body)
        leave(w, last, last.operands, op.results)
    bind(w, op.results, texts, op.results)


@writes("scf.while")
def _while(w: Writer, op: Any) -> None:
    texts = begin(w, op, list(op.operands))
    before, after = (region.blocks[0] for region in op.regions)
    for result, text in zip(op.results, texts, strict=True):
        w.texts[result] = text
    bind(w, before.args, texts, op.results)
    w.flush()
    w.comment(op)
    lines = len(w.lines)
    end = w.block(before)
    if list(end.operands[1:]) != list(before.args):
        raise no_word(op, "whose condition computes what the loop carries")
    (condition,) = w.take(end.operands[0])
    if len(w.lines) > lines:
        raise no_word(op, "whose condition is no expression")
    bind(w, after.args, texts, op.results)
    w.statement(f"while {condition.text}:")
    with w.indented():
        last = w.block(after)
        leave(w, last, last.operands, op.results)
    bind(w, op.results, texts, op.results)


def name_in_order(w: Writer, op: Operation) -> None:
    """Name the results of a branch that are new, which Gluon takes by the alphabet."""
    last = ""
    for result in op.results:
        group = w.variables.group(result)
        if group.first > w.variables.place(op):
            stem = w.stem(result)
            group.name = w.names.unused(stem if stem > last else f"{last}_{stem}")
            last = group.name


@writes("scf.if")
def _if(w: Writer, op: Any) -> None:
    (condition,) = w.take(op.operands[0])
    w.flush()
    w.comment(op)
    name_in_order(w, op)
    w.statement(f"if {condition.text}:")
    for i, region in enumerate(op.regions):
        if not region.blocks:
            continue
        block = region.blocks[0]
        kept = all(w.variables.group(v) is w.variables.group(r)
                   for v, r in zip(block.last_op.operands, op.results, strict=True))  # fmt: skip
        if i and kept and block.first_op is block.last_op:
            continue
        if i:
            w.statement("else:")
        with w.indented():
            last = w.block(block)
            leave(w, last, last.operands, op.results)
        for v, r in zip(last.operands, op.results, strict=True):
            if w.variables.group(v) is w.variables.group(r):
                w.texts[r] = w.texts[v].named(w.name(r))
