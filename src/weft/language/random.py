"""Random numbers: the counter-based generator Philox, bit for bit as Triton's.

    rand(seed, offsets)          # uniform in [0, 1), one for each offset, the same for the same seed and offset

A draw is ten rounds of multiplying, and mixing in a key derived from the seed; 32-bit offsets use 32-bit rounds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from weft.base import CompileTimeAssertionFailure

from . import core, math
from .constants import constexpr, unwrap
from .protocol import GIVEN, standard_function
from .tensors import block_shape, tensor
from .tuples import tuple as _tuple

if TYPE_CHECKING:
    from .semantic import TritonSemantic

__all__ = [
    "pair_uniform_to_normal",
    "philox",
    "philox_impl",
    "rand",
    "rand4x",
    "randint",
    "randint4x",
    "randn",
    "randn4x",
    "uint_to_uniform_float",
]

N_ROUNDS_DEFAULT = constexpr(10)

# bits -> (increments of the two keys, multipliers of the two halves)
_CONSTANTS = {
    32: ((0x9E3779B9, 0xBB67AE85), (0xD2511F53, 0xCD9E8D57)),
    64: ((0x9E3779B97F4A7C15, 0xBB67AE8584CAA73B), (0xD2E7470EE14C6C93, 0xCA5A826395121157)),
}


class _Words:
    """Arithmetic modulo 2 ** bits on tensors and on Python integers, which fold."""

    def __init__(self, bits: int, semantic: Any) -> None:
        self.bits = bits
        self.mask = 2**bits - 1
        self.type = core.uint32 if bits == 32 else core.uint64
        self.s = semantic

    def xor(self, x: Any, y: Any) -> Any:
        if isinstance(x, int) and isinstance(y, int):
            return x ^ y
        if isinstance(x, int) and x == 0:
            return y
        if isinstance(y, int) and y == 0:
            return x
        return self.s.xor_(x, y)

    def add(self, x: Any, y: int) -> Any:
        return (x + y) & self.mask if isinstance(x, int) else self.s.add(x, y, False)

    def mul(self, x: int, y: Any) -> Any:
        return x * y & self.mask if isinstance(y, int) else self.s.mul(x, y, False)

    def mulhi(self, x: int, y: Any) -> Any:
        if isinstance(y, int):
            return x * y >> self.bits
        shape = block_shape(y)
        factor = self.s._constant(x, y.type if shape else self.type)
        return math.umulhi(factor, y, _semantic=self.s)

    def tensor(self, x: Any, shape: tuple[int, ...]) -> Any:
        """A word as a tensor of a shape."""
        x = self.s._constant(x, self.type) if isinstance(x, int) else x
        return self.s._broadcast(x, shape) if shape and block_shape(x) else self.s.splat(x, shape)


def _rounds(counters: list[Any], keys: list[Any], n_rounds: int, words: _Words) -> list[Any]:
    """The rounds of Philox."""
    (step0, step1), (a, b) = _CONSTANTS[words.bits]
    c0, c1, c2, c3 = counters
    k0, k1 = keys
    if isinstance(n_rounds, int):
        words.s.unroll(f"{n_rounds} rounds of Philox are unrolled", n_rounds, "10 rounds, the default, are plenty")
    for _ in range(n_rounds):
        new0 = words.xor(words.xor(words.mulhi(b, c2), c1), k0)
        new2 = words.xor(words.xor(words.mulhi(a, c0), c3), k1)
        c1, c3 = words.mul(b, c2), words.mul(a, c0)
        c0, c2 = new0, new2
        k0, k1 = words.add(k0, step0), words.add(k1, step1)
    return [c0, c1, c2, c3]


def _as_tensors(results: list[Any], words: _Words, semantic: Any) -> list[tensor]:
    """All words as tensors of their common shape."""
    shape: tuple[int, ...] = ()
    for word in results:
        if isinstance(word, tensor):
            shape = semantic.broadcast_shapes(shape, block_shape(word))
    return [words.tensor(word, shape) for word in results]


def _word(value: Any, type_: Any, semantic: Any) -> Any:
    """A counter or a key as a tensor of a type: of one with as many bits, or a number that it holds."""
    number = unwrap(value)
    if isinstance(number, int):
        if not 0 <= number <= type_.get_int_max_value():
            raise ValueError(f"Scalar {number} is out of range for type {type_}")
        return semantic._constant(number, type_)
    value = semantic.to_tensor(number)
    if not value.dtype.is_int():
        raise TypeError(f"the counters and keys of philox_impl are integers, got {value.type}")
    return semantic.bitcast(value, type_)


@standard_function
def philox_impl(
    c0: Any, c1: Any, c2: Any, c3: Any, k0: Any, k1: Any, n_rounds: Any = N_ROUNDS_DEFAULT,
    _semantic: TritonSemantic = GIVEN,
) -> _tuple:  # fmt: skip
    """Run the rounds on four counters and two keys of type uint32 or uint64.

    >>> evaluate("i = tl.arange(0, 2).to(tl.uint32); tl.philox_impl(i, i, i, i, i, i)")[0]
    array([1713891541,  897475542], dtype=uint32)
    """
    type_ = _semantic.to_tensor(c0).dtype
    if type_.name not in ("uint32", "uint64"):
        raise CompileTimeAssertionFailure(f"dtype not supported in philox_impl: {type_}; it takes uint32 and uint64")
    words = _Words(type_.int_bitwidth, _semantic)
    counters, keys = ([_word(v, type_, _semantic) for v in group] for group in ((c0, c1, c2, c3), (k0, k1)))
    return _tuple(_as_tensors(_rounds(counters, keys, unwrap(n_rounds), words), words, _semantic))


def _check_seed(seed: Any, semantic: Any) -> None:
    """Refuse a seed that is no integer: of a pointer the address would be the seed, of a float its whole part."""
    type = semantic.to_tensor(seed).type
    if type.scalar.is_int():
        return
    hint = "load it, `tl.load(seed)`" if type.scalar.is_ptr() else "cast it, `seed.to(tl.int32)`, or pass an integer"
    raise CompileTimeAssertionFailure(f"the seed of random numbers must be an integer, got {type}", hint=hint)


def _philox(seed: Any, counters: list[Any], n_rounds: Any, semantic: Any, wanted: int = 4) -> list[tensor]:
    """Philox of a seed; counters are tensors, or Python integers where known."""
    bits = max(c.dtype.primitive_bitwidth for c in counters if isinstance(c, tensor))
    words = _Words(32 if bits <= 32 else 64, semantic)
    _check_seed(seed, semantic)
    seed = unwrap(seed)
    if isinstance(seed, int):
        value = seed & (2**64 - 1)
        keys: list[Any] = [value & words.mask, value >> 32 if words.bits == 32 else 0]
    else:
        wide = semantic.cast(seed, core.uint64)
        if words.bits == 32:
            keys = [semantic.cast(wide, core.uint32), semantic.cast(semantic.lshr(wide, 32), core.uint32)]
        else:
            keys = [wide, 0]
    counter_words = [semantic.cast(c, words.type) if isinstance(c, tensor) else c for c in counters]
    results = _rounds(counter_words, keys, unwrap(n_rounds), words)
    return _as_tensors(results[:wanted], words, semantic)


@standard_function
def philox(
    seed: Any, c0: Any, c1: Any, c2: Any, c3: Any, n_rounds: Any = N_ROUNDS_DEFAULT,
    _semantic: TritonSemantic = GIVEN,
) -> _tuple:  # fmt: skip
    """Four random words for a seed and four counters, 32 or 64 bits wide as the first counter is.

    >>> evaluate("i = tl.arange(0, 2).to(tl.uint32); tl.philox(7, i, i * 0, i * 0, i * 0)")[0]
    array([4099963437, 1747881627], dtype=uint32)
    """
    counters = [_semantic.to_tensor(c) for c in (c0, c1, c2, c3)]
    if counters[0].dtype.is_ptr() or counters[0].dtype.primitive_bitwidth not in (32, 64):
        raise CompileTimeAssertionFailure(f"bitwidth not supported in philox: {counters[0].type}, not 32 or 64 bits")
    type_ = core.uint32 if counters[0].dtype.primitive_bitwidth == 32 else core.uint64
    for counter in counters:
        if counter.dtype.is_ptr():
            raise TypeError(f"the counters of philox are numbers, got {counter.type}")
    return _tuple(_philox(seed, [_semantic.bitcast(c, type_) for c in counters], n_rounds, _semantic))


def _draw(seed: Any, offset: Any, n_rounds: Any, semantic: Any, wanted: int) -> list[tensor]:
    """Random words for offsets, which must be integers."""
    offset = semantic.to_tensor(offset)
    if not offset.dtype.is_int():
        raise TypeError(f"offsets of random numbers must be integers, got {offset.dtype}")
    if offset.dtype.primitive_bitwidth > 32:
        high = semantic.ashr if offset.dtype.is_int_signed() else semantic.lshr
        counters = [semantic.cast(offset, core.uint32), semantic.cast(high(offset, 32), core.uint32), 0, 0]
    else:
        counters = [offset, 0, 0, 0]
    return _philox(seed, counters, n_rounds, semantic, wanted)


@standard_function
def randint4x(seed: Any, offset: Any, n_rounds: Any = N_ROUNDS_DEFAULT, _semantic: TritonSemantic = GIVEN) -> _tuple:
    """Four random uint32 for each offset: the cheapest way to many random numbers.

    >>> evaluate("tl.randint4x(seed, tl.arange(0, 2))", seed=7)[1]
    array([3221879260, 3415718931], dtype=uint32)
    """
    return _tuple(_draw(seed, offset, n_rounds, _semantic, 4))


@standard_function
def randint(seed: Any, offset: Any, n_rounds: Any = N_ROUNDS_DEFAULT, _semantic: TritonSemantic = GIVEN) -> tensor:
    """A random uint32 for each offset.

    >>> evaluate("tl.randint(seed, tl.arange(0, 2))", seed=7)
    array([4099963437, 1747881627], dtype=uint32)
    """
    return _draw(seed, offset, n_rounds, _semantic, 1)[0]


@standard_function
def uint_to_uniform_float(x: Any, _semantic: TritonSemantic = GIVEN) -> tensor:
    """A random integer of 32 or 64 bits as a float32 in [0, 1).

    >>> evaluate("tl.uint_to_uniform_float(x.to(tl.uint32))", x=[0, 1 << 30])
    array([0.        , 0.49999997], dtype=float32)
    """
    x = _semantic.to_tensor(x)
    width = x.dtype.primitive_bitwidth
    if not x.dtype.is_int() or width not in (32, 64):
        raise TypeError(f"uint_to_uniform_float takes integers of 32 or 64 bits, got {x.dtype}")
    x = _semantic.cast(x, core.int32 if width == 32 else core.int64)
    # The largest floats for which the largest integer still gives less than 1.
    scale = 4.6566127342e-10 if width == 32 else 1.0842020432385337e-19
    x = _semantic.where(_semantic.less_than(x, 0), _semantic.invert(x), x)
    return _semantic.mul(x, scale, False)


@standard_function
def rand(seed: Any, offset: Any, n_rounds: Any = N_ROUNDS_DEFAULT, _semantic: TritonSemantic = GIVEN) -> tensor:
    """A random float32 in [0, 1) for each offset.

    >>> evaluate("tl.rand(seed, tl.arange(0, 4))", seed=7).round(4)
    array([0.0908, 0.8139, 0.0122, 0.7804], dtype=float32)
    """
    return uint_to_uniform_float(_draw(seed, offset, n_rounds, _semantic, 1)[0], _semantic=_semantic)


@standard_function
def rand4x(seed: Any, offsets: Any, n_rounds: Any = N_ROUNDS_DEFAULT, _semantic: TritonSemantic = GIVEN) -> _tuple:
    """Four random float32 in [0, 1) for each offset.

    >>> evaluate("tl.rand4x(seed, tl.arange(0, 2))", seed=7)[1].round(4)
    array([0.4997, 0.4094], dtype=float32)
    """
    drawn = _draw(seed, offsets, n_rounds, _semantic, 4)
    return _tuple([uint_to_uniform_float(u, _semantic=_semantic) for u in drawn])


@standard_function
def pair_uniform_to_normal(u1: Any, u2: Any, _semantic: TritonSemantic = GIVEN) -> _tuple:
    """Two normally distributed numbers from two uniform ones (Box and Muller).

    >>> evaluate("tl.pair_uniform_to_normal(x, y)", x=[0.5], y=[0.25])[1].round(4)
    array([1.1774], dtype=float32)
    """
    u1 = core.maximum(1.0e-7, u1, _semantic=_semantic)
    angle = _semantic.mul(6.283185307179586, u2, False)
    radius = math.sqrt(_semantic.mul(-2.0, math.log(u1, _semantic=_semantic), False), _semantic=_semantic)
    cosine, sine = math.cos(angle, _semantic=_semantic), math.sin(angle, _semantic=_semantic)
    return _tuple([_semantic.mul(radius, cosine, False), _semantic.mul(radius, sine, False)])


@standard_function
def randn(seed: Any, offset: Any, n_rounds: Any = N_ROUNDS_DEFAULT, _semantic: TritonSemantic = GIVEN) -> tensor:
    """A normally distributed float32 for each offset.

    >>> evaluate("tl.randn(seed, tl.arange(0, 4))", seed=7).round(3)
    array([-2.19 , -0.541,  2.953, -0.704], dtype=float32)
    """
    u1, u2 = (uint_to_uniform_float(u, _semantic=_semantic) for u in _draw(seed, offset, n_rounds, _semantic, 2))
    return pair_uniform_to_normal(u1, u2, _semantic=_semantic)[0]  # type: ignore[no-any-return]


@standard_function
def randn4x(seed: Any, offset: Any, n_rounds: Any = N_ROUNDS_DEFAULT, _semantic: TritonSemantic = GIVEN) -> _tuple:
    """Four normally distributed float32 for each offset.

    >>> evaluate("tl.randn4x(seed, tl.arange(0, 2))", seed=7)[1].round(3)
    array([0.004, 0.346], dtype=float32)
    """
    u = rand4x(seed, offset, n_rounds, _semantic=_semantic)
    first = pair_uniform_to_normal(u[0], u[1], _semantic=_semantic)
    second = pair_uniform_to_normal(u[2], u[3], _semantic=_semantic)
    return _tuple([first[0], first[1], second[0], second[1]])
