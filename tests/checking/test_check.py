"""What a check finds out, in this process: the candidate's part and the judge's on files of messages."""

from __future__ import annotations

import io
import textwrap
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from weft.checking import candidate, judge
from weft.checking.comparing import compared
from weft.checking.frames import Broken, Message, packed, received, send, unpacked

KERNEL = """
import numpy as np
import weft
import weft.language as tl

@weft.autotune([weft.Config({{}}, num_warps=w) for w in (2, 4)], key=[])
@weft.jit
def add(x, y, out, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    mask = i < n
    tl.store(out + i, tl.load(x + i, mask) + tl.load(y + i, mask=mask), {mask})

def run(x, y):
    out = np.zeros(x.shape, x.dtype)
    add[lambda meta: (weft.cdiv(x.size, meta["B"]),)](x, y, out, x.size, B=64)
    return out[:, ::2]
"""


def messages(main: Any, settings: dict[str, Any], request: io.BytesIO) -> list[Message]:
    """What a process of a check sends."""
    result = io.BytesIO()
    request.seek(0)
    main(settings, request, result)
    result.seek(0)
    return list(received(result))


def test_what_a_file_launched_is_judged_from_its_text(tmp_path: Path) -> None:
    (tmp_path / "k.py").write_text(textwrap.dedent(KERNEL).format(mask="mask"))
    x, y = np.arange(100, dtype=np.float32).reshape(10, 10), np.ones((10, 10), np.float32)
    facts, arrays = packed([x.T, y])
    request = io.BytesIO()
    send(request, "case", {"case": 0, "values": facts, "simulated": True, "timed": True}, arrays)
    settings = {"kernel": str(tmp_path / "k.py"), "target": "cuda:90"}
    sent = messages(candidate.run_file, settings, request)
    assert [m.kind for m in sent] == ["launch", "outputs", "done"]
    facts = sent[0].facts
    assert (facts["name"], facts["grid"], facts["options"]["num_warps"]) == ("add", [2, 1, 1], 2)
    expected = (x.ravel() + 1).reshape(10, 10)[:, ::2]
    assert (sent[1].arrays[0] == expected).all()  # the kernel reads x.T as memory has it, which is x

    request = io.BytesIO()
    for message in sent[:2]:
        send(request, *message)
    told = messages(judge.main, settings, request)
    assert [m.kind for m in told] == ["simulated", "predicted", "written"]
    assert not told[0].facts["errors"] and told[1].facts["microseconds"] > 0
    assert told[2].facts["found"] == [True]
    assert (told[2].arrays[0].view(np.float32)[::2] == expected.ravel()[: told[2].arrays[0].size // 8 + 1]).all()


def test_races_and_bounds_are_told_at_the_line_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "k.py"
    path.write_text(textwrap.dedent(KERNEL).format(mask="i < 128"))
    facts, arrays = packed([np.ones(100, np.float32), np.ones(100, np.float32)])
    request = io.BytesIO()
    send(request, "case", {"case": 0, "values": facts, "simulated": True, "timed": False}, arrays)
    path.write_text(path.read_text().replace("out[:, ::2]", "out").replace("np.zeros(x.shape", "np.zeros(128"))
    settings = {"kernel": str(path), "target": "cuda:80"}
    sent = messages(candidate.run_file, settings, request)
    launch = sent[0]
    shorter = [launch.arrays[0], launch.arrays[1], launch.arrays[2]]
    at = launch.facts["values"][2]["array"]
    shorter[at] = shorter[at][:400]
    launch.facts["values"][2]["shape"] = [100]
    request = io.BytesIO()
    send(request, "launch", launch.facts, shorter)
    (error,) = messages(judge.main, settings, request)[0].facts["errors"]
    assert error["kind"] == "OutOfBoundsError" and error["place"].startswith(f"{path}:11")


def test_races_between_programs_are_told(tmp_path: Path) -> None:
    path = tmp_path / "k.py"
    path.write_text(textwrap.dedent(KERNEL).format(mask="mask").replace("out + i,", "out + i % 64,"))
    facts, arrays = packed([np.arange(100, dtype=np.float32), np.ones(100, np.float32)])
    request = io.BytesIO()
    send(request, "case", {"case": 0, "values": facts, "simulated": True, "timed": False}, arrays)
    settings = {"kernel": str(path), "target": "cuda:80"}
    launch = messages(candidate.run_file, settings, request)[0]
    request = io.BytesIO()
    send(request, *launch)
    errors = messages(judge.main, settings, request)[0].facts["errors"]
    assert {e["kind"] for e in errors} == {"RaceError"} and errors[0]["place"].startswith(f"{path}:11")


def test_inputs_travel_with_their_axes() -> None:
    x = np.arange(24, dtype=ml_dtypes.bfloat16).reshape(2, 3, 4).transpose(2, 0, 1)
    facts, arrays = packed([x, True, np.int64(3), "gelu", None])
    back = unpacked(facts, arrays)
    assert (back[0] == x).all() and back[0].strides == x.strides and not np.shares_memory(back[0], arrays[0])
    assert back[1:] == [True, 3, "gelu", None]
    with pytest.raises(TypeError, match=r"^number 1 is a dict; NumPy's arrays, numbers and texts can be sent$"):
        packed([{}])


@pytest.mark.parametrize("cut", [3, 20, -1])
def test_what_is_cut_off_is_broken(cut: int) -> None:
    file = io.BytesIO()
    send(file, "outputs", {}, [np.zeros(100)])
    with pytest.raises(Broken):
        list(received(io.BytesIO(file.getvalue()[:cut])))


def test_a_message_that_promises_too_much_takes_no_memory() -> None:
    head = b'{"kind": "a", "facts": {}, "arrays": [{"dtype": "uint8", "shape": [1000000000000]}]}'
    with pytest.raises(Broken, match="ends before its end"):
        list(received(io.BytesIO(len(head).to_bytes(8, "little") + head)))


def ok(output: Any, expected: Any, dtype: Any = np.float32) -> bool:
    return compared(np.asarray(output, dtype), np.asarray(expected, dtype)).ok


def test_how_near_an_output_has_to_be() -> None:
    nan, inf = np.nan, np.inf
    assert ok([nan, inf, -inf, 1], [nan, inf, -inf, 1]) and ok([], []) and ok([0, 0], [0, 0])
    assert not ok([nan], [1]) and not ok([1], [nan]) and not ok([inf], [-inf]) and not ok([1e30], [inf])
    assert not ok([1e-30], [0])  # where all is zero there is no scale
    small = np.full(4096, 1 / 4096)
    assert not ok(np.zeros(4096), small) and ok(small * (1 + 5e-5), small)  # zeros are no softmax
    assert ok([1e-6, 1], [0, 1]) and not ok([1e-4, 1], [0, 1])
    assert ok([1.0078125], [1.0], ml_dtypes.bfloat16) and not ok([1.0078125], [1.0], np.float16)
    assert ok([3e38, 1], [3e38, 1]) and not ok([3e38, 1], [2.9e38, 1])  # no overflow in the scale
    assert not ok([1], [2], np.int32) and not ok([True], [False], bool)
