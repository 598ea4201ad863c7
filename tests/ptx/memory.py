"""Loads, stores, atomics, asynchronous copies.

Atomics are done thread by thread, in their order. An asynchronous copy reads when it is issued and writes when it is
waited for, as late as PTX lets it ("Data Movement and Conversion Instructions", cp.async.wait_group): what does not
wait reads what was there before.
"""

from __future__ import annotations

import numpy as np

from weft.sim.nvidia.ptx_table import atomic
from weft.sim.nvidia.ptx_text import Register
from weft.sim.nvidia.ptx_values import BITS, DTYPES, as_bits

from .spaces import WINDOWS, Space
from .state import Array, Fault, Operand, Place, State, Statement, Unknown, means, parts_of, words

SPACES = ("param", "shared", "global", "const", "local")


def locate(s: State, operand: Operand, words_of_name: tuple[str, ...]) -> tuple[Space, Array, Array]:
    """The space of an access, the threads that take part, and their addresses in it."""
    if not isinstance(operand, Place):
        raise Unknown(f"address {operand}")
    threads = np.flatnonzero(s.active)
    addresses = s.full(operand.base, "b64")[threads] + words(operand.offset)
    given = {word.partition("::")[0] for word in words_of_name}
    name = next((space for space in SPACES if space in given), "")
    if not name:
        tops = set((addresses >> np.uint64(56)).tolist())
        if len(tops) > 1:
            raise Unknown("generic addresses of more than one space")
        name = {top >> 56: space for space, top in WINDOWS.items()}.get(min(tops, default=0), "global")
        addresses = addresses & np.uint64((1 << 56) - 1)
    elif name == "shared":
        addresses = addresses & np.uint64(0xFFFFFFFF)
    return s.spaces["global" if name == "const" else name], addresses, threads


@means("ld", "ldu")
def _load(s: State, i: Statement) -> None:
    """Signed elements fill a register that is wider by their sign, others by zeros ("Operand Size Exceeding ...")."""
    dtype, registers = DTYPES[i.name[-1]], parts_of(i.operands[0])
    space, addresses, threads = locate(s, i.operands[1], i.name)
    data = space.read(addresses, len(registers) * dtype.itemsize, threads)
    values = np.ascontiguousarray(data).view(dtype)
    for k, register in enumerate(registers):
        value = values[:, k].astype(np.int64) if dtype.kind == "i" else values[:, k]
        s.write(register, _spread(s, threads, as_bits(value)))


def _spread(s: State, threads: Array, value: Array) -> Array:
    """A value of some threads, zeros elsewhere."""
    word = np.zeros(s.threads, value.dtype)
    word[threads] = value
    return word


@means("st")
def _store(s: State, i: Statement) -> None:
    if "param" in i.name:
        raise Unknown(f"a called function: {i}")
    space, addresses, threads = locate(s, i.operands[0], i.name)
    values = np.stack([s.full(register, i.name[-1])[threads] for register in parts_of(i.operands[1])], 1)
    space.write(addresses, values.view(np.uint8).reshape(len(threads), -1), threads)


@means("atom", "red")
def _atomic(s: State, i: Statement) -> None:
    """atom gives what was there before; red does not."""
    returns = i.name[0] == "atom"
    place, *values = i.operands[1:] if returns else i.operands
    update, each = atomic(i.name), np.dtype(f"u{BITS[i.name[-1]] // 8}")
    given = [np.stack([s.full(r, i.name[-1]) for r in parts_of(value)], 1) for value in values]
    count = given[0].shape[1]
    space, addresses, threads = locate(s, place, i.name)
    before = np.zeros((s.threads, count), each)
    for k, thread in enumerate(threads):
        here, who = addresses[k : k + 1], threads[k : k + 1]
        before[thread] = space.read(here, each.itemsize * count, who)[0].copy().view(each)
        after = update(before[thread], *(value[thread] for value in given)).astype(each)
        space.write(here, after.view(np.uint8)[None], who)
    if returns:
        for k, register in enumerate(parts_of(i.operands[0])):
            s.write(register, before[:, k].copy())


@means("cp")
def _copy(s: State, i: Statement) -> None:
    """cp.async: bytes beyond `src-size`, and all where `ignore-src` is true, are zeros, and are not read."""
    if "async" not in i.name or "bulk" in i.name or "mbarrier" in i.name:
        raise Unknown(str(i))
    if "commit_group" in i.name:
        s.copies.groups[s.active] += 1
        return
    if "wait_group" in i.name or "wait_all" in i.name:
        land(s, int(s.full(i.operands[0], "b32")[0]) if "wait_group" in i.name else -1)
        return
    size = int(s.full(i.operands[2], "b32")[0])
    into, to, threads = locate(s, i.operands[0], ("shared",))
    source, at, _ = locate(s, i.operands[1], ("global",))
    given = np.full(len(threads), size)
    if len(i.operands) > 3:
        if isinstance(i.operands[3], Register) and i.operands[3].name.startswith("%p"):
            given[s.read(i.operands[3], "pred")[threads]] = 0
        else:
            given = s.full(i.operands[3], "b32")[threads].astype(np.int64)
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
def _generic(s: State, i: Statement) -> None:
    """Between an address in a space and the generic one."""
    space = next(part for part in i.name if part in SPACES)
    window = WINDOWS.get(space, 0)
    s.write(i.operands[0], s.read(i.operands[1], "b64") + words(-window if "to" in i.name else window))


@means("fence", "membar", "prefetch", "prefetchu", "discard", "applypriority", "griddepcontrol", "nanosleep")
def _nothing(s: State, i: Statement) -> None:
    """Memory is in order here, and has no caches."""


@means("trap", "brkpt")
def _trap(s: State, i: Statement) -> None:
    raise Fault("the kernel stops by itself")


@means("createpolicy")
def _policy(s: State, i: Statement) -> None:
    """What a cache keeps longer: there is none."""
    s.write(i.operands[0], s.every(0))
