"""One iteration of a loop on a time line, and where a launch stands under the roofs of its machine."""

from __future__ import annotations

from itertools import pairwise

import pytest

from weft import like
from weft.explain import Explanation
from weft.explain.roofline import roofline_of

from .kernels import matmul, softmax, transpose


@pytest.fixture(scope="module")
def product() -> Explanation:
    a = like((1024, 1024), "fp16")
    return matmul.explain(a, a, a, 1024, 1024, 1024, BM=128, BN=128, BK=64, grid=(8, 8), target="cuda:90")


def test_an_iteration_of_a_pipelined_loop(product: Explanation) -> None:
    assert product.time is not None
    (iteration,) = product.time.iterations
    assert iteration.span is not None and iteration.count == 16
    source = {line.span.line: line.source for line in product.lines if line.span is not None}
    assert source[iteration.span.line].startswith("for start in range(")
    places = {(h.kind, source[h.span.line].split()[0]) for h in iteration.happenings if h.span is not None}
    assert {("copy", "left"), ("copy", "right"), ("product", "total")} <= places


def test_the_warp_does_one_thing_at_a_time(product: Explanation) -> None:
    """Its work and waits fill the iteration without gaps, but for the loop's own two instructions."""
    assert product.time is not None
    (iteration,) = product.time.iterations
    own = [h for h in iteration.happenings if h.kind in ("work", "wait")]
    assert all(a.end == pytest.approx(b.start, abs=0.6) for a, b in pairwise(own))
    assert own[0].start == pytest.approx(2, abs=0.6) and own[-1].end == pytest.approx(iteration.cycles, abs=0.6)


def test_copies_are_ahead_of_their_products(product: Explanation) -> None:
    """A copy that begins in an iteration goes on beside the product of the same iteration, or after it."""
    assert product.time is not None
    (iteration,) = product.time.iterations
    copies = [h for h in iteration.happenings if h.kind == "copy"]
    assert all(h.end - h.start > 250 for h in copies)  # the latency of L2, at least
    assert max(h.end for h in copies) > iteration.cycles  # it is awaited in a later one


def test_a_kernel_without_loops_has_no_iterations() -> None:
    x = like((1024, 1000), "fp32")
    e = softmax.explain(x, x, 1000, 1000, BLOCK=1024, grid=(1024,), target="cuda:90")
    assert e.time is not None and e.time.iterations == ()


def test_the_roofline_of_a_product(product: Explanation) -> None:
    assert product.time is not None
    found = roofline_of(product)
    assert found is not None and found.what == "matrix units"
    assert found.operations == 2 * 1024**3  # each element is a sum of 1024 products
    assert found.rate == pytest.approx(found.operations / product.time.microseconds / 1000)
    assert found.rate < found.peak < 1.1e6  # of 989 TFLOP/s that there are
    dram, l2 = found.memories
    assert (dram[0], l2[0]) == ("DRAM", "L2") and dram[2] < l2[2]
    assert dram[1] == pytest.approx(3 * 2 * 1024**2, rel=0.01)  # each array once


def test_the_roofline_of_lanes() -> None:
    x = like((4096, 1024), "fp32")
    e = softmax.explain(x, x, 1024, 1024, BLOCK=1024, grid=(4096,), target="cuda:90")
    found = roofline_of(e)
    assert found is not None and found.what == "lanes"
    each = found.operations / (4096 * 1024)  # of an element: maximum, difference, exponential, sum, quotient, and a few
    assert 4 < each < 12


def test_no_roofline_where_nothing_is_computed_or_known() -> None:
    x = like((4096, 4096), "fp16")
    for target in ("cuda:90", "cuda:80"):
        assert roofline_of(transpose.explain(x, x, 4096, SIZE=64, grid=(64, 64), target=target)) is None
