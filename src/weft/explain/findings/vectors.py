"""Findings about vectors of a CPU: loops without any, lanes that are loaded one by one, masks, conversions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from math import prod

from weft.base.remarks import InMemory, LoopNest, NotFused, VectorAccess

from ..record import Access, Finding
from .rule import CPU, Facts, rule

__all__ = [
    "data_mask", "gathered_access", "masked_tail", "narrow_conversion", "narrow_vectors", "reloaded_store",
    "scalar_loop", "scattered_atomics", "strided_access",
]  # fmt: skip

MANY = 64
"""Elements of a tile below which nothing is said of its loops."""
MANY_BYTES = 1 << 15
"""Bytes of a launch's access below which nothing is said: it takes no time."""
APART = ("element by element", "elements near each other", "runs of ")
"""How the form of an access begins whose lanes are loaded or stored by several instructions."""
LOADED = "at addresses that are loaded"
OWN_WAY = "each element may take a way of its own"
WIDE = "an element of 64 bits"
"""Reasons of loops without lanes, as the compiler words them, that a kernel's author can do away with."""
WIDEST = 64
"""Bits of the widest elements."""
AGAIN = 4
"""How often the bytes of an array are converted from which on it is worth to have them converted before."""

TAIL = 0.6
"""The part of the elements of tiles within their bounds below which the rest is spoken of."""
FEW_PROGRAMS = 8
"""Programs below which a tile that is larger than the data is no matter: there is one such launch, and it is short."""


def _accesses(facts: Facts) -> Iterator[tuple[Access, VectorAccess]]:
    """Those of vectors, but for those of which it is known that they move little."""
    for access in facts.explanation.accesses:
        r = access.remark
        if isinstance(r, VectorAccess) and not 0 < _bytes(access) < MANY_BYTES:
            yield access, r


def _bytes(access: Access) -> int:
    return sum(n for name, n in access.counts.items() if name in ("global_load_bytes", "global_store_bytes"))


@rule("strided-access", on=CPU)
def strided_access(facts: Facts) -> Iterator[Finding]:
    """Lanes whose elements are apart from each other in memory by a known distance."""
    for _, r in _accesses(facts):
        if r.access in ("load", "store") and r.form.startswith(APART) and " apart" in r.fact:
            fix = "let a dimension of the tile run along contiguous elements: exchange dimensions, or keep fields apart"
            yield Finding("strided-access", r.span, f"a {r.access} of {r.tile} {_by(r.form)}", r.fact, fix)


@rule("gathered-access", on=CPU)
def gathered_access(facts: Facts) -> Iterator[Finding]:
    """Lanes each of which has an address of its own from memory."""
    for _, r in _accesses(facts):
        if r.access in ("load", "store") and r.form.startswith(APART) and LOADED in r.fact:
            fix = "look up whole rows, and let the lanes run along the row: ids[:, None] * columns + j[None, :]"
            yield Finding("gathered-access", r.span, f"a {r.access} of {r.tile} {_by(r.form)}", r.fact, fix)


def _by(form: str) -> str:
    return form if form.startswith("element by") else f"by {form}"


@rule("scattered-atomics", on=CPU)
def scattered_atomics(facts: Facts) -> Iterator[Finding]:
    """Atomic operations of a tile that are done one after the other."""
    for access, r in _accesses(facts):
        if r.access == "atomic" and r.form == "one after the other" and prod(access.shape) >= MANY:
            what = f"{prod(access.shape):,} atomic operations of a tile, one after the other"
            fix = "combine within the program first (tl.sum, tl.histogram), then change each place once"
            yield Finding("scattered-atomics", r.span, what, r.fact, fix)


@rule("scalar-loop", on=CPU)
def scalar_loop(facts: Facts) -> Iterator[Finding]:
    """A loop over a tile that does one element after the other."""
    wide = any(p.pointee in ("f64", "i64") for p in facts.program.parameters) if facts.program is not None else True
    for r in facts.explanation.remarks.of(LoopNest):
        if r.lanes > 1 or prod(r.shape) < MANY:
            continue
        if r.scalar.startswith(OWN_WAY):
            fix = "compute both ways for all elements, and choose by tl.where"
        elif r.scalar.startswith(WIDE) and not wide:
            fix = "compute in 32 bits: no array of the kernel has more"
        else:
            continue
        what = f"{prod(r.shape):,} elements are computed one after the other"
        yield Finding("scalar-loop", r.span, what, r.scalar, fix)


@rule("data-mask", on=CPU)
def data_mask(facts: Facts) -> Iterator[Finding]:
    """A store whose mask depends on data, so that no tile is stored without a mask."""
    for _, r in _accesses(facts):
        if r.access == "store" and r.mask:
            fix = "store every element within the bounds, and choose the value with tl.where"
            yield Finding("data-mask", r.span, f"a store of {r.tile} computes a mask for each vector", r.mask, fix)


@rule("masked-tail", on=CPU)
def masked_tail(facts: Facts) -> Iterator[Finding]:
    """Tiles that are much larger than the rows in them, in all programs that keep or reduce tiles; loops that only load
    and store end where the row does."""
    e = facts.explanation
    nests = e.remarks.of(LoopNest)
    reduced = any(site.what == "tt.reduce" for r in nests for site in r.does) or any(e.remarks.of(InMemory))
    if facts.program is None or not reduced or not e.counts.exact or prod(e.grid) < FEW_PROGRAMS:
        return
    for access, r in _accesses(facts):
        counts = facts.places.get(r.span, Counter[str]())
        of = f"{r.access}.global."
        held = sum(n for name, n in counts.items() if name.startswith(f"threads:{of}"))
        every = facts.program.lanes * sum(n for name, n in counts.items() if name.startswith(f"kind:{of}"))
        if r.mask or prod(access.shape) <= facts.program.lanes or not held or held >= TAIL * every:
            continue
        what = f"{1 - held / every:.0%} of the elements of a tile of {r.tile} lie beyond the bounds of its {r.access}"
        why = "what is kept of the tile takes room in the caches, and loops that carry tiles go through all of it"
        fix = "take the next power of two of the row's length, or a loop with tiles that nearly divide the row"
        yield Finding("masked-tail", r.span, what, why, fix)


@rule("narrow-vectors", on=CPU)
def narrow_vectors(facts: Facts) -> Iterator[Finding]:
    """Loops whose vectors are not as wide as those of the processor, although they could be."""
    program = facts.program
    if program is None or sum(facts.touched.values()) < MANY_BYTES:
        return
    wide = any(p.pointee in ("f64", "i64") for p in program.parameters)
    for r in facts.explanation.remarks.of(LoopNest):
        all = r.vector_bits // max(1, r.bits)
        if r.lanes > 1 and r.lanes < all and r.lanes == prod(r.shape):
            what = f"vectors have {r.lanes} elements, of {all} that there is room for"
            why = f"the tile has no more than {r.lanes} elements"
            yield Finding("narrow-vectors", r.span, what, why, f"let a program, or a turn of a loop, do {all} or more")
        elif r.lanes > 1 and r.bits == WIDEST and not wide:
            what = f"vectors have {r.lanes} elements, of {2 * r.lanes} that there is room for"
            why = "something is computed in 64 bits, although no array of the kernel has more than 32"
            yield Finding("narrow-vectors", r.span, what, why, "compute in 32 bits")


@rule("reloaded-store", on=CPU)
def reloaded_store(facts: Facts) -> Iterator[Finding]:
    """A load of what the program has just stored, for which its loops are apart."""
    for r in facts.explanation.remarks.of(NotFused):
        if r.reason == NotFused.LOADED_AGAIN:
            line = f" on line {r.into.span.line}" if r.into.span is not None else ""
            fix = "use the variable that was stored instead of loading it again"
            yield Finding("reloaded-store", r.span, f"a loop of its own, instead of one with that{line}", r.reason, fix)


@rule("narrow-conversion", on=CPU)
def narrow_conversion(facts: Facts) -> Iterator[Finding]:
    """Elements of 8-bit floats, for which there are no instructions, that are converted again and again."""
    if facts.program is None:
        return
    narrow = {p.name: p.pointee for p in facts.program.parameters if p.pointee.startswith("f8")}
    for (span, name, verb), bytes in facts.touched.items():
        size = facts.sizes.get(name, 0)
        if verb == "load" and name in narrow and size and bytes >= max(MANY_BYTES, AGAIN * size):
            yield Finding(
                "narrow-conversion",
                span,
                f"each element of `{name}` is converted {int(bytes // size):,} times",
                f"the processor has no instruction that converts {narrow[name]}, so integer operations do it",
                "convert the array to float16 or bfloat16 before, or let a program do several rows with what it loads",
            )
