"""`weft explain` and `weft diff`: scripts are run without launches."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import weft
import weft.language as tl
from weft.cli_explain import main
from weft.explain import Explanation

from .kernels import transpose

SCRIPT = """
import sys
import numpy as np
import triton
import triton.language as tl


@triton.jit
def add(x, y, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    tl.store(out + i, tl.load(x + i, mask=mask) + tl.load(y + i, mask=mask), mask=mask)


@triton.autotune([triton.Config({"BLOCK": size}) for size in (512, 1024)], key=["n"])
@triton.jit
def scale(x, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, mask=i < n) * 2, mask=i < n)


n = int(sys.argv[1])
x, out = np.ones(n, np.float32), np.zeros(n, np.float32)
for _ in range(3):
    add[(triton.cdiv(n, 1024),)](x, x, out, n, BLOCK=1024)
scale[lambda meta: (triton.cdiv(n, meta["BLOCK"]),)](x, out, n)
print("hello")
assert (out == 2).all()
"""


@weft.jit
def row_sums(x, out, n, stride, BLOCK: tl.constexpr):
    total = tl.zeros([BLOCK], tl.float32)
    for start in range(0, n, BLOCK):
        i = start + tl.arange(0, BLOCK)
        total += tl.load(x + tl.program_id(0) * stride + i, mask=i < n, other=0.0)
    tl.store(out + tl.program_id(0), tl.sum(total, 0))


def ran(*arguments: str) -> tuple[int, str, str]:
    """The command in a process of its own, in which nobody has imported triton: exit code and what it wrote."""
    command = [sys.executable, "-m", "weft", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout, done.stderr


@pytest.fixture
def script(tmp_path: Path) -> str:
    path = tmp_path / "script.py"
    path.write_text(SCRIPT)
    return str(path)


def test_every_kernel_of_a_script(script: str) -> None:
    code, out, err = ran("explain", "--json", "--target", "cuda:80", script, "10000")
    assert code == 0, err
    found = [Explanation.from_json(json.dumps(each)) for each in json.loads(out)]
    assert [(e.kernel, e.grid[0], e.arguments["BLOCK"]) for e in found] == [
        ("add", 10, "1024"), ("scale", 20, "512"), ("scale", 10, "1024"),
    ]  # fmt: skip
    assert "hello" in err and "ended with AssertionError" in err and "no kernel has computed anything" in err
    assert found[0].lines[-1].source.startswith("tl.store(out + i, ")


def test_one_kernel_of_a_script(script: str) -> None:
    code, out, err = ran("explain", "--gluon", "-k", "add", script, "10000")
    assert code == 0 and out.startswith("add ("), err
    source = out[out.index("from triton.experimental import gluon") :]
    assert source.count("@gluon.jit") == 1 and "gl.store(" in source
    code, out, err = ran("explain", "-k", "other", script, "10000")
    assert (code, out.strip()) == (1, "") and "no kernel of that name was launched" in err


def test_layout_ir(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    x = weft.MockTensor("fp16")
    text = transpose.warmup(x, x, 4096, SIZE=64, grid=(1,), target="cuda:80").asm["ttgir"]
    (tmp_path / "k.ttgir").write_text(text)
    arguments = ["explain", "--grid", "64,64", "--arg", "stride=4096", "--target", "cuda:80", str(tmp_path / "k.ttgir")]
    assert main(arguments) == 0
    out = capsys.readouterr().out
    assert "grid 64x64: 4,096 programs" in out and "stride = 4096" in out and "shared" in out
    assert main([*arguments[:4], "width=1", *arguments[5:]]) == 2
    assert "there is no argument `width`" in capsys.readouterr().err


def test_an_argument_of_layout_ir_that_is_not_given_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It was called data."""
    x = weft.like((64, 1000), "fp32")
    text = row_sums.warmup(x, x, 1000, 1000, BLOCK=256, grid=(64,), target="sim:cuda:90").asm["ttgir"]
    (tmp_path / "k.ttgir").write_text(text)
    for given, said in (
        ("stride=1000", "the upper bound of `for` depends on `n`, which is not given"),
        ("n=1000", "some accesses depend on data, or on `stride`, which is not given"),
    ):
        assert main(["explain", "--grid", "64", "--arg", given, str(tmp_path / "k.ttgir")]) == 0
        assert said in capsys.readouterr().out


def test_difference(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    x = weft.like((4096, 4112), "fp16")
    names = []
    for stride in (4097, 4112):
        e = transpose.explain(x, x, stride, SIZE=64, grid=(64, 64), target="cuda:90")
        names.append(str(tmp_path / f"{stride}.json"))
        Path(names[-1]).write_text(e.to_json())
    assert main(["diff", names[0], names[0]]) == 0
    assert capsys.readouterr().out == "transpose for cuda:90\n  no difference\n"
    assert main(["diff", *names]) == 1
    assert "  stride 4097 -> 4112" in capsys.readouterr().out.splitlines()


def test_what_is_not_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "nothing.py"]) == 2
    assert capsys.readouterr().err == "weft explain: there is no file nothing.py\n"
    (tmp_path / "a.json").write_text("{}")
    assert main(["diff", str(tmp_path / "a.json"), str(tmp_path / "a.json")]) == 2
    assert "this is no explanation" in capsys.readouterr().err
