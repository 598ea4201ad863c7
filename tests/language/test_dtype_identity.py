"""An element type is one object, wherever it comes from: kernels ask `x.dtype is tl.float32`, as with Triton."""

from __future__ import annotations

import copy
import inspect
import pickle

import numpy as np
import pytest

import weft
import weft.language as tl
from weft.language.signatures import str_to_ty
from weft.ops import BY_LANGUAGE
from weft.runtime.constants_as_json import from_json


@weft.jit
def which(x, out, wanted: tl.constexpr):
    value = tl.load(x)
    tl.store(out, x.dtype.element_ty is wanted)
    tl.store(out + 1, value.dtype is wanted)
    tl.store(out + 2, value.dtype is not wanted)
    tl.store(out + 3, value.to(tl.float16).dtype is tl.float16)


@pytest.mark.parametrize("name", ["float32", "float64", "float16", "int32", "uint8", "int1"])
def test_is_in_a_kernel(name: str) -> None:
    out = np.full(4, 9, np.int32)
    which[(1,)](np.zeros(1, np.dtype("bool" if name == "int1" else name)), out, getattr(tl, name))
    assert out.tolist() == [1, 1, 0, 1]


@pytest.mark.parametrize("name", sorted(BY_LANGUAGE))
def test_of_a_signature(name: str) -> None:
    kind = str_to_ty(name, None)
    assert str_to_ty(f"*{name}", None).element_ty is kind
    assert next(t for t in vars(tl).values() if isinstance(t, tl.dtype) and t == kind) is kind


def test_the_parameters_that_python_shows() -> None:
    assert list(inspect.signature(tl.dtype).parameters) == ["name"]
    assert list(inspect.signature(tl.pointer_type).parameters)[:2] == ["element_ty", "address_space"]


def test_made_again() -> None:
    kind = tl.float32
    assert tl.dtype("fp32") is kind and tl.dtype(tl.constexpr("fp32")) is kind and from_json({"dtype": "fp32"}) is kind
    assert copy.deepcopy(kind) is copy.copy(kind) is pickle.loads(pickle.dumps(kind)) is kind
    pointer = tl.pointer_type(kind, const=True)
    again = pickle.loads(pickle.dumps(pointer))
    assert again == pointer and again.element_ty is kind and again.const
    assert pickle.loads(pickle.dumps(tl.block_type(kind, [4]))).shape == tl.block_type(kind, [4]).shape
    with pytest.raises(ValueError, match="unknown element type 'fp33': known are "):
        tl.dtype("fp33")
    with pytest.raises(ValueError, match="unknown element type 'fp33': known are "):
        tl.dtype("fp33")
