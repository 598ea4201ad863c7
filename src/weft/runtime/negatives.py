"""Where a tensor of PyTorch says that it is the negative of what its memory has.

    torch.complex(a, b).conj().imag        # its memory is that of b, its values are those of -b

A launch has to refuse such a tensor. PyTorch's method that tells it, `is_neg`, gives the interpreter's lock away and
takes it back, in each launch and for each tensor: with many threads that is when another one gets the lock, and the
launch waits for it. What it looks at is one bit of the tensor's dispatch keys. PyTorch says where a tensor is
(`_cdata`) and what its keys are, so they are looked for, once, in some tensors of all kinds; if they are in the same
place in all of them, native code reads the bit there. Else it calls the method.
"""

from __future__ import annotations

import ctypes
import sys
from functools import lru_cache
from typing import Any

from weft.backends.cpu.calls import TENSORS, Tensors

_WORDS = range(8, 192, 8)
"""Where the keys may be in a tensor, which is larger than that."""


def can_be_read(cls: Any) -> bool:
    """Whether `calls.TENSORS` says it of tensors of a class."""
    torch = sys.modules.get("torch")
    if torch is None or cls not in (getattr(torch, "Tensor", None), torch.nn.Parameter):
        return False
    return _found(torch)


@lru_cache(maxsize=1)
def _found(torch: Any) -> bool:
    """Find it, and tell native code."""
    try:
        samples = _samples(torch)
        keys = [int(torch._C._dispatch_keys(tensor).raw_repr()) for tensor in samples]
        tensors = [int(tensor._cdata) for tensor in samples]
    except (AttributeError, RuntimeError, TypeError):  # none of these names is an interface
        return False
    negative = keys[0] ^ keys[1]
    objects = range(16, torch.Tensor.__basicsize__ - 7, 8)
    within = [k for k in objects if all(_word(id(x) + k) == at for x, at in zip(samples, tensors, strict=True))]
    places = [k for k in _WORDS if all(_word(at + k) == key for at, key in zip(tensors, keys, strict=True))]
    told = all(bool(key & negative) == x.is_neg() for x, key in zip(samples, keys, strict=True))
    if len(within) != 1 or len(places) != 1 or negative.bit_count() != 1 or not told:
        return False
    words = TENSORS.words
    words[Tensors.WITHIN], words[Tensors.KEYS], words[Tensors.NEGATIVE] = within[0], places[0], negative
    return True


def _samples(torch: Any) -> list[Any]:
    """Tensors, the second of which differs from the first by being a negative."""
    plain = torch.zeros(3, 4, device="cpu")
    twisted = torch.zeros(5, dtype=torch.complex64, device="cpu").conj()
    return [
        plain, torch._neg_view(plain), plain[1:], twisted, twisted.imag, torch.zeros(2, dtype=torch.int8, device="cpu"),
        torch.zeros(2, requires_grad=True, device="cpu"), torch.nn.Parameter(plain), torch.zeros((), device="meta"),
    ]  # fmt: skip


def _word(address: int) -> int:
    return ctypes.c_uint64.from_address(address).value
