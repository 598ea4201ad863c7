"""Simulated launches as users make them: targets, options, breakpoints, printing, reports."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import numpy as np
import pytest

import weft
import weft.language as tl
from weft import gluon
from weft.base import LaunchTypeError, Unsupported
from weft.gluon import language as gl
from weft.sim import Options, OutOfBoundsError, ScheduleError, Stop
from weft.sim.options import current_options

TTGIR = Path(__file__).resolve().parent.parent / "data" / "ttgir"
TARGET = "sim:cuda:80"


@weft.jit
def add(x, y, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    tl.store(out + i, tl.load(x + i, mask=mask) + tl.load(y + i, mask=mask), mask=mask)


def arrays(n: int = 100) -> tuple[np.ndarray, np.ndarray]:
    return np.arange(n, dtype=np.float32), np.zeros(n, np.float32)


# -- targets ----------------------------------------------------------------------------------------------------------


def test_target_at_the_call() -> None:
    x, out = arrays()
    made = add[(2,)](x, x, out, 100, BLOCK=64, target=TARGET)
    assert (out == 2 * x).all() and made.report is weft.sim.last_run() and made["global_store_bytes"] == 400


def test_target_at_the_call_goes_before_that_of_the_with() -> None:
    x, out = arrays()
    before = add[(2,)](x, x, out, 100, BLOCK=64, target=TARGET).report
    out[:] = 0
    with weft.target(TARGET):
        add[(2,)](x, x, out, 100, BLOCK=64, target="cpu")
    assert (out == 2 * x).all() and weft.sim.last_run() is before
    add[(2,)](x, x, out, 100, BLOCK=64)
    assert weft.sim.last_run() is before, "the target was that of one launch"


def test_a_parameter_that_is_called_target() -> None:
    @weft.jit
    def fill(target, value, BLOCK: tl.constexpr):
        tl.store(target + tl.arange(0, BLOCK), value)

    out = np.zeros(4, np.float32)
    fill[(1,)](target=out, value=3.0, BLOCK=4)
    assert (out == 3).all()


def test_a_target_that_is_none() -> None:
    x, out = arrays()
    with pytest.raises(Unsupported, match="sim:cuda:80"):
        add[(2,)](x, x, out, 100, BLOCK=64, target="sim:cuda:1")


def test_options_are_those_of_a_thread() -> None:
    """They were those of the process: the last to leave put back what another had chosen."""
    inside, outside = threading.Barrier(2), threading.Barrier(2)
    found: list[int] = []

    def other() -> None:
        with weft.sim.options(seed=7):
            inside.wait()
            outside.wait()
            found.append(current_options().seed)

    thread = threading.Thread(target=other)
    thread.start()
    inside.wait()
    with weft.sim.options(seed=5):
        outside.wait()
        thread.join()
        found.append(current_options().seed)
    assert found == [7, 5] and current_options().seed == 0


@pytest.mark.parametrize("positional", [True, False])
def test_a_function_of_the_arguments_as_grid(positional: bool) -> None:
    x, out = arrays()
    grid = lambda meta: (weft.cdiv(meta["n"], meta["BLOCK"]),)
    if positional:
        add[grid](x, x, out, 100, 64, target=TARGET)
    else:
        add[grid](x=x, y=x, out=out, n=100, BLOCK=64, target=TARGET)
    assert (out == 2 * x).all()


def test_tuples_and_descriptors() -> None:
    @weft.jit
    def scaled(pair, d, out, N: tl.constexpr):
        i = tl.arange(0, N)
        tile = d.load([N, 0])
        at = i[:, None] * N + i[None, :]
        tl.store(out + at, tile * pair[1] + tl.load(pair[0] + i)[None, :])

    x = np.arange(32 * 16, dtype=np.float32).reshape(32, 16)
    row, out = np.arange(16, dtype=np.float32), np.zeros((16, 16), np.float32)
    described = weft.TensorDescriptor.from_tensor(x, [16, 16])
    scaled[(1,)]((row, 3.0), described, out, N=16, target=TARGET)
    np.testing.assert_array_equal(out, 3 * x[16:] + row)


def test_layout_ir_of_a_file() -> None:
    kernel = weft.compile(TTGIR / "vector_add_sm80.ttgir", target=TARGET)
    x, out = arrays(1000)
    report = kernel[(4,)](x, x, out, 1000)
    assert (out == 2 * x).all()
    assert kernel.name == "vector_add" and kernel.shared_bytes == 0 and "shared" not in kernel.asm["lane"]
    assert kernel.count((4,), n=1000).lines == report.lines
    with pytest.raises(LaunchTypeError, match="3 arguments were given, the kernel takes 4: x_ptr, y_ptr, out_ptr, n"):
        kernel[(4,)](x, x, out)


def test_layout_ir_is_not_for_the_cpu() -> None:
    with pytest.raises(Unsupported, match="compiling layout IR is not supported on target cpu"):
        weft.compile(TTGIR / "vector_add_sm80.ttgir")


def test_tile_ir_of_a_file(tmp_path: Path) -> None:
    path = tmp_path / "k.ttir"
    path.write_text((TTGIR.parent / "ttir" / "vector_add.ttir").read_text(encoding="utf-8"), encoding="utf-8")
    x, out = arrays(1000)
    weft.compile(path, target=TARGET)[(4,)](x, x, out, 1000)
    assert (out == 2 * x).all()


# -- options ----------------------------------------------------------------------------------------------------------


def test_options_of_a_with() -> None:
    x, out = arrays(30)
    with weft.target(TARGET), weft.sim.options(bounds=False):
        add[(1,)](x, x, out, 32, BLOCK=32)
        assert not weft.sim.last_run().errors
    with weft.target(TARGET), weft.sim.options(raise_first=False):
        add[(1,)](x, x, out, 32, BLOCK=32)
    assert [type(e) for e in weft.sim.last_run().errors] == [OutOfBoundsError] * 3, "two loads and a store"
    with pytest.raises(OutOfBoundsError):
        add[(1,)](x, x, out, 32, BLOCK=32, target=TARGET)


@pytest.mark.parametrize("text", ["orders=random", "races=maybe", "order=sideways", "seed=x"])
def test_options_that_are_none(text: str) -> None:
    with pytest.raises(ValueError):
        Options.parse(text)


def test_every_schedule() -> None:
    @weft.jit
    def last_one(out, BLOCK: tl.constexpr):
        i = tl.arange(0, BLOCK)
        tl.store(out + i * 0, i)

    @weft.jit
    def total(x, out, BLOCK: tl.constexpr):
        tl.atomic_add(out + tl.arange(0, BLOCK) * 0, tl.load(x + tl.arange(0, BLOCK)))

    out = np.zeros(1, np.int32)
    with weft.target(TARGET), weft.sim.options(copies="both", order="all"):
        total[(2,)](np.arange(64, dtype=np.int32), out, BLOCK=64)
        assert out[0] == 64 * 63, "each schedule begins with the arrays as they were"
        with pytest.raises(ScheduleError, match=r"`out\[0\]` is \d+ if copies land at the earliest, warps in forward"):
            last_one[(1,)](out, BLOCK=64)


# -- breakpoints ------------------------------------------------------------------------------------------------------


@weft.jit
def summed(x, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    value = tl.load(x + i, mask=mask, other=0.0)
    running = tl.zeros((BLOCK,), tl.float32)
    for step in range(3):
        running += value * step  # ITERATION
    total = tl.sum(running, axis=0)
    tl.store(out + tl.program_id(0), total)  # STORE


def line_of(mark: str) -> int:
    lines = Path(__file__).read_text(encoding="utf-8").splitlines()
    return next(i for i, line in enumerate(lines, 1) if line.endswith(f"# {mark}"))


def test_variables_at_a_line() -> None:
    x, out = arrays()
    with weft.sim.debug(line_of("STORE"), program=(1, 0, 0)) as stops:
        summed[(2,)](x, out, 100, BLOCK=64, target=TARGET)
    (stop,) = stops
    assert (stop.line, stop.program, stop.visit) == (line_of("STORE"), (1, 0, 0), 0)
    assert Path(stop.file) == Path(__file__)
    np.testing.assert_array_equal(stop["i"], np.arange(64, 128))
    np.testing.assert_array_equal(stop["mask"], np.arange(64, 128) < 100)
    np.testing.assert_array_equal(stop["value"], np.append(x[64:], np.zeros(28)))
    np.testing.assert_array_equal(stop["running"], 3 * stop["value"])
    assert stop["total"] == out[1] == 3 * x[64:].sum() and stop["n"] == 100
    with pytest.raises(KeyError, match="no variable 'nothing' at .*; there are: .*running"):
        stop["nothing"]
    assert "running  float32[64] [192. 195. ..." in repr(stop)


def test_every_turn_of_a_loop_is_a_stop() -> None:
    x, out = arrays()
    seen: list[Stop] = []
    with weft.sim.debug(f"test_launching.py:{line_of('ITERATION')}", program=None, call=seen.append) as stops:
        summed[(2,)](x, out, 100, BLOCK=64, target=TARGET)
    assert seen == list(stops)
    assert [(s.program[0], s.visit, int(s["step"])) for s in stops] == [(p, t, t) for t in range(3) for p in range(2)]
    for stop in stops:
        scale = sum(range(stop.visit))
        np.testing.assert_array_equal(stop["running"], stop["value"] * scale)


def test_every_line() -> None:
    x, out = arrays()
    with weft.sim.debug() as stops:
        summed[(2,)](x, out, 100, BLOCK=64, target=TARGET)
    lines = [s.line for s in stops]
    assert len(set(lines)) >= 7 and lines.count(line_of("ITERATION")) == 3 and lines[-1] == line_of("STORE")
    assert not weft.sim.last_run().errors and out[0] == 3 * x[:64].sum()


def test_what_means_nothing_is_masked() -> None:
    program = weft.compile(TTGIR / "vector_add_sm80.ttgir", target=TARGET)
    x, out = arrays(1000)
    with weft.sim.debug(program=(3, 0, 0)) as stops:
        program[(4,)](x, x, out, 1000)
    x_value = next(v for name, v in stops[-1].items() if name.startswith("x") and getattr(v, "shape", ()) == (256,))
    assert x_value.dtype == np.float32


def test_two_dimensions() -> None:
    @weft.jit
    def turned(x, out, M: tl.constexpr, N: tl.constexpr):
        m, n = tl.arange(0, M), tl.arange(0, N)
        tile = tl.load(x + m[:, None] * N + n[None, :])
        other = tile.T
        tl.store(out + n[:, None] * M + m[None, :], other)

    x, out = np.arange(16 * 32, dtype=np.int32).reshape(16, 32), np.zeros((32, 16), np.int32)
    with weft.sim.debug() as stops:
        turned[(1,)](x, out, M=16, N=32, target="sim:cuda:90")
    np.testing.assert_array_equal(stops[-1]["tile"], x)
    np.testing.assert_array_equal(stops[-1]["other"], x.T)


def test_buffers_in_shared_memory() -> None:
    @gluon.jit
    def through_memory(x, y, layout: gl.constexpr, memory: gl.constexpr):
        i = gl.arange(0, 32, layout=gl.SliceLayout(1, layout))
        j = gl.arange(0, 16, layout=gl.SliceLayout(0, layout))
        at = i[:, None] * 16 + j[None, :]
        buffers = gl.allocate_shared_memory(gl.float32, [2, 32, 16], memory)
        second = buffers.index(1)
        second.store(gl.load(x + at))
        gl.store(y + at, second.load(layout))

    x = np.arange(512, dtype=np.float32).reshape(32, 16)
    layout, memory = gl.BlockedLayout([1, 4], [8, 4], [4, 1], [1, 0]), gl.SwizzledSharedLayout(4, 1, 4, [1, 0])
    with weft.sim.debug("gl.store(y + at") as stops:
        through_memory[(1,)](x, np.zeros_like(x), layout, memory, num_warps=4, target=TARGET)
    np.testing.assert_array_equal(stops[0]["second"], x)
    np.testing.assert_array_equal(stops[0]["buffers"][1], x)
    assert np.ma.getmaskarray(stops[0]["buffers"])[0].all(), "the first was never written"


def test_a_line_by_its_text() -> None:
    x, out = arrays()
    with weft.sim.debug("running += value") as stops, weft.sim.options(order="backward"):
        summed[(2,)](x, out, 100, BLOCK=64, target=TARGET)
    assert [s.line for s in stops] == [line_of("ITERATION")] * 3
    with weft.sim.debug("no line has this") as stops:
        summed[(2,)](x, out, 100, BLOCK=64, target=TARGET)
    assert not stops


# -- printing and reports ---------------------------------------------------------------------------------------------


def test_print_is_that_of_a_gpu(capsys: pytest.CaptureFixture[str]) -> None:
    @weft.jit
    def shown(x, BLOCK: tl.constexpr):
        v = tl.load(x + tl.arange(0, BLOCK))
        tl.device_print("v: ", v)
        tl.device_print("two ", v, tl.program_id(0))

    x = np.arange(4, dtype=np.int32)
    shown[(1,)](x, BLOCK=4)
    on_the_cpu = capsys.readouterr().out
    shown[(1,)](x, BLOCK=4, target=TARGET)
    assert capsys.readouterr().out == on_the_cpu
    assert "pid (0, 0, 0) idx (3) v: 3" in on_the_cpu


def test_an_assertion_names_its_program() -> None:
    @weft.jit
    def small(x, BLOCK: tl.constexpr):
        v = tl.load(x + tl.program_id(0) * BLOCK + tl.arange(0, BLOCK))
        tl.device_assert(v < 10, "too large")

    small[(4,)](np.arange(16, dtype=np.int32), BLOCK=4, target=TARGET)  # as everywhere, only with debug=True
    with pytest.raises(weft.DeviceAssertionError, match="too large") as caught:
        small[(4,)](np.arange(16, dtype=np.int32), BLOCK=4, target=TARGET, debug=True)
    assert caught.value.program == (2, 0, 0)


def test_the_report() -> None:
    x, out = arrays()
    report = summed[(2,)](x, out, 100, BLOCK=64, target=TARGET)
    text = str(report)
    head, *rows = text.splitlines()
    assert head.split()[0] == "line" and head.split()[-1] == "source" and rows[-1].startswith("all")
    assert any(row.endswith("total = tl.sum(running, axis=0)") for row in rows)
    assert all(row.startswith("test_launching.py:") for row in rows[:-1])
    made = json.loads(report.to_json())
    assert made["total"] == {n: c for n, c in report.total.items() if ":" not in n}
    assert made["threads"] == report.threads and made["instructions"] == report.kinds
    html = report._repr_html_()
    assert html.count("<tr>") == len(rows) + 1 and "i &lt; n" in html
