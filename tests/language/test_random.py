"""Random numbers: bit for bit those of Triton 3.6.0 (drawn with its interpreter)."""

from __future__ import annotations

import numpy as np
import pytest

import weft
import weft.language as tl
from language.bench_ir import Bench
from weft.base import CompileTimeAssertionFailure

# seed -> the first three of each stream of randint4x for offsets 0, 1, 2;
#         the first and fourth stream for offsets from 2**33 on, then the upper half of word 0 and the lower half of
#         word 3 of 64-bit Philox for counters 0, 1, 2;   rand for offsets 0, 1, 2
GOLDEN = {
    0: (
        [
            [1713891541, 4175744164, 83534633],
            [3781805453, 1555169499, 1372009126],
            [3159862348, 2980410603, 605361069],
            [2600524760, 159317863, 1167144420],
        ],
        [
            [1493069011, 3312598993, 613262012],
            [3043976070, 2791705958, 3694849503],
            [374689182, 49592932, 2157703970],
            [3967525435, 802534620, 1738823612],
        ],
        [0.7980929017066956, 0.055517591536045074, 0.03889884054660797],
    ),
    5: (
        [
            [3289868317, 1491303360, 4139036394],
            [299389332, 670720010, 2958439530],
            [4225117243, 2467182222, 1218718581],
            [4147765880, 513040669, 857003382],
        ],
        [
            [3156430331, 38459524, 3319829149],
            [2654090208, 3194662862, 2604884940],
            [4086625773, 3151414882, 1069441842],
            [3544507646, 242157822, 502736751],
        ],
        [0.46803566813468933, 0.6944422125816345, 0.07261097431182861],
    ),
    -3: (
        [
            [3751952495, 3192501209, 1080617708],
            [2280758705, 576905668, 2770509649],
            [2293447492, 3359756653, 3767472385],
            [971982459, 4277746350, 3419384425],
        ],
        [
            [2379791486, 484008447, 2573744153],
            [1349945630, 1239358535, 2846312553],
            [849799018, 52237264, 2327486407],
            [3333826427, 827549145, 387819076],
        ],
        [0.2528609335422516, 0.5133756995201111, 0.5032017827033997],
    ),
    123456789012: (
        [
            [72472112, 1147030357, 1410736014],
            [471467401, 3113851882, 1956941171],
            [2190893908, 2229107875, 2069258786],
            [1629137329, 3993625496, 2709450438],
        ],
        [
            [171980846, 2228666792, 2178809919],
            [3878612662, 2897318775, 959414012],
            [1295676392, 671341473, 2057375594],
            [2137226888, 1173459475, 450676865],
        ],
        [0.03374745324254036, 0.5341275930404663, 0.6569250822067261],
    ),
}


SEEDS = list(GOLDEN)


def offsets(bench: Bench, type: str, values: np.ndarray) -> tuple[object, np.ndarray]:
    """A tile of offsets as an argument."""
    block = tl.block_type(tl.str_to_ty(type, None), [len(values)])
    bench.block.insert_arg(block.to_ir(), len(bench.block.args))
    return tl.tensor(bench.block.args[-1], block), values


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("known", [True, False], ids=["seed known", "seed given"])
def test_streams_of_32_bits(seed: int, known: bool) -> None:
    bench = Bench("i64")
    i, values = offsets(bench, "i32", np.arange(4, dtype=np.int32))
    given = {bench.args[0]: np.int64(seed), i: values}
    words = bench(tl.randint4x, seed if known else bench.args[0], i)
    assert all(w.dtype == tl.uint32 for w in words)
    drawn = [np.asarray(bench.run(w, given)).view(np.uint32)[:3].tolist() for w in words]
    assert drawn == GOLDEN[seed][0]
    first = bench(tl.randint, seed if known else bench.args[0], i)
    assert np.asarray(bench.run(first, given)).view(np.uint32)[:3].tolist() == GOLDEN[seed][0][0]
    uniform = bench(tl.rand, seed if known else bench.args[0], i)
    assert [float(x) for x in bench.run(uniform, given)[:3]] == GOLDEN[seed][2]


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("known", [True, False], ids=["seed known", "seed given"])
def test_offsets_of_64_bits(seed: int, known: bool) -> None:
    bench = Bench("i64")
    i, values = offsets(bench, "i64", np.arange(4, dtype=np.int64) + 2**33)
    j, counters = offsets(bench, "u64", np.arange(4, dtype=np.int64))
    given = {bench.args[0]: np.int64(seed), i: values, j: counters}
    words = bench(tl.randint4x, seed if known else bench.args[0], i)
    drawn = [np.asarray(bench.run(words[n], given)).view(np.uint32)[:3].tolist() for n in (0, 3)]
    assert drawn == GOLDEN[seed][1][:2]
    zero = bench(j.__mul__, 0)  # type: ignore[attr-defined]
    wide = bench(tl.philox, seed if known else bench.args[0], j, zero, zero, zero)
    assert all(w.dtype == tl.uint64 for w in wide)
    first, last = (np.asarray(bench.run(wide[n], given)).view(np.uint64)[:3] for n in (0, 3))
    assert (first >> np.uint64(32)).tolist() == GOLDEN[seed][1][2]
    assert (last & np.uint64(0xFFFFFFFF)).tolist() == GOLDEN[seed][1][3]


def test_normal_numbers() -> None:
    bench = Bench()
    i, values = offsets(bench, "i32", np.arange(4096, dtype=np.int32))
    z = bench.run(bench(tl.randn, 7, i), {i: values})
    assert z.dtype == np.float32
    assert abs(z.mean()) < 0.05 and abs(z.std() - 1) < 0.05
    four = [bench.run(n, {i: values}) for n in bench(tl.randn4x, 7, i)]
    np.testing.assert_array_equal(four[0], z)
    assert np.abs(np.corrcoef(four) - np.eye(4)).max() < 0.06


def test_uniform_floats_stay_below_one() -> None:
    bench = Bench()
    for name, bits in (("u32", 32), ("i32", 32), ("u64", 64), ("i64", 64)):
        words = np.array([0, 1, 2 ** (bits - 1) - 1, 2 ** (bits - 1), 2**bits - 1], f"u{bits // 8}").view(
            f"i{bits // 8}"
        )
        words = np.concatenate([words, words[:3]])
        x, values = offsets(bench, name, words)
        u = bench.run(bench(tl.uint_to_uniform_float, x), {x: values})
        assert u.dtype == np.float32 and (u >= 0).all() and (u < 1).all()


def test_what_is_refused() -> None:
    bench = Bench("fp32", "i32", "i8")
    x, n, small = bench.args
    with pytest.raises(TypeError, match=r"^offsets of random numbers must be integers, got fp32$"):
        bench(tl.rand, 1, x)
    with pytest.raises(CompileTimeAssertionFailure) as caught:
        bench(tl.philox_impl, n, n, n, n, n, n)
    assert caught.value.message == "dtype not supported in philox_impl: int32; it takes uint32 and uint64"
    with pytest.raises(TypeError, match=r"^uint_to_uniform_float takes integers of 32 or 64 bits, got int8$"):
        bench(tl.uint_to_uniform_float, small)


@weft.jit
def drawn(o, seed, draw: tl.constexpr):
    draw(seed, tl.arange(0, 4))
    tl.store(o, 0)


@pytest.mark.parametrize("draw", [tl.rand, tl.randn, tl.randint, tl.randint4x, tl.rand4x, tl.randn4x])
@pytest.mark.parametrize("seed", [np.array([7], np.int32), 2.3, True, 1 << 40])
def test_a_seed_is_an_integer(draw: object, seed: object) -> None:
    o = np.zeros(4, np.float32)
    if isinstance(seed, int):
        drawn.warmup(o, seed, draw, grid=(1,))
        return
    with pytest.raises(CompileTimeAssertionFailure) as caught:
        drawn.warmup(o, seed, draw, grid=(1,))
    kind, hint = "fp32", "cast it, `seed.to(tl.int32)`, or pass an integer"
    if isinstance(seed, np.ndarray):
        kind, hint = "pointer<int32>", "load it, `tl.load(seed)`"
    assert caught.value.message == f"the seed of random numbers must be an integer, got {kind}"
    assert caught.value.hint == hint
