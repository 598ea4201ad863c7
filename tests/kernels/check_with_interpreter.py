"""Run every case in Triton's own interpreter, to check the cases themselves (needs Triton and PyTorch).

    python tests/kernels/check_with_interpreter.py          # all
    python tests/kernels/check_with_interpreter.py sort     # those whose name contains a word

A case that fails here has a wrong reference, or steps on something the interpreter is known to get wrong or to lack
(the names in KNOWN, each with the reason): those are not run.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

os.environ["TRITON_INTERPRET"] = "1"
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np
import torch
from triton.runtime import interpreter
from triton.tools.tensor_descriptor import TensorDescriptor

from kernels import load_cases
from kernels.case import Case, Descriptor, copy_arguments, storage

_patch_tensor = interpreter._patch_lang_tensor


def _patch_tensor_for_new_numpy(tensor: Any, scope: Any) -> None:
    """NumPy 2.4 no longer converts arrays of one element with int(), which the interpreter does for loop bounds."""
    _patch_tensor(tensor, scope)
    scope.set_attr(tensor, "__index__", lambda self: int(self.handle.data.item()))


interpreter._patch_lang_tensor = _patch_tensor_for_new_numpy

KNOWN = {
    "vector_add_bf16": "adds the bits of bf16 as integers",
    "matmul_bf16": "multiplies the bits of bf16 as integers",
    "matmul_bf16_to_f32": "multiplies the bits of bf16 as integers",
    "flash_attention_128_causal": "no bf16 constants",
    "integer_ops_uint32": "complement of an unsigned tile overflows",
    "cast_float32_to_bfloat16": "truncates instead of rounding",
    "cast_float32_to_float8_e4m3fn": "loses the carry when the mantissa rounds up",
    "cast_float32_to_float8_e5m2": "loses the carry when the mantissa rounds up",
    "scaled_matmul_e2m1": "no dot_scaled",
    "scaled_matmul_e4m3": "no dot_scaled",
    "scaled_matmul_mixed": "no dot_scaled",
    "half_scaled_matmul": "no dot_scaled",
    "half_atomic_add_bfloat16": "no bf16 atomics",
    "descriptor_reduce": "no atomics through descriptors",
    "mapped": "no map_elementwise",
}

TORCH_TYPES = {
    "bfloat16": (torch.bfloat16, np.int16),
    "float8_e4m3fn": (torch.float8_e4m3fn, np.int8),
    "float8_e5m2": (torch.float8_e5m2, np.int8),
}


def to_torch(array: Any) -> torch.Tensor:
    """A tensor over the array's memory."""
    if array.dtype.name in TORCH_TYPES:
        dtype, carrier = TORCH_TYPES[array.dtype.name]
        return torch.from_numpy(array.view(carrier)).view(dtype)
    return torch.from_numpy(array)


def run(case: Case) -> None:
    """Launch the case in the interpreter and check the result."""
    before = case.make_inputs()
    after = copy_arguments(before)
    arguments = {}
    for name, value in after.items():
        if isinstance(value, Descriptor):
            tensor = to_torch(value.array)
            arguments[name] = TensorDescriptor(
                tensor, list(tensor.shape), list(tensor.stride()), list(value.block_shape), value.padding
            )
        else:
            arguments[name] = to_torch(storage(value)) if isinstance(value, np.ndarray) else value
    case.kernel[case.grid](**arguments, **case.constexprs)
    case.check(before, after)


def main(words: list[str]) -> int:
    """Run the cases, report, and count the failures."""
    failures = passed = 0
    for name, case in load_cases("triton").items():
        if name in KNOWN or (words and not any(word in name for word in words)):
            continue
        try:
            run(case)
            passed += 1
        except Exception as error:  # the report goes on with the next case
            failures += 1
            text = str(error).strip().replace("\n", "\n    ")
            print(f"{name}: {type(error).__name__}: {text[:600]}", file=sys.stderr)
    print(f"{passed} passed, {failures} failed")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
