"""The dialect of PTX: accesses with a predicate or hints for the caches, atomics, asynchronous copies.

    @%p1 ld.global.v4.b32 {%r1, %r2, %r3, %r4}, [%rd1 + 16];

of which the results hold before what is to be there where the mask does not hold.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from weft.ir.lane import ELEMENT_BITS, LaneOp

from ..gpu.emitter import LLVM, Emitter, Part, Register, Sum
from ..gpu.memory import address_text, instead_of
from ..gpu.operands import Access, Shape
from .version import Version

SPACES = {"global": "global", "shared": "shared", "cluster": "shared::cluster"}
CONSTRAINTS = {"i8": "h", "i16": "h", "i32": "r", "i64": "l", "float": "f", "double": "d"}
FIRST_WITH_POLICIES = 80
"""The first capability whose L2 cache is told what to keep; on others such hints are for the L1 cache alone."""
INTEGER_KINDS = {
    "add": "add.u", "and": "and.b", "or": "or.b", "xor": "xor.b", "max": "max.s", "min": "min.s", "umax": "max.u",
    "umin": "min.u", "xchg": "exch.b", "exch": "exch.b",
}  # fmt: skip
FLOAT_ADDS = {"f32": "add.f32", "f64": "add.f64", "f16": "add.noftz.f16", "bf16": "add.noftz.bf16"}


@dataclass(frozen=True)
class Hints:
    """What an access asks of the caches: modifiers as PTX spells them, and a register with a policy for L2."""

    text: str = ""
    policy: str = ""

    def __bool__(self) -> bool:
        return bool(self.text)


def _suffix(shape: Shape) -> str:
    return f"{f'.v{shape.words}' if shape.words > 1 else ''}.b{shape.bits}"


def _braces(first: int, count: int) -> str:
    names = ", ".join(f"${first + i}" for i in range(count))
    return "{" + names + "}" if count > 1 else names


def _at(number: int, offset: int) -> str:
    return f"[${number} + {offset}]" if offset else f"[${number}]"


def _placed(modifiers: str, space: str) -> str:
    """`.volatile` comes before the space, all else after it."""
    return f"{modifiers}.{space}" if modifiers == ".volatile" else f".{space}{modifiers}"


class Memory(Version):
    """Global and shared memory."""

    counts_shared = False
    scopes: Mapping[str, str] = {"cta": "block", "gpu": "device"}
    tensor_map = 'byval([128 x i8]) align 64 "nvvm.grid_constant"'

    def hints(self, e: Emitter, op: LaneOp) -> Hints:
        """As the operation says it; a policy is of global memory."""
        attrs = op.attrs
        if attrs.get("volatile"):
            return Hints(".volatile")
        evict = attrs.get("evict")
        first = f".L1::{evict}" if evict else ""
        if attrs.get("cache"):  # PTX takes one or the other
            first = f".{attrs['cache']}"
        has_policies = evict != "no_allocate" and self.capability >= FIRST_WITH_POLICIES
        if evict and attrs["space"] == "global" and has_policies:
            text = f'call i64 asm "createpolicy.fractional.L2::{evict}.b64 $0, 1.0;", "=l"()'
            return Hints(f"{first}.L2::cache_hint", e.once(("policy", evict), text, ()))
        return Hints(first)

    def masked_load(
        self, e: Emitter, access: Access, hints: Hints, other: Sequence[Register] | None
    ) -> Sequence[Register]:
        """The words that are loaded; of single bytes the lowest parts of words of 32 bits, which computes best."""
        space, shape, mask, word = access.space, access.shape, access.mask, access.word
        type, base, offset = address_text(e, access.address, space == "global")
        n, kind = shape.words, CONSTRAINTS[word]
        arguments: list[tuple[str, str]] = []
        ties = ""
        if mask is not None:
            arguments += [(word, w) for w in instead_of(e, access, other)]
            ties = "".join(f",{i}" for i in range(n))
        start = n + len(arguments)
        arguments.append((type, base))
        predicate = ""
        if mask is not None:
            predicate = f"@${start + 1} "
            arguments.append(("i1", e.name(mask)))
        policy = f", ${n + len(arguments)}" if hints.policy else ""
        text = f"{predicate}ld{_placed(hints.text, SPACES[space])}{_suffix(shape)} {_braces(0, n)}, "
        text += f"{_at(start, offset + access.more)}{policy};"
        place = "l" if type == "i64" else "r"
        constraints = ",".join([f"={kind}"] * n) + f"{ties},{place}" + (",b" if predicate else "")
        if policy:
            arguments.append(("i64", hints.policy))
            constraints += ",l"
        words = e.asm(text, constraints, [word] * n, arguments)
        return [Part(w, 0, 4, "i8") for w in words] if shape.bits == 8 else words

    def masked_store(self, e: Emitter, access: Access, hints: Hints, words: Sequence[str]) -> None:
        """`@p st`."""
        space, shape, word = access.space, access.shape, access.word
        type, base, offset = address_text(e, access.address, space == "global")
        n, arguments = shape.words, [(type, base), *((word, w) for w in words)]
        predicate = ""
        if access.mask is not None:
            predicate = f"@${n + 1} "
            arguments.append(("i1", e.name(access.mask)))
        policy = f", ${len(arguments)}" if hints.policy else ""
        text = f"{predicate}st{_placed(hints.text, SPACES[space])}{_suffix(shape)} {_at(0, offset + access.more)}, "
        text += f"{_braces(1, n)}{policy};"
        kinds = [("l" if type == "i64" else "r"), *[CONSTRAINTS[word]] * n, *(["b"] if predicate else [])]
        if policy:
            arguments.append(("i64", hints.policy))
            kinds.append("l")
        e.asm(text, ",".join([*kinds, "~{memory}"]), (), arguments)

    # -- atomics ------------------------------------------------------------------------------------------------------

    def _atomic_name(self, e: Emitter, op: LaneOp, elem: str) -> str | None:
        """The operation and its type as PTX has them; None where there is no such instruction."""
        kind, bits = op.attrs["kind"], ELEMENT_BITS[elem]
        if kind in ("xchg", "exch"):
            return f"exch.b{bits}" if bits >= 32 else None
        if kind == "fadd" or (kind == "add" and elem not in ("i32", "i64")):
            if elem == "bf16" and self.capability < 90:
                if op.attrs.get("vector", 1) != 1:
                    raise e.fail(op, "atomic additions of two bf16")
                return None
            return FLOAT_ADDS.get(elem)
        if elem in ("i32", "i64") and kind in INTEGER_KINDS:
            return f"{INTEGER_KINDS[kind]}{bits}"
        return None

    def atomic(
        self, e: Emitter, op: LaneOp, elem: str, address: Register, new: Sequence[Register], mask: Register | None
    ) -> list[Register] | None:
        """`atom`, which LLVM makes `red` where nobody reads what was there."""
        name = self._atomic_name(e, op, elem)
        if name is None:
            return None
        if len(new) > 1 and self.capability >= 90:
            self.needs("8.1")
            return _vector_atomic(e, op, name, elem, address, new, mask)
        return _one_atomic(e, op, name + "x2" * (len(new) == 2), elem, address, new, mask)

    def ordered(
        self, e: Emitter, op: LaneOp, elem: str, address: Register, new: Register, mask: Register | None
    ) -> Register:
        """`ld.acquire.gpu.global.b32`, `st.release.gpu.global.b32`: what is there; of a store nothing."""
        type, base, offset = address_text(e, address, op.attrs["space"] == "global")
        word, loads = _word_of(elem), op.attrs["kind"] == "load"
        kind, place = CONSTRAINTS[word], "l" if type == "i64" else "r"
        suffix = f".{op.attrs['order']}.{op.attrs['scope']}.{SPACES[op.attrs['space']]}.b{ELEMENT_BITS[elem]}"
        arguments, kinds = [(type, base)], [place]
        if loads and mask is not None:
            arguments, kinds = [(word, "0"), *arguments], ["0", *kinds]
        if not loads:
            operand = e.name(new)
            arguments.append((word, operand if word == LLVM[elem] else e.early(f"zext {LLVM[elem]}", operand, to=word)))
            kinds.append(kind)
        if mask is not None:
            arguments.append(("i1", e.name(mask)))
            kinds.append("b")
        first = 1 if loads else 0
        at = first + (loads and mask is not None)
        predicate = f"@${first + len(kinds) - 1} " if mask is not None else ""
        if not loads:
            text = f"{predicate}st{suffix} {_at(at, offset)}, ${at + 1};"
            e.asm(text, ",".join([*kinds, "~{memory}"]), (), arguments)
            return e.constant(elem, 0)
        text = f"{predicate}ld{suffix} $0, {_at(at, offset)};"
        old = e.asm(text, ",".join([f"={kind}", *kinds, "~{memory}"]), [word], arguments)[0]
        return old if word == LLVM[elem] else e.pure(f"trunc {word} {old} to {LLVM[elem]}")

    def compare_and_swap(
        self, e: Emitter, op: LaneOp, address: Register, old: Register, new: Register, mask: Register | None
    ) -> Register:
        """`atom.cas`."""
        elem = op.operands[2].elem
        bits, type = ELEMENT_BITS[elem], LLVM[elem]
        if bits < 16:
            raise e.fail(op, f"compare-and-swap of {elem}")
        word = f"i{bits}"
        kind = CONSTRAINTS[word]
        place, base, offset = address_text(e, address, op.attrs["space"] == "global")
        kinds = [f"={kind}", "l" if place == "i64" else "r", kind, kind]
        arguments = [(place, base), (word, _bits(e, old, elem)), (word, _bits(e, new, elem))]
        predicate = ""
        if mask is not None:
            predicate = "@$5 "
            arguments += [(word, "0"), ("i1", e.name(mask))]
            kinds += ["0", "b"]
        text = f"{predicate}atom{_ordered(op, swap=True)}.cas.b{bits} $0, {_at(1, offset)}, $2, $3;"
        swapped = e.asm(text, ",".join([*kinds, "~{memory}"]), [word], arguments)
        return swapped[0] if type == word else e.ins(f"bitcast {word} {swapped[0]} to {type}")

    # -- other blocks, and asynchronous copies ------------------------------------------------------------------------

    def remote(self, e: Emitter, address: str, rank: str) -> str:
        """`mapa`."""
        text = "mapa.shared::cluster.u32 $0, $1, $2;"
        return e.asm(text, "=r,r,r", ["i32"], [("i32", address), ("i32", rank)], effects=False)[0]

    def copy(self, e: Emitter, op: LaneOp, target: Register, source: Register, mask: Register | None) -> None:
        """`cp.async`."""
        size = op.attrs["bytes"]
        kind = op.attrs.get("cache") or ("cg" if size == 16 else "ca")
        _, target_base, offset = address_text(e, target, False)
        _, source_base, distance = address_text(e, source, True)
        text = f"cp.async.{kind}.shared.global {_at(0, offset)}, {_at(1, distance)}, {size}"
        arguments, constraints = [("i32", target_base), ("i64", source_base)], "r,l"
        if mask is not None:  # by a predicate for zeros a matmul of 128x128x64 in four warps was 6 % slower
            name = e.name(mask)
            is_size = op.operands[2].elem == "i32"
            arguments.append(("i32", name if is_size else e.pure(f"select i1 {name}, i32 {size}, i32 0")))
            text, constraints = f"{text}, $2", f"{constraints},r"
        e.asm(f"{text};", f"{constraints},~{{memory}}", (), arguments)

    def await_copies(self, e: Emitter, op: LaneOp) -> None:
        """Groups of them."""
        text = "commit_group" if op.name == "commit_async" else f"wait_group {int(op.attrs['pending'])}"
        e.asm(f"cp.async.{text};", "~{memory}", (), ())


def _word_of(elem: str) -> str:
    bits = ELEMENT_BITS[elem]
    return LLVM[elem] if bits >= 32 else "i16"


def _ordered(op: LaneOp, *, swap: bool = False) -> str:
    """Where, as seen by whom and how ordered, in the order in which Triton writes it, whose users look for it."""
    order, scope = op.attrs.get("order", "acq_rel"), op.attrs.get("scope", "gpu")
    space = SPACES[op.attrs["space"]]
    return f".{space}.{order}.{scope}" if swap else f".{space}.{scope}.{order}"


def _one_atomic(
    e: Emitter,
    op: LaneOp,
    name: str,
    elem: str,
    address: Register,
    new: Sequence[Register],
    mask: Register | None,
) -> list[Register]:
    unused = not op.results or op.results[0] not in e.uses
    type, base, offset = address_text(e, address, op.attrs["space"] == "global")
    word = _word_of(elem) if len(new) == 1 else "i32"
    kind, place = CONSTRAINTS[word], "l" if type == "i64" else "r"
    is_increment = isinstance(new[0], Sum) and not new[0].base and new[0].offset == 1
    if unused and is_increment and name == "add.u32" and op.attrs["space"] == "cluster":  # as Triton writes it
        text, counted = f"red{_ordered(op)}.inc.u32 {_at(0, offset)}, -1;", [(type, base)]
        if mask is not None:
            text, counted = f"@$1 {text}", [*counted, ("i1", e.name(mask))]
        e.asm(text, ",".join([place, *(["b"] if mask is not None else []), "~{memory}"]), (), counted)
        return [e.constant(elem, 0)]
    operand = e.name(new[0]) if word == LLVM[elem] else e.word(new, LLVM[elem])
    arguments, kinds = [(type, base), (word, operand)], [place, kind]
    if mask is not None and not unused:
        arguments.insert(0, (word, "0" if word[0] == "i" else "0.0"))
        kinds.insert(0, "0")
    kinds.insert(0, f"={kind}")
    last = len(kinds) - 1
    predicate = ""
    if mask is not None:
        predicate = f"@${last + 1} "
        arguments.append(("i1", e.name(mask)))
        kinds.append("b")
    text = f"{predicate}atom{_ordered(op)}.{name} $0, {_at(last - 1, offset)}, ${last};"  # red, if $0 is not used
    old = e.asm(text, ",".join([*kinds, "~{memory}"]), [word], arguments)
    return [old[0]] if word == LLVM[elem] else list(e.parts(old[0], LLVM[elem], len(new)))


def _vector_atomic(
    e: Emitter, op: LaneOp, name: str, elem: str, address: Register, new: Sequence[Register], mask: Register | None
) -> list[Register]:
    """Several additions of one instruction, of a register each."""
    type, base, offset = address_text(e, address, True)
    word, n = _word_of(elem), len(new)
    kind, place = CONSTRAINTS[word], "l" if type == "i64" else "r"
    operands = [e.name(x) if word == LLVM[elem] else e.word([x], LLVM[elem]) for x in new]
    arguments, kinds, predicate = [(type, base), *((word, x) for x in operands)], [place, *[kind] * n], ""
    start = n
    if mask is not None:
        zero = "0" if word[0] == "i" else "0.0"
        arguments, kinds, start = [*[(word, zero)] * n, *arguments], [*map(str, range(n)), *kinds], 2 * n
        predicate = f"@${start + 1 + n} "
        arguments.append(("i1", e.name(mask)))
        kinds.append("b")
    kinds = [*[f"={kind}"] * n, *kinds]
    operation, _, of = name.rpartition(".")
    text = f"{predicate}atom{_ordered(op)}.{operation}.v{n}.{of} {_braces(0, n)}, {_at(start, offset)}, "
    text += f"{_braces(start + 1, n)};"
    old = e.asm(text, ",".join([*kinds, "~{memory}"]), [word] * n, arguments)
    return [x if word == LLVM[elem] else e.parts(x, LLVM[elem], 1)[0] for x in old]


def _bits(e: Emitter, register: Register, elem: str) -> str:
    type, name = LLVM[elem], e.name(register)
    return name if type[0] == "i" else e.pure(f"bitcast {type} {name} to i{ELEMENT_BITS[elem]}")
