"""What two explanations differ in."""

from __future__ import annotations

from weft import like

from .kernels import softmax, transpose


def test_the_whole_text() -> None:
    x = like((4096, 4112), "fp16")
    odd, even = (transpose.explain(x, x, s, SIZE=64, grid=(64, 64), target="cuda:90") for s in (4097, 4112))
    lines = str(odd.diff(even)).splitlines()
    assert lines[0] == "transpose for cuda:90" and "  stride 4097 -> 4112" in lines
    assert "  global load sectors 1,540,096 -> 1,048,576 (0.68 times)" in lines
    assert "  line 25: bytes of a load 2 -> 16 (8.00 times)" in lines
    assert (
        "  line 25: layout of tile blocked([1, 1], [1, 32], [2, 2], [1, 0]) -> blocked([1, 8], [4, 8], [4, 1], [1, 0])"
        in lines
    )
    assert "  finding: narrow-access a load of 2 bytes at a time, of 16 -> none" in lines
    assert not odd.diff(odd) and str(odd.diff(odd)) == "transpose for cuda:90\n  no difference"


def test_two_targets() -> None:
    x = like((4096, 1024), "fp32")
    a, b = (softmax.explain(x, x, 1024, 1000, BLOCK=1024, grid=(64,), target=t) for t in ("cuda:80", "cuda:90"))
    difference = a.diff(b)
    assert difference.kernels == ("softmax for cuda:80", "softmax for cuda:90")
    assert {c.what for c in difference.changes} <= {"registers", "blocks", "limit", "microseconds", "bound"}
    assert difference.to_dict()["changes"] == [vars(change) for change in difference.changes]
