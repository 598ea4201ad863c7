"""Instructions between the lanes of a warp, and on the bits of a register: shfl.sync, vote.ballot, prmt, lop3."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from ..instruction import Array, Instruction, Operand

ALL = "0xffffffff"


def _shuffle(kind: str) -> Callable[..., tuple[Array, ...]]:
    def run(a: Array, b: Array) -> tuple[Array, ...]:
        lanes = a.shape[1]
        numbers = np.arange(lanes)[None, :, None]
        wanted = {"idx": b % lanes, "bfly": numbers ^ b, "up": numbers - b, "down": numbers + b}[kind]
        source = np.where((wanted >= 0) & (wanted < lanes), wanted, numbers)
        return (np.take_along_axis(a, np.broadcast_to(source, a.shape), axis=1),)

    return run


def _ballot(a: Array) -> tuple[Array, ...]:
    weights = np.uint64(1) << np.arange(a.shape[1], dtype=np.uint64)[None, :, None]
    bits = ((a != 0) * weights).sum(axis=1, keepdims=True).astype(np.uint32).view(np.int32)
    return (np.broadcast_to(bits, a.shape).copy(),)


def _permute(a: Array, b: Array, selector: Array) -> tuple[Array, ...]:
    """Byte i is the byte of b:a that nibble i of the selector names; its top bit asks for the byte's sign instead."""
    source = a.view(np.uint32).astype(np.uint64) | b.view(np.uint32).astype(np.uint64) << np.uint64(32)
    select = selector.view(np.uint32).astype(np.uint64)
    result = np.zeros_like(source)
    for i in range(4):
        nibble = select >> np.uint64(4 * i) & np.uint64(15)
        byte = source >> (nibble & np.uint64(7)) * np.uint64(8) & np.uint64(255)
        sign = np.where(byte & np.uint64(128), np.uint64(255), np.uint64(0))
        result |= np.where(nibble & np.uint64(8), sign, byte) << np.uint64(8 * i)
    return (result.astype(np.uint32).view(np.int32),)


def _logic(a: Array, b: Array, c: Array, table: Array) -> tuple[Array, ...]:
    """Bit by bit what the table of eight bits says at a * 4 + b * 2 + c."""
    result = np.zeros_like(a)
    for row in range(8):
        term = (a if row & 4 else ~a) & (b if row & 2 else ~b) & (c if row & 1 else ~c)
        result |= np.where(table >> row & 1, term, 0)
    return (result,)


def lane_instructions() -> Iterator[Instruction]:
    """All entries of this file."""

    def word(name: str) -> Operand:
        return Operand(name, "i32", 1, "r")

    for kind in ("idx", "bfly", "up", "down"):
        clamp = "0x0" if kind == "up" else "0x1f"
        yield Instruction(
            name=f"shfl.sync.{kind}",
            since=70,
            text=f"shfl.sync.{kind}.b32 <d>, <a>, <b>, {clamp}, {ALL};",
            operands=(word("a"), word("b")),
            results=(word("d"),),
            semantics=_shuffle(kind),
            cost=2,
        )
    yield Instruction(
        name="vote.ballot",
        since=70,
        text="{ .reg .pred p; setp.ne.b32 p, <a>, 0; vote.sync.ballot.b32 <d>, p, " + ALL + "; }",
        operands=(word("a"),),
        results=(word("d"),),
        semantics=_ballot,
        cost=2,
    )
    yield Instruction(
        name="prmt",
        since=70,
        text="prmt.b32 <d>, <a>, <b>, <selector>;",
        operands=(word("a"), word("b"), word("selector")),
        results=(word("d"),),
        semantics=_permute,
        cost=2,
    )
    yield Instruction(
        name="lop3",
        since=70,
        text="lop3.b32 <d>, <a>, <b>, <c>, <table>;",
        operands=(word("a"), word("b"), word("c"), Operand("table", "i32", 1, "n")),
        results=(word("d"),),
        semantics=_logic,
    )
