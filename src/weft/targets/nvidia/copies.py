"""cp.async and its groups, barriers, fences, and the register budget of a warp.

A copy moves `size` of its 4, 8 or 16 bytes and fills up with zeros; it is done for the issuing thread when its group
has been waited for. The meaning here is that of a copy which is done at once; when it lands is the simulator's to
choose.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from ..instruction import Array, Instruction, Memory, Operand


def _copy(width: int) -> Callable[..., tuple[Array, ...]]:
    def run(memory: Memory, to: Array, source: Array, size: Array) -> tuple[Array, ...]:
        wanted = np.broadcast_to(np.arange(width), (*to.shape[:2], width)) < size
        data = np.zeros((*to.shape[:2], width), np.uint8)
        for count in np.unique(np.clip(size, 0, width)):
            if count:
                active = np.clip(size[:, :, 0], 0, width) == count
                whole = int(count) if int(count).bit_count() == 1 else 1
                for at in range(0, int(count), whole):
                    data[:, :, at : at + whole] |= memory.read("global", source[:, :, 0] + at, whole, active)
        memory.write("shared", to[:, :, 0], np.where(wanted, data, 0).astype(np.uint8), np.ones(to.shape[:2], np.bool_))
        return ()

    return run


_TURNS = {
    "begin": ".reg .pred p; setp.ne.u32 p, <group>, 0; @p bar.arrive 14, 256;",
    "take": ".reg .b32 id; add.u32 id, <group>, 14; bar.sync id, 256;",
    "pass": ".reg .b32 id; xor.b32 id, <group>, 15; bar.arrive id, 256;",
    "end": ".reg .pred p; setp.eq.u32 p, <group>, 0; @p bar.sync 14, 256;",
}
"""Two warp groups, 0 and 1, that take turns: each waits at its own barrier, 14 or 15, for the arrival of the other.
Group 1 arrives for the first turn of group 0, which waits for the last turn of group 1: no arrival is left over."""


def _plain(name: str, since: int, text: str, touches: str, version: str = "7.0", **more: Operand) -> Instruction:
    return Instruction(name, since, text, tuple(more.values()), touches=touches, version=version)


def copy_instructions() -> Iterator[Instruction]:
    """All entries of this file."""

    def word(name: str, constraint: str = "r") -> Operand:
        return Operand(name, "i32", 1, constraint)

    source = Operand("source", "i64", 1, "l")
    for kind, width in (("ca", 4), ("ca", 8), ("ca", 16), ("cg", 16)):
        yield Instruction(
            name=f"cp.async.{kind}.{width}",
            since=80,
            text=f"cp.async.{kind}.shared.global [<to>], [<source>], {width}, <size>;",
            operands=(word("to"), source, word("size")),
            semantics=_copy(width),
            cost=2,
            touches="copy",
            width=width,
            stores=True,
        )
    yield Instruction(
        name="prefetch.bulk.L2",
        since=90,
        text="@<active> cp.async.bulk.prefetch.L2.global [<source>], <bytes>;",
        operands=(source, word("bytes"), Operand("active", "i1", 1, "b")),
        touches="sync",
        version="8.0",
    )
    yield _plain("cp.async.commit_group", 80, "cp.async.commit_group;", "sync")
    yield _plain("cp.async.wait_group", 80, "cp.async.wait_group <pending>;", "sync", pending=word("pending", "n"))
    yield _plain("bar.sync", 70, "bar.sync <id>, <threads>;", "sync", id=word("id"), threads=word("threads"))
    yield _plain("bar.warp.sync", 70, "bar.warp.sync 0xffffffff;", "sync")
    yield _plain("barrier.cluster.arrive", 90, "barrier.cluster.arrive.aligned;", "sync", "7.8")
    made = "fence.mbarrier_init.release.cluster; barrier.cluster.arrive.relaxed.aligned;"
    yield _plain("barrier.cluster.made.arrive", 90, made, "sync", "8.0")  # orders nothing but mbarriers' inits
    yield _plain("barrier.cluster.wait", 90, "barrier.cluster.wait.aligned;", "sync", "7.8")
    yield _plain("fence.mbarrier_init", 90, "fence.mbarrier_init.release.cluster;", "sync", "8.0")
    yield _plain("fence.proxy.async", 90, "fence.proxy.async.shared::cta;", "sync", "8.0")
    yield _plain("fence.proxy.async.cluster", 90, "fence.proxy.async.shared::cluster;", "sync", "8.0")
    for step, text in _TURNS.items():
        yield _plain(f"turn.{step}", 90, f"{{ {text} }}", "sync", "8.0", group=word("group"))
    for scope in ("cta", "gpu", "sys"):
        yield _plain(f"fence.acq_rel.{scope}", 70, f"fence.acq_rel.{scope};", "sync")
        yield _plain(f"fence.acquire.{scope}", 90, f"fence.acquire.{scope};", "sync", "8.6")
    for way in ("inc", "dec"):
        name = f"setmaxnreg.{way}"
        yield Instruction(
            name, 90, f"{name}.sync.aligned.u32 <count>;", (word("count", "n"),), until=100, touches="sync",
            version="8.0",
        )  # fmt: skip
