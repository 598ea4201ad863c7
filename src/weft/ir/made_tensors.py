"""Tensors that several arguments of a kernel describe together, as an attribute of the argument that is made of them.

>>> made = MadeTensor(0, ((16, (4,)),), (((1, (2,)),), ((1, (3,)),)), (((1, (4,)),), ((1, ()),)), ((2, 1), (3, 1)))
>>> tensor_of(attribute_of(made)) == made
True
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from xdsl.dialects.builtin import ArrayAttr, DenseArrayBase, DictionaryAttr
from xdsl.ir import Attribute

from weft.base.made_tensors import MadeTensor, Polynomial

from .types import i64


def attribute_of(tensor: MadeTensor) -> DictionaryAttr:
    """What `tensor_of` reads."""
    further, shape, strides = map(_sums, ((tensor.further,), tensor.shape, tensor.strides))
    numbers = {"base": _numbers((tensor.base,)), "least": ArrayAttr(list(map(_numbers, tensor.least)))}
    return DictionaryAttr({**numbers, "further": further, "shape": shape, "strides": strides})


def tensor_of(attribute: Attribute) -> MadeTensor:
    """The tensor that an attribute says."""
    assert isinstance(attribute, DictionaryAttr)
    data = attribute.data
    (further,), shape, strides = (_read_sums(data[name]) for name in ("further", "shape", "strides"))
    least = cast("ArrayAttr[Attribute]", data["least"]).data
    pairs = tuple((n, at) for n, at in map(_read, least))
    return MadeTensor(_read(data["base"])[0], further, shape, strides, pairs)


def _numbers(values: Sequence[int]) -> DenseArrayBase[Any]:
    return DenseArrayBase.from_list(i64, list(values))


def _sums(sums: Sequence[Polynomial]) -> ArrayAttr[Attribute]:
    return ArrayAttr([ArrayAttr([_numbers((factor, *ns)) for factor, ns in total]) for total in sums])


def _read(attribute: Attribute) -> tuple[int, ...]:
    return tuple(cast("DenseArrayBase[Any]", attribute).get_values())


def _read_sums(attribute: Attribute) -> tuple[Polynomial, ...]:
    sums = cast("ArrayAttr[ArrayAttr[Attribute]]", attribute).data
    return tuple(tuple((numbers[0], numbers[1:]) for numbers in map(_read, total.data)) for total in sums)
