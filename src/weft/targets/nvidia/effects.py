"""What instructions do to shared memory, at once or later, and what they wait for: of all that is no plain access."""

from __future__ import annotations

from ..instruction import Effects, Instruction, Reach

__all__ = ["effects"]


def effects(entry: Instruction) -> Effects:
    """Of an entry of the table."""
    name = entry.name
    if name.startswith("barrier.cluster."):
        return Effects(meets=name.rpartition(".")[2])
    if ".wait_group" in name:
        return Effects(waits="bulk" if "bulk" in name else "product")
    if name == "wgmma.commit_group":
        return Effects(closes="product")
    if entry.touches == "barrier":
        return _on_mbarrier(entry)
    if name.startswith("tensormap."):
        return _on_map(entry)
    if entry.touches == "bulk":
        return _by_copy_engine(entry)
    if name.startswith("wgmma") and entry.touches == "shared":
        descriptors = (o.name for o in entry.operands if o.constraint == "l")
        return Effects(tuple(Reach(operand, 1, "read", later="product") for operand in descriptors))
    return entry.effects()


def _has(entry: Instruction, name: str) -> bool:
    return any(o.name == name for o in entry.operands)


def _on_mbarrier(entry: Instruction) -> Effects:
    is_made, active = entry.name in ("mbarrier.init", "mbarrier.inval"), _has(entry, "active")
    how, far = "write" if is_made else "atomic", entry.name.endswith(".remote")
    each = entry.name.startswith("mbarrier.arrive.each")
    reach = Reach(entry.operands[0].name, 8, how, active, release=active and not is_made, each=each, far=far)
    return Effects((reach,), lasting=entry.name == "mbarrier.init")


def _on_map(entry: Instruction) -> Effects:
    """A field somewhere in 128 bytes, or all of them."""
    if entry.touches == "sync":
        return Effects()
    writes = entry.touches == "shared"
    place = entry.operands[0 if writes else 1].name
    return Effects((Reach(place, 128, "write" if writes else "read", _has(entry, "active")),))


def _by_copy_engine(entry: Instruction) -> Effects:
    """Bytes that come are counted at an mbarrier; `st.async` is by each thread for itself, and says nothing of what
    others have done."""
    if not _has(entry, "active"):
        return Effects()
    sent = entry.name.startswith("st.async")
    far = sent or _has(entry, "blocks")
    later, how = ("barrier", "write") if entry.stores else ("bulk", "read")
    moved = Reach("to" if entry.stores else "source", 1, how, later=later, far=far)
    if not _has(entry, "barrier"):
        return Effects((moved,))
    return Effects((Reach("barrier", 8, "atomic", True, release=not sent, far=far), moved))
