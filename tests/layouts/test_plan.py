"""Conversion plans: 20,000 random ones executed on every element (a fourth by `make test`); kinds; a published one."""

from __future__ import annotations

import cProfile
import itertools
import random
from collections.abc import Sequence

import numpy as np
import pytest

from one_in import one_in
from weft.layouts import BlockedLayout, LayoutError, LinearLayout, SliceLayout, f2
from weft.layouts.banks import passes
from weft.layouts.plan import MACHINES, Machine, Offsets, best_access, machine_of, plan_conversion
from weft.layouts.plan.conversion import forget_plans, normalised
from weft.layouts.plan.search import Planner
from weft.layouts.plan.steps import steps_of
from weft.layouts.plan.swaps import Swap
from weft.layouts.plan.trip import Trip
from weft.layouts.tables import _planned

from .plans import filled, verify_many

CHUNK = 500


def layout(register, lane, warp=(), block=(), shape=(128, 128)) -> LinearLayout:
    bases = {"register": register, "lane": lane, "warp": list(warp), "block": list(block)}
    return LinearLayout.from_bases(bases, {f"dim{i}": s for i, s in enumerate(shape)})


ROWS = layout(
    [(0, 1), (0, 2), (16, 0), (32, 0), (64, 0), (0, 64)],
    [(0, 4), (0, 8), (0, 16), (0, 32), (1, 0)],
    [(2, 0), (4, 0), (8, 0)],
)
COLUMNS = layout(
    [(1, 0), (2, 0), (0, 16), (0, 32), (0, 64), (64, 0)],
    [(4, 0), (8, 0), (16, 0), (32, 0), (0, 1)],
    [(0, 2), (0, 4), (0, 8)],
)
MMA = layout(
    [(0, 1), (8, 0), (0, 8), (0, 16), (0, 32), (0, 64)],
    [(0, 2), (0, 4), (1, 0), (2, 0), (4, 0)],
    [(16, 0), (32, 0), (64, 0)],
)


@pytest.mark.parametrize("first", one_in(4, range(0, 20_000, CHUNK)))
@pytest.mark.thinned(3)
def test_random_plans(first: int) -> None:
    kinds = verify_many(first, CHUNK)
    assert {"shuffles", "shared", "cluster"} <= set(kinds)


@pytest.mark.parametrize("seed", [294126])
def test_plans_that_once_had_conflicts(seed: int) -> None:
    """Found by the long campaign: a register common to both sides that lanes and warps of both together make too."""
    verify_many(seed, 1)


def test_nothing_and_renaming() -> None:
    assert plan_conversion(ROWS, ROWS, (128, 128), 16).kind == "nothing"
    bases = {d: list(b) for d, b in ROWS.bases.items()}
    bases["register"].reverse()
    other = LinearLayout.from_bases(bases, ROWS.out_dims)
    plan = plan_conversion(ROWS, other, (128, 128), 16)
    assert (plan.kind, plan.cost.cycles) == ("registers", 0)
    assert np.array_equal(plan.run(filled(ROWS)), filled(other))


def test_a_copy_in_every_warp_stays_within_the_warp() -> None:
    """The textbook choice of a source is warp 0; there is one in every warp."""
    src = layout([(1, 0), (2, 0)], [(0, 1), (0, 2), (0, 4), (0, 8), (0, 16)], [(0, 0), (0, 0)], shape=(4, 32))
    dst = layout([(0, 1), (1, 0)], [(2, 0), (0, 2), (0, 4), (0, 8), (0, 16)], [(0, 0), (0, 0)], shape=(4, 32))
    plan = plan_conversion(src, dst, (4, 32), 32)
    assert plan.kind == "shuffles"
    pieces = layout([(2, 0)], [(0, 1), (0, 2), (0, 4), (0, 8), (0, 16)], [(1, 0), (0, 0)], shape=(4, 32))
    plan = plan_conversion(src, pieces, (4, 32), 32)
    assert (plan.kind, plan.cost.instructions.get("shuffle", 0)) == ("shuffles", 0)


def test_the_exchange_of_a_register_and_a_lane_bit() -> None:
    """Half of the registers are shuffled, each select costs one of them: (1 - 2^-1) R shuffles, 2 R selects at most."""
    src = layout([(1, 0), (2, 0)], [(0, 1), (0, 2), (0, 4), (0, 8), (0, 16)], shape=(4, 32))
    dst = layout([(0, 1), (2, 0)], [(1, 0), (0, 2), (0, 4), (0, 8), (0, 16)], shape=(4, 32))
    cost = plan_conversion(src, dst, (4, 32), 32).cost
    assert cost.instructions["shuffle"] == 2
    assert cost.instructions["select"] <= 8


def test_matrix_instructions_are_found() -> None:
    """From and to the accumulators of a matrix instruction, in 16 bits."""
    wide = layout(
        [(0, 1), (0, 2), (0, 4), (32, 0), (64, 0), (0, 64)],
        [(0, 8), (0, 16), (0, 32), (1, 0), (2, 0)],
        [(4, 0), (8, 0), (16, 0)],
    )
    out = plan_conversion(MMA, wide, (128, 128), 16, "cuda:90")
    assert "stmatrix.x4" in out.cost.instructions and "ld.shared.b128" in out.cost.instructions
    back = plan_conversion(wide, MMA, (128, 128), 16, "cuda:80")
    assert "ldmatrix.x4" in back.cost.instructions and "st.shared.b128" in back.cost.instructions


def test_the_choice_is_by_cost() -> None:
    """The same conversion, on machines with dear and with cheap shuffles."""
    src = layout([(1, 0), (2, 0)], [(0, 1), (0, 2), (0, 4), (0, 8), (0, 16)], shape=(4, 32))
    dst = layout([(0, 1), (0, 2)], [(1, 0), (2, 0), (0, 4), (0, 8), (0, 16)], shape=(4, 32))
    assert plan_conversion(src, dst, (4, 32), 32, Machine("cheap", shuffle=1.0)).kind == "shuffles"
    dear = plan_conversion(src, dst, (4, 32), 32, Machine("dear", shuffle=100.0))
    assert (dear.kind, dear.scope) == ("shared", "warp")
    assert "shuffles: 308 cycles, 3 shuffle, 16 select" in dear.explain()


@pytest.mark.parametrize(("size", "bits", "warps"), [(128, 8, 8), (64, 16, 4)])
def test_an_exchange_first_where_that_is_cheaper(size: int, bits: int, warps: int) -> None:
    """Transpositions of small elements: one exchange of registers and lanes makes the vectors in memory wider."""
    shape = (size, size)
    rows = BlockedLayout([1, 8], [2, 16], [warps, 1], [1, 0])
    columns = BlockedLayout([8, 1], [16, 2], [1, warps], [0, 1])
    plan = plan_conversion(rows, columns, shape, bits)
    prices = {kind: cycles for kind, cycles, _ in plan.considered}
    assert plan.kind == "hybrid" and plan.cost.cycles == prices["hybrid"] < prices["shared"]
    assert {"shuffle", "permute"} < set(plan.cost.instructions)
    source, result = normalised(rows, shape, "source"), normalised(columns, shape, "destination")
    direct = Planner(source, result.invert_and_compose(source), bits, machine_of("cuda:80")).best()
    trip = next(stage.how for stage in plan.stages if isinstance(stage.how, Trip))
    assert trip.store.vector + trip.load.vector > direct.store.vector + direct.load.vector
    plan.check()
    assert np.array_equal(plan.run(filled(source)), filled(result))


def test_bytes_change_places_within_words_and_between_lanes() -> None:
    """A transposition of bytes: words on both sides of the trip, as wide as there are, for three permutations and one
    shuffle of two words."""
    rows = BlockedLayout([1, 16], [4, 8], [4, 1], [1, 0])
    columns = BlockedLayout([16, 1], [8, 4], [1, 4], [0, 1])
    for a, b in ((rows, columns), (columns, rows)):
        plan = plan_conversion(a, b, (128, 128), 8, "cuda:90")
        counted = dict(plan.cost.instructions)
        assert (counted["shuffle"], counted["permute"]) == (32, 96)
        assert sum(counted.get(wide, 0) for wide in ("ld.shared.b128", "ldmatrix.x4")) == 8
        assert plan.cost.wavefronts == 64
        prices = {kind: cycles for kind, cycles, _ in plan.considered}
        assert plan.cost.cycles == prices["hybrid"] < 0.6 * prices["shared"]
        plan.check()
        assert "elements of 8 bits change places within words of 4 and between lanes" in plan.explain()
        assert np.array_equal(plan.run(filled(plan.src)), filled(plan.dst))


@pytest.mark.parametrize("each", [2, 4])
@pytest.mark.parametrize("lane", [0, 3, 4])
def test_swap_of_a_bit_within_words_and_a_lane_bit(each: int, lane: int) -> None:
    """Executed, and as selectors, against the exchange of two bits of the index."""
    values = np.arange(32 * 4 * each).reshape(1, 32, 4, each)
    for bit in range(each.bit_length() - 1):
        w, x, k, e = np.indices(values.shape)
        source = x & ~(1 << lane) | (e >> bit & 1) << lane
        element = e & ~(1 << bit) | (x >> lane & 1) << bit
        assert np.array_equal(Swap(bit, lane).run(values), values[w, source, k, element])
        for odd in (0, 1):
            for places, selector in zip(Swap(bit, lane).places(each, odd), Swap(bit, lane).selectors(each, odd)):
                named = [(selector >> 4 * i & 7) for i in range(4)]
                size = 4 // each
                assert named == [4 * word + size * n + b for word, n in places for b in range(size)]


def test_small_elements_are_packed() -> None:
    """Steps, cost and explanation; without packing every element would take a shuffle of its own."""
    src = layout([(1, 0), (2, 0)], [(0, 1), (0, 2), (0, 4), (0, 8), (0, 16)], shape=(4, 32))
    dst = layout([(1, 0), (0, 1)], [(2, 0), (0, 2), (0, 4), (0, 8), (0, 16)], shape=(4, 32))
    found = plan_conversion(src, dst, (4, 32), 16)
    assert found.cost.instructions == {"pack": 2, "unpack": 4, "shuffle": 1, "select": 4}
    assert "words of 2 elements of 16 bits are packed, shuffled and unpacked" in found.explain()
    (stage,) = found.stages
    kinds = [type(step).__name__ for step in steps_of(stage.how)]
    assert kinds == ["Pack", "Exchange", "Shuffle", "Exchange", "Unpack"]
    wide = plan_conversion(src, dst, (4, 32), 32)
    assert wide.cost.instructions == {"shuffle": 2, "select": 8} and "packed" not in wide.explain()


def test_memory_that_is_short_is_used_again() -> None:
    small = Machine("small", shared_bytes=16 * 1024)
    plan = plan_conversion(ROWS, COLUMNS, (128, 128), 32, small)
    (stage,) = plan.stages
    assert stage.how.repetitions == 4 and plan.cost.scratch_bytes == 16 * 1024
    assert plan.cost.barriers == {"block": 7}
    plan.check()
    assert np.array_equal(plan.run(filled(ROWS)), filled(COLUMNS))


TILED = [
    BlockedLayout([1, 4], [8, 4], [4, 1], [1, 0]),
    BlockedLayout([4, 1], [4, 8], [1, 4], [0, 1]),
    BlockedLayout([1, 1], [1, 32], [1, 4], [1, 0]),
    BlockedLayout([16, 1], [8, 4], [1, 4], [0, 1]),
    SliceLayout(2, BlockedLayout([1, 1, 2], [8, 4, 1], [4, 1, 1], [2, 1, 0])),
]


@pytest.mark.parametrize(
    ("size", "bits", "kib"), [(128, 64, 99), (128, 64, 16), (128, 16, 4), (128, 8, 1), (64, 32, 1)]
)
def test_no_conversion_needs_more_memory_than_there_is(size: int, bits: int, kib: int) -> None:
    """Where no register is common, lanes or warps take part in turns."""
    for matrix in (False, True):
        loads, stores = "ldmatrix" * matrix, "stmatrix" * matrix
        small = Machine("small", matrix_loads=loads, matrix_stores=stores, shared_bytes=kib * 1024)
        for a, b in itertools.permutations(TILED, 2):
            plan = plan_conversion(a, b, (size, size), bits, small)
            plan.check()
            assert np.array_equal(plan.run(filled(plan.src)), filled(plan.dst))
            assert plan.cost.scratch_bytes <= small.shared_bytes


def test_rounds_of_lanes_are_explained() -> None:
    small = Machine("small", shared_bytes=1024)
    plan = plan_conversion(TILED[0], TILED[1], (64, 64), 32, small)
    (stage,) = plan.stages
    assert stage.how.repetitions == 16 and max(stage.how.rounds) > 1
    counted = {"st": stage.how.store.count * stage.how.rounds[0], "ld": stage.how.load.count * stage.how.rounds[1]}
    assert sorted(plan.cost.instructions.values()) == sorted(counted.values())
    assert "16 rounds: at once it would need 16384 bytes of 1024; each register " in plan.explain()


def test_an_a100_has_163_kib() -> None:
    assert MACHINES["cuda:80"].shared_bytes == 163 * 1024
    shape = (128, 128)
    assert plan_conversion(TILED[0], TILED[1], shape, 64, "cuda:80").cost.scratch_bytes == 128 * 1024
    assert plan_conversion(TILED[0], TILED[1], shape, 64, "cuda:86").cost.scratch_bytes == 64 * 1024


@pytest.mark.parametrize(("swizzle", "ways"), [(0, 16), (1, 2), (2, 1)])
def test_the_published_transposition(swizzle: int, ways: int) -> None:
    """16 x 32 words, one warp, read by columns of 16 lanes: row-major 16-way conflicts, xor m 2-way, xor 2 m none.

    Lane bits 0 .. 3 are the row, bit 4 the column: offset = 32 row + (column xor swizzle row).
    """
    lanes = [32 << i ^ (swizzle << i) % 32 for i in range(4)] + [1]
    taken, ideal = passes(lanes, 5, 0)
    assert taken // ideal == ways


def test_wavefronts_against_counting() -> None:
    """Random linear maps, every lane's words counted bank by bank."""
    rng = np.random.default_rng(0)
    for _ in range(400):
        bytes_log = int(rng.integers(0, 4))
        vector = int(rng.integers(0, 5 - bytes_log)) if bytes_log < 4 else 0
        lanes = [int(x) << vector for x in rng.integers(0, 1 << 9, 5)]
        taken, ideal = passes(lanes, bytes_log + 3, vector)
        starts = [f2.multiply(lanes, lane) << bytes_log for lane in range(32)]
        width = 1 << bytes_log + vector
        each = max(1, min(32, 128 // max(4, width)))
        total = 0
        for phase in range(0, 32, each):
            words = {(s + k) // 4 for s in starts[phase : phase + each] for k in range(width)}
            banks = [w % 32 for w in words]
            total += max(banks.count(b) for b in set(banks))
        assert taken == total, (bytes_log, vector, lanes)
        assert ideal == 32 // each


@pytest.mark.parametrize("bits", [8, 16])
def test_no_memory_layout_is_better(bits: int) -> None:
    """Elements smaller than a word, in a memory small enough to try each of the 20,160 linear orders of 16 elements."""
    tiny = Machine("tiny", lanes=4, banks=2, vector_bytes=8)
    unit = [1, 2, 4, 8]
    orders = [m for m in itertools.product(range(1, 16), repeat=4) if f2.rank(m) == 4]
    assert len(orders) == 20160
    inverses = [f2.inverse(m) for m in orders]

    def cost(place: list[int], columns: list[int], store: bool) -> tuple[float, int]:
        offsets = [f2.multiply(place, c) for c in columns]
        found = best_access(Offsets(tuple(offsets[:2]), tuple(offsets[2:]), ()), bits // 16, tiny, store=store)
        return found.cost(tiny), found.count * found.wavefronts

    stores = [cost(place, unit, True) for place in inverses]
    for columns in ([4, 8, 1, 2], [1, 4, 8, 2], [8, 2, 4, 1]):
        src, dst = (
            LinearLayout.from_bases(
                {"register": [(c,) for c in x[:2]], "lane": [(c,) for c in x[2:]], "warp": [], "block": []}, {"x": 16}
            )
            for x in (unit, columns)
        )
        planner = Planner(src, dst.invert_and_compose(src), bits, tiny)
        trip = planner.best()
        loads = [cost(place, columns, False) for place in inverses]
        both = [(a + c, b + d) for (a, b), (c, d) in zip(stores, loads, strict=True)]
        assert trip.store.cost(tiny) + trip.load.cost(tiny) == min(c for c, _ in both)
        assert trip.wavefronts == min(w for _, w in both)
        assert trip.excess == 0


def test_what_is_loaded_need_not_wait() -> None:
    """Of ways that move as much the one that puts words together before they are stored, in the order of registers."""
    rows, columns = BlockedLayout([1, 8], [2, 16], [8, 1], [1, 0]), BlockedLayout([8, 1], [16, 2], [1, 8], [0, 1])
    plan = plan_conversion(rows, columns, (128, 128), 16, "cuda:90")
    trip = next(stage.how for stage in plan.stages if isinstance(stage.how, Trip))
    assert trip.load.instruction == "ldmatrix.trans.x4" and (trip.load.permutes, trip.load.waiting) == (0, 0)
    assert (trip.store.permutes, trip.store.waiting) == (32, 0)
    assert trip.store.cost(plan.machine) - trip.load.cost(plan.machine) == 32 * plan.machine.permute


def test_planning_is_cached() -> None:
    plan = plan_conversion(ROWS, COLUMNS, (128, 128), 32)
    assert plan_conversion(ROWS, COLUMNS, (128, 128), 32) is plan


CALLS = 3400
"""Function calls, those of built-in functions counted too, that take under half a millisecond on an idle core."""


def calls_to_plan(source: LinearLayout, destination: LinearLayout, bits: int, target: str) -> int:
    """Function calls that planning takes: times depend on the machine's load."""
    forget_plans()
    profile = cProfile.Profile()
    profile.enable()
    plan_conversion(source, destination, (128, 128), bits, target)
    profile.disable()
    return sum(entry.callcount for entry in profile.getstats())


@pytest.mark.parametrize("bits", [8, 16, 32, 64])
def test_planning_is_fast(bits: int) -> None:
    """128 x 128 over 8 warps: every pair of thirteen layouts, and places in any order."""
    layouts = [normalised(layout, (128, 128), "source") for layout in _planned().values()]
    for source, destination in itertools.permutations(layouts, 2):
        for target in ("cuda:80", "cuda:90"):
            assert calls_to_plan(source, destination, bits, target) < CALLS
    rng = random.Random(bits)
    for _ in range(100):
        one, other = (rng.sample([1 << i for i in range(14)], 14) for _ in range(2))
        assert calls_to_plan(over_8_warps(one), over_8_warps(other), bits, "cuda:90") < CALLS


def over_8_warps(elements: Sequence[int]) -> LinearLayout:
    """A layout of 128 x 128 over 8 warps from the elements of its 14 bits."""
    bases = {"register": elements[:6], "lane": elements[6:11], "warp": elements[11:], "block": []}
    pairs = {dim: [(x & 127, x >> 7) for x in columns] for dim, columns in bases.items()}
    return LinearLayout.from_bases(pairs, {"dim0": 128, "dim1": 128})


def test_bad_input() -> None:
    with pytest.raises(LayoutError, match="elements have 1, 2, 4, 8, 16, 32, 64 or 128 bits, got 24"):
        plan_conversion(ROWS, COLUMNS, (128, 128), 24)
    with pytest.raises(LayoutError, match=r"the source layout is for tiles of shape \(128, 128\), not \(64, 64\)"):
        plan_conversion(ROWS, COLUMNS, (64, 64), 16)
    small = layout([(0, 1)], [(1, 0)], shape=(2, 2))
    other = layout([], [(1, 0), (0, 1)], shape=(2, 2))
    with pytest.raises(LayoutError, match="the source layout has 2 lanes, the destination 4"):
        plan_conversion(small, other, (2, 2), 16)
    with pytest.raises(LayoutError, match="the planner knows no machine 'cuda:1'"):
        machine_of("cuda:1")
    with pytest.raises(LayoutError, match="values have shape"):
        plan_conversion(ROWS, COLUMNS, (128, 128), 32).run(np.zeros((2, 2, 2)))
