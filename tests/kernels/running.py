"""Run a case through Weft: from its Python source, or from IR text."""

from __future__ import annotations

from typing import Any

import numpy as np

import weft

from .case import Arguments, Case, Descriptor, copy_arguments


def run_case(case: Case) -> Arguments:
    """Launch the kernel from source and check what it stored; the arguments as they are then."""
    before = case.make_inputs()
    after = copy_arguments(before)
    arguments = {name: for_weft(value) for name, value in after.items()}
    case.kernel[case.grid](**arguments, **case.constexprs, **case.options)
    case.check(before, after)
    return after


def run_ir(case: Case, text: str) -> None:
    """Compile IR text, launch it with the case's arguments, and check what it stored."""
    before = case.make_inputs()
    after = copy_arguments(before)
    types, _, _ = case.signature(before)
    arguments: list[Any] = []
    for name in case.kernel.arg_names:
        if types[name] == "constexpr":
            continue
        arguments.append(for_weft(after[name]))
    weft.compile(text)[case.grid](*arguments)
    case.check(before, after)


def our_ttir(case: Case) -> str:
    """The tile IR that Weft makes of the case."""
    types, values, attributes = case.signature(case.make_inputs())
    text: str = weft.compile(weft.ASTSource(case.kernel, types, values, attributes)).asm["ttir"]
    return text


def for_weft(value: Any) -> Any:
    """An argument as Weft takes it: NumPy arrays as they are, descriptors as its own."""
    if isinstance(value, Descriptor):
        array = value.array
        block = list(value.block_shape)
        return weft.TensorDescriptor(array, list(array.shape), element_strides(array), block, value.padding)
    return value


def element_strides(array: np.ndarray[Any, np.dtype[Any]]) -> list[int]:
    """Strides in elements."""
    return [stride // array.itemsize for stride in array.strides]


def arguments_of(case: Case) -> Arguments:
    """Fresh arguments of a case, as Weft takes them."""
    return {name: for_weft(value) for name, value in case.make_inputs().items()}
