"""Layout IR that Triton 3.6.0 made for clusters of several blocks, in the simulator."""

from __future__ import annotations

import numpy as np
import pytest

import weft
import weft.language as tl
from backends.nvidia.assembling import assembled, needs_ptxas
from weft.ir import parse_module
from weft.lower import lower
from weft.passes.gpu_pipelines import layout_pipeline
from weft.passes.nvidia.fence_copies import fence_copies
from weft.sim import Options

from .running import DATA, EVERY, Described, aligned, integers, read, simulate

every = pytest.mark.parametrize("options", EVERY, ids=lambda o: f"{o.copies}-{o.order}")


@every
@pytest.mark.parametrize("blocks", [2, 4])
def test_product(blocks: int, options: Options) -> None:
    """By wgmma, from copies that each block makes of what it needs."""
    m, n, k = 256, 128, 256
    a, b, c = integers(0, (m, k), np.float16), integers(1, (k, n), np.float16), aligned((m, n), np.float32)
    name = f"triton_matmul_in_clusters_of_{blocks}"
    assert f'"ttg.num-ctas" = {blocks}' in read(name)
    with weft.sim.options(copies=options.copies, order=options.order, seed=options.seed):
        weft.compile(str(DATA / "hopper" / f"{name}.ttgir"), target="sim:cuda:90")[(2, 1)](a, b, c)
    np.testing.assert_array_equal(c, a.astype(np.float64) @ b.astype(np.float64))
    kinds = weft.sim.last_run().kinds
    assert not any("cluster" in kind for kind in kinds), "blocks have all that they need"


@every
def test_sums(options: Options) -> None:
    x, rows, columns = integers(0, (64, 128), np.float32), aligned((64,), np.float32), aligned((128,), np.float32)
    simulate("triton_sums_in_clusters", 1, {"x": x, "rows": rows, "columns": columns}, options)
    np.testing.assert_array_equal(rows, x.sum(1))
    np.testing.assert_array_equal(columns, x.sum(0))


@every
def test_descriptors(options: Options) -> None:
    a, b, c = integers(0, (128, 192), np.float16), integers(1, (128, 192), np.float16), aligned((128, 128), np.float16)
    values = {"a": Described(a, (128, 64)), "b": Described(b, (128, 64)), "c": Described(c, (128, 128)), "K": 192}
    simulate("triton_descriptors_in_clusters", 1, values, options)
    np.testing.assert_array_equal(c.astype(np.float64), a.astype(np.float64) @ b.astype(np.float64).T)


@needs_ptxas
@pytest.mark.parametrize("name", ["matmul_in_clusters_of_4", "descriptors_in_clusters", "sums_in_clusters"])
def test_ptxas_takes_it(name: str) -> None:
    module = parse_module(read(f"triton_{name}"), name)
    fence_copies(module)
    emitted, code = assembled(lower(layout_pipeline(module)))
    assert f".reqnctapercluster {emitted.blocks}" in emitted.code
    assert code.image


def test_specialised_loops_are_written_as_gluon() -> None:
    """Their first sums are made where the warps that add to them are, behind the barrier of the cluster."""
    a, b, c = aligned((128, 136), np.float16), aligned((136, 128), np.float16), aligned((128, 128), np.float16)
    blocks = (a, [128, 64]), (b, [64, 128]), (c, [128, 128])
    sides = [weft.TensorDescriptor.from_tensor(*x) for x in blocks]
    written = product.to_gluon(*sides, 136, num_ctas=2, num_stages=3, target="cuda:90")
    assert "every_block=True" in written.text and "cluster.wait()" in written.text


@weft.jit
def product(a, b, c, k):  # type: ignore[no-untyped-def]
    acc = tl.zeros((128, 128), tl.float32)
    for at in tl.range(0, k, 64, warp_specialize=True):
        acc = tl.dot(a.load([0, at]), b.load([at, 0]), acc)
    c.store([0, 0], acc.to(c.dtype))
