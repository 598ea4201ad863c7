"""Loads, stores, atomics, asynchronous copies.

Atomics are done thread by thread, in their order. An asynchronous copy reads when it is issued and writes when it is
waited for, as late as PTX lets it ("Data Movement and Conversion Instructions", cp.async.wait_group): what does not
wait reads what was there before.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np

from .parsing import Instruction, names
from .spaces import WINDOWS, Space
from .state import TYPES, Array, Fault, State, Unknown, bits_of, means, words

ADDRESS = re.compile(r"\[([^\]+]+?)\s*(?:\+\s*(-?\w+))?\]$")
SPACES = ("param", "shared", "global", "const", "local")


def _address(s: State, operand: str) -> Array:
    m = ADDRESS.match(operand)
    if m is None:
        raise Unknown(f"address {operand}")
    return s.word(m[1]) + words(int(m[2] or "0", 0))


def locate(s: State, operand: str, parts: tuple[str, ...]) -> tuple[Space, Array, Array]:
    """The space of an access, the threads that take part, and their addresses in it."""
    threads = np.flatnonzero(s.active)
    addresses = _address(s, operand)[threads]
    name = next((space for space in SPACES if space in parts), "")
    if not name:
        tops = set((addresses >> np.uint64(56)).tolist())
        if len(tops) > 1:
            raise Unknown("generic addresses of more than one space")
        name = {top >> 56: space for space, top in WINDOWS.items()}.get(min(tops, default=0), "global")
        addresses = addresses & np.uint64((1 << 56) - 1)
    elif name == "shared":
        addresses = addresses & np.uint64(0xFFFFFFFF)
    return s.spaces["global" if name == "const" else name], addresses, threads


def _count(i: Instruction) -> int:
    return next((n for n in (2, 4, 8) if f"v{n}" in i.parts), 1)


@means("ld", "ldu")
def _load(s: State, i: Instruction) -> None:
    """Signed elements fill a register that is wider by their sign, others by zeros ("Operand Size Exceeding ...")."""
    dtype, count = TYPES[i.type], _count(i)
    space, addresses, threads = locate(s, i.operands[1], i.parts)
    data = space.read(addresses, count * dtype.itemsize, threads)
    values = np.ascontiguousarray(data).view(dtype).reshape(len(threads), count)
    for k, register in enumerate(names(i.operands[0])):
        word = np.zeros(s.threads, np.uint64)
        value = values[:, k]
        word[threads] = bits_of(value.astype(np.int64)) if i.type[0] == "s" else bits_of(value)
        s.write(register, word)


@means("st")
def _store(s: State, i: Instruction) -> None:
    if "param" in i.parts:
        raise Unknown(f"a called function: {i.text}")
    space, addresses, threads = locate(s, i.operands[0], i.parts)
    values = np.stack([s.read(register, i.type)[threads] for register in names(i.operands[1])], 1)
    space.write(addresses, np.ascontiguousarray(values).view(np.uint8).reshape(len(threads), -1), threads)


ATOMIC: dict[str, Callable[[Array, Array], Array]] = {
    "add": lambda old, b: old + b,
    "min": np.minimum,
    "max": np.maximum,
    "and": lambda old, b: old & b,
    "or": lambda old, b: old | b,
    "xor": lambda old, b: old ^ b,
    "exch": lambda old, b: b,
    "inc": lambda old, b: np.where(old >= b, 0, old + 1).astype(old.dtype),
    "dec": lambda old, b: np.where((old == 0) | (old > b), b, old - 1).astype(old.dtype),
}


@means("atom", "red")
def _atomic(s: State, i: Instruction) -> None:
    """atom gives what was there before; red does not."""
    returns = i.name == "atom"
    address, *values = i.operands[1:] if returns else i.operands
    what = next((part for part in i.parts if part in ATOMIC or part == "cas"), "")
    elem = i.type.removesuffix("x2")
    if not what or elem not in TYPES or (what in ("min", "max") and elem in ("f16", "bf16", "f32", "f64")):
        raise Unknown(i.text)
    per = 2 if i.type.endswith("x2") else 1
    given = [np.stack([s.word(r) for r in names(value)], 1) for value in values]
    each = TYPES[elem].itemsize * per
    count = given[0].shape[1]
    space, addresses, threads = locate(s, address, i.parts)
    before = np.zeros((s.threads, count), np.uint64)
    for k, thread in enumerate(threads):
        here, who = addresses[k : k + 1], threads[k : k + 1]
        data = space.read(here, each * count, who)
        old = data[0].copy().view(TYPES[elem])
        b, *c = (value[thread].astype(f"u{each}").view(TYPES[elem]) for value in given)
        with np.errstate(all="ignore"):
            new = np.where(old == b, c[0], old) if what == "cas" else ATOMIC[what](old, b)
        space.write(here, np.ascontiguousarray(new.astype(old.dtype)).view(np.uint8)[None], who)
        before[thread] = data[0].copy().view(f"u{each}")
    if returns:
        for k, register in enumerate(names(i.operands[0])):
            s.write(register, before[:, k].copy())


@means("cp")
def _copy(s: State, i: Instruction) -> None:
    """cp.async: bytes beyond `src-size`, and all where `ignore-src` is true, are zeros, and are not read."""
    if "async" not in i.parts or "bulk" in i.parts or "mbarrier" in i.parts:
        raise Unknown(i.text)
    if "commit_group" in i.parts:
        s.copies.groups[s.active] += 1
        return
    if "wait_group" in i.parts or "wait_all" in i.parts:
        land(s, int(i.operands[0], 0) if "wait_group" in i.parts else -1)
        return
    size = int(i.operands[2])
    into, to, threads = locate(s, i.operands[0], ("shared",))
    source, at, _ = locate(s, i.operands[1], ("global",))
    given = np.full(len(threads), size)
    if len(i.operands) > 3:
        if re.match(r"!?%p", i.operands[3]):
            given[s.read(i.operands[3], "pred")[threads]] = 0
        else:
            given = s.read(i.operands[3], "u32")[threads].astype(np.int64)
    if (given > size).any():
        raise Fault(f"src-size {given.max()} of a copy of {size} bytes")
    if (at[given > 0] % np.uint64(size) != 0).any():
        raise Fault(f"the source of a copy is not aligned to {size} bytes")
    data = np.zeros((len(threads), size), np.uint8)
    for n in np.unique(given[given > 0]):
        some = given == n
        step = size if n == size else 1
        for k in range(0, n, step):
            data[some, k : k + step] = source.read(at[some] + np.uint64(k), step, threads[some])
    into.read(to, size, threads)
    s.copies.pending.append((threads, s.copies.groups[threads], to, data))


def land(s: State, newest: int) -> None:
    """The threads that take part wait for all groups but their `newest`; -1 for what is in no group either."""
    left: list[tuple[Array, Array, Array, Array]] = []
    for threads, groups, to, data in s.copies.pending:
        now = s.active[threads] & ((newest < 0) | (groups < s.copies.groups[threads] - newest))
        s.spaces["shared"].write(to[now], data[now], threads[now])
        if not now.all():
            left.append((threads[~now], groups[~now], to[~now], data[~now]))
    s.copies.pending = left


@means("cvta")
def _generic(s: State, i: Instruction) -> None:
    """Between an address in a space and the generic one."""
    space = next(part for part in i.parts if part in SPACES)
    window = WINDOWS.get(space, 0)
    s.write(i.operands[0], s.word(i.operands[1]) + words(-window if "to" in i.parts else window))


@means("fence", "membar", "prefetch", "prefetchu", "discard", "applypriority", "griddepcontrol", "nanosleep")
def _nothing(s: State, i: Instruction) -> None:
    """Memory is in order here, and has no caches."""


@means("createpolicy")
def _policy(s: State, i: Instruction) -> None:
    """What a cache keeps longer: there is none."""
    s.write(i.operands[0], s.every(0))
