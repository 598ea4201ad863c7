"""What random kernels found on AArch64 (`python -m aarch64.fuzz`), prints, assertions and threads; run under QEMU."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import weft
import weft.language as tl
from aarch64 import MISSING, Emulator
from aarch64.fuzz import difference
from weft.base import DeviceAssertionError
from weft.runtime import knobs

pytestmark = pytest.mark.skipif(bool(MISSING), reason=f"not here: {MISSING}")

V1 = {"cpu": "neoverse-v1"}


@pytest.fixture(scope="module")
def emulator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Emulator]:
    with Emulator(tmp_path_factory.mktemp("aarch64")) as emulator, knobs.cache.scope():
        knobs.cache.disabled = True
        yield emulator


@weft.jit
def square_of_known(out, N: tl.constexpr):
    i, j = tl.arange(0, N)[:, None], tl.arange(0, N)[None, :]
    a = (i * 10 + j * 2).to(tl.int8)
    tl.store(out + i * N + j, tl.dot(a, a))


def test_a_product_of_integers_that_llvm_knows(emulator: Emulator) -> None:
    a = np.arange(4, dtype=np.int32)[:, None] * 10 + np.arange(4, dtype=np.int32) * 2
    out = np.zeros((4, 4), np.int32)
    emulator.launch(square_of_known, (1,), {"out": out, "N": 4}, **V1)
    np.testing.assert_array_equal(out, a @ a)


@weft.jit
def above_zero(x, most, out, chosen, N: tl.constexpr):
    i = tl.arange(0, N)
    v = tl.load(x + i)
    tl.store(out + i, tl.maximum(v, 0.0))
    tl.store(chosen + i, tl.where(v > 1.0, v, 1.0))
    tl.store(most, tl.max(v, 0))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_signaling_nans_lose_as_others_do(emulator: Emulator, dtype: Any) -> None:
    bits = np.int32 if dtype == np.float32 else np.int64
    signaling = (np.array(np.inf, dtype).view(bits) | 1).view(dtype)
    x = np.array([signaling, -1, np.nan, 3] * 8, dtype)
    most, out, chosen = np.zeros(1, dtype), np.zeros(32, dtype), np.zeros(32, dtype)
    emulator.launch(above_zero, (1,), {"x": x, "most": most, "out": out, "chosen": chosen, "N": 32}, **V1)
    assert most[0] == 3
    np.testing.assert_array_equal(out, np.array([0, 0, 0, 3] * 8, dtype))
    np.testing.assert_array_equal(chosen, np.array([1, 1, 1, 3] * 8, dtype))


@weft.jit
def told(x, N: tl.constexpr):
    v = tl.load(x + tl.arange(0, N))
    tl.device_print("v", v)
    tl.device_assert(v < 4, "too large")


def test_prints_and_assertions(emulator: Emulator, capsys: pytest.CaptureFixture[str]) -> None:
    emulator.launch(told, (1,), {"x": np.arange(4, dtype=np.int32), "N": 4}, debug=True, **V1)
    assert capsys.readouterr().out == "".join(f"pid (0, 0, 0) idx ({i}) v: {i}\n" for i in range(4))
    with pytest.raises(DeviceAssertionError, match="too large"):
        emulator.launch(told, (1,), {"x": np.arange(8, dtype=np.int32), "N": 8}, debug=True, **V1)


@weft.jit
def meeting(arrived, out, PROGRAMS: tl.constexpr):
    tl.atomic_add(arrived, 1)
    while tl.atomic_add(arrived, 0) < PROGRAMS:
        pass
    tl.store(out + tl.program_id(0), tl.load(arrived))


def test_programs_that_wait_for_each_other(emulator: Emulator) -> None:
    arrived, out = np.zeros(1, np.int32), np.zeros(4, np.int32)
    emulator.launch(meeting, (4,), {"arrived": arrived, "out": out, "PROGRAMS": 4}, **V1)
    assert arrived[0] == 4 and (out == 4).all()


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(60))
def test_random_kernels(emulator: Emulator, seed: int) -> None:
    assert not difference(emulator, seed)
