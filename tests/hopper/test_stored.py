"""Kernels of tests/data/ttgir that use what Hopper has."""

from __future__ import annotations

import numpy as np
import pytest

from weft.sim import Options

from .running import EVERY, Described, aligned, integers, simulate

every = pytest.mark.parametrize("options", EVERY, ids=lambda o: f"{o.copies}-{o.order}")


@every
def test_copy(options: Options) -> None:
    x, y = integers(0, (100, 96), np.float16), aligned((100, 96), np.float16)
    simulate("gluon_tma_copy", (2, 2), {"x": x, "y": y, "rows": 100, "columns": 96}, options)
    np.testing.assert_array_equal(x, y)


@every
def test_wgmma(options: Options) -> None:
    a, b, c = integers(0, (64, 128), np.float16), integers(1, (64, 128), np.float16), aligned((64, 64), np.float32)
    simulate("gluon_matmul_wgmma", 1, {"a": a, "b": b, "c": c, "k": 128}, options)
    np.testing.assert_array_equal(c, a.astype(np.float32) @ b.astype(np.float32).T)


@every
def test_producer_and_consumer(options: Options) -> None:
    x, y = integers(0, (5 * 256,), np.float32), aligned((5 * 256,), np.float32)
    simulate("gluon_producer_consumer", 2, {"x": x, "y": y, "n": 5}, options)
    np.testing.assert_array_equal(y, 2 * x)


@every
def test_descriptors_of_the_host(options: Options) -> None:
    a, b = integers(0, (64, 48), np.float16), integers(1, (96, 48), np.float16)
    c = aligned((64, 96), np.float16)
    values = {"a": Described(a, (32, 16)), "b": Described(b, (32, 16)), "c": Described(c, (32, 32)), "K": 48}
    simulate("descriptor_matmul_sm90", (2, 3), values, options)
    np.testing.assert_array_equal(c, (a.astype(np.float32) @ b.astype(np.float32).T).astype(np.float16))


@pytest.mark.parametrize(("columns", "written"), [(96, 96), (93, 96), (88, 88), (85, 88), (65, 72)])
def test_stores_end_where_16_bytes_do(columns: int, written: int) -> None:
    """The copy engine writes whole runs of 16 bytes, also where a row of the tensor ends inside of one."""
    a, b = integers(0, (64, 48), np.float16), integers(1, (96, 48), np.float16)
    c = aligned((64, 96), np.float16)
    c[:] = 77
    described = Described(c, (32, 32), shape=(64, columns), strides=(96, 1))
    values = {"a": Described(a, (32, 16)), "b": Described(b, (32, 16)), "c": described, "K": 48}
    simulate("descriptor_matmul_sm90", (2, 3), values, EVERY[0])
    wanted = (a.astype(np.float32) @ b.astype(np.float32).T).astype(np.float16)
    wanted[:, written:] = 77
    np.testing.assert_array_equal(c, wanted)


@every
def test_descriptors_of_the_device(options: Options) -> None:
    a, b, c = integers(0, (64, 40), np.float32), integers(1, (40, 32), np.float32), aligned((64, 32), np.float32)
    values = {"a": a, "b": b, "c": c, "M": 64, "N": 32, "K": 40}
    simulate("device_descriptor_matmul_sm90", (2, 1), values, options)
    np.testing.assert_array_equal(c, a @ b)


@every
def test_copies_that_arrive(options: Options) -> None:
    x, y = integers(0, (2048,), np.float32), aligned((2048,), np.float32)
    simulate("gluon_mbarrier_copy", 1, {"x": x, "y": y, "n": 2048}, options)
    np.testing.assert_array_equal(y, x)


@every
def test_a_cluster(options: Options) -> None:
    """Two blocks, each with its half of the tile."""
    x, y = integers(0, (64, 32), np.float32), aligned((64, 32), np.float32)
    simulate("gluon_cluster_copy", 1, {"x": x, "y": y}, options)
    np.testing.assert_array_equal(y, 2 * x)
