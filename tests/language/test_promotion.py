"""Promotion, for every pair of types: against the rules written out again, and against Triton."""

from __future__ import annotations

import importlib.util
import itertools

import pytest

import weft.language as tl
from language.bench_ir import Bench
from weft.language.dtypes import dtype

NAMES = [*dtype.SINT_TYPES, *dtype.UINT_TYPES, *dtype.FP_TYPES]
KIND = {name: 0 if name == "int1" else 1 if "int" in name else 2 for name in NAMES}
WIDTH = {"int1": 1, **{n: int(n.removeprefix("u").removeprefix("int")) for n in NAMES if "int" in n}}


def promoted(a: str, a_number: bool, b: str, b_number: bool, div_or_mod: bool) -> str | None:
    """The rules: the name of the common type, or None where there is none."""
    if a_number != b_number:
        number, tile = (a, b) if a_number else (b, a)
        if KIND[number] <= KIND[tile]:
            return "fp32" if div_or_mod and (tile in ("fp16", "bf16") or tile.startswith("fp8")) else tile
    for wide in ("fp64", "fp32"):
        if wide in (a, b):
            return wide
    if "fp16" in (a, b):
        return "fp32" if div_or_mod else "fp16"
    if "bf16" in (a, b):
        return "bf16" if a == b and not div_or_mod else "fp32"
    if a.startswith("fp8") and b.startswith("fp8"):
        return "fp32" if div_or_mod else a if a == b else "fp16"
    if KIND[a] == 2 or KIND[b] == 2:
        return None
    unsigned = {n: n == "int1" or n.startswith("u") for n in (a, b)}
    if unsigned[a] != unsigned[b]:
        if div_or_mod:
            return None
        u, s = (a, b) if unsigned[a] else (b, a)
        return u if WIDTH[u] >= WIDTH[s] else s
    return a if WIDTH[a] > WIDTH[b] else b


CASES = [
    (a, a_number, b, b_number, div)
    for a, b in itertools.product(NAMES, NAMES)
    for a_number, b_number, div in itertools.product((False, True), repeat=3)
]


def test_rules() -> None:
    semantic = Bench().semantic
    for a, a_number, b, b_number, div in CASES:
        want = promoted(a, a_number, b, b_number, div)
        if want is None:
            with pytest.raises(TypeError):
                semantic.computation_type_impl(dtype(a), a_number, dtype(b), b_number, div)
        else:
            found = semantic.computation_type_impl(dtype(a), a_number, dtype(b), b_number, div)
            assert found.name == want, (a, a_number, b, b_number, div)


@pytest.mark.skipif(importlib.util.find_spec("triton") is None, reason="Triton is not installed")
def test_as_in_triton() -> None:
    from triton.language.core import dtype as triton_dtype
    from triton.language.semantic import TritonSemantic

    theirs = TritonSemantic(None)
    for a, a_number, b, b_number, div in CASES:
        if div and (a.startswith("fp8") or b.startswith("fp8")):
            continue  # the rule of Triton 3.8: 3.6 has a type for these quotients, but does not compile them
        want = promoted(a, a_number, b, b_number, div)
        try:
            found = theirs.computation_type_impl(triton_dtype(a), a_number, triton_dtype(b), b_number, div).name
        except TypeError:
            found = None
        assert found == want, (a, a_number, b, b_number, div)


OPERATORS = {
    "__add__": False, "__sub__": False, "__mul__": False, "__truediv__": True, "__floordiv__": True, "__mod__": True,
}  # fmt: skip
SIGNATURE = {"int1": "u1", "fp32": "fp32", "fp64": "fp64", "fp16": "fp16", "bf16": "bf16"}


def short(name: str) -> str:
    return SIGNATURE.get(name) or (name.replace("uint", "u").replace("int", "i") if "int" in name else name)


@pytest.mark.parametrize("operator", OPERATORS)
def test_operators_have_the_promoted_type(operator: str) -> None:
    for a, b in itertools.product(NAMES, NAMES):
        bench = Bench(short(a), short(b))
        x, y = bench.args
        want = promoted(a, False, b, False, OPERATORS[operator])
        if operator == "__truediv__" and want is not None and KIND[want] < 2:
            want = "fp32"
        if operator == "__floordiv__" and want is not None and KIND[want] == 2:
            want = None
        if want is None:
            with pytest.raises(TypeError):
                bench(getattr(x, operator), y)
        else:
            assert bench(getattr(x, operator), y).dtype.name == want, (a, operator, b)


@pytest.mark.parametrize(
    ("value", "name"),
    [
        (True, "int1"), (0, "int32"), (2**31 - 1, "int32"), (-(2**31), "int32"), (2**31, "uint32"),
        (2**32 - 1, "uint32"), (2**32, "int64"), (-(2**31) - 1, "int64"), (2**63 - 1, "int64"), (2**63, "uint64"),
        (2**64 - 1, "uint64"), (0.0, "fp32"), (1.5, "fp32"), (float("inf"), "fp32"), (float("nan"), "fp32"),
        (1e-45, "fp64"), (2.0**-126, "fp32"), (3.4028234663852886e38, "fp32"), (3.5e38, "fp64"),
    ],
)  # fmt: skip
def test_type_of_a_number(value: object, name: str) -> None:
    bench = Bench()
    assert bench(tl.core.to_tensor, value).dtype.name == name


def test_numbers_that_have_no_type() -> None:
    bench = Bench()
    with pytest.raises(ValueError, match=r"^Nonrepresentable integer 18446744073709551616\.$"):
        bench(tl.core.to_tensor, 2**64)
    with pytest.raises(TypeError, match=r"^cannot convert abc of type <class 'str'> to tensor$"):
        bench(tl.core.to_tensor, "abc")
