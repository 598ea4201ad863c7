"""What a kernel is compiled for: of integers the power of two that divides them, of arrays how they are aligned."""

from __future__ import annotations

import numpy as np
import pytest

from weft.runtime.specialize import specialize


@pytest.mark.parametrize("fine", [False, True])
def test_what_is_said_of_an_integer_divides_it(fine: bool) -> None:
    divisors = {"D": 16, "8": 8, "4": 4, "": 1}
    for value in [*range(2, 100), -8, -16, (1 << 40) + 8, (1 << 63) + 4]:
        kind, said = specialize(value, fine=fine)
        assert kind == ("i32" if value < 1 << 31 else "i64" if value < 1 << 63 else "u64")
        told = [d for d in ((16, 8, 4, 1) if fine else (16, 1)) if value % d == 0]
        assert divisors[said] == told[0], value
    assert specialize(1, fine=fine) == ("constexpr", 1)


@pytest.mark.parametrize("offset", range(0, 20, 4))
@pytest.mark.parametrize("is_const", [False, True])
def test_what_is_said_of_an_array(offset: int, is_const: bool) -> None:
    room = np.zeros(128, np.uint8)
    begin = -room.ctypes.data % 16 + offset
    array = room[begin : begin + 64].view(np.float32)
    assert specialize(array, is_const=is_const) == ("*kfp32" if is_const else "*fp32", "" if offset % 16 else "D")
