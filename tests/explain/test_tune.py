"""`weft tune`: configurations ranked without a GPU, a file of winners, and launches that take them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import weft
import weft.language as tl
from weft.runtime import knobs, ranking, winners

CONFIGS = [weft.Config({"BLOCK": block}, num_warps=warps) for block in (64, 1024) for warps in (1, 4)]


def _bench(call: Any, quantiles: Any) -> float:
    """Not how long it takes: that it can be run is enough here."""
    call()
    return 1.0


@weft.autotune(CONFIGS, key=["n"], do_bench=_bench)
@weft.jit
def doubled(x, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, mask=i < n) * 2, mask=i < n)


def _grid(given: Any) -> tuple[int, ...]:
    return (-(-given["n"] // given["BLOCK"]),)


def _entry(config: weft.Config, n: int, target: str = "cpu") -> dict[str, Any]:
    x = np.zeros(n, np.float32)
    return winners.entry_of(doubled, doubled._innermost(), doubled.text_of_key((x, x, n), {}), target, config, 1.0)


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    path = str(tmp_path / "winners.json")
    monkeypatch.setattr(doubled, "tuned", path)
    monkeypatch.setattr(doubled, "cache", {})
    return path


def _measured(monkeypatch: pytest.MonkeyPatch, n: int) -> bool:
    """Launch; whether configurations were measured for it. The result has to be right."""
    measured: list[Any] = []
    bench = doubled._bench

    def noted(*args: Any, **given: Any) -> Any:
        measured.append(given["config"])
        return bench(*args, **given)

    monkeypatch.setattr(doubled, "_bench", noted)
    x, out = np.arange(n, dtype=np.float32), np.zeros(n, np.float32)
    doubled[_grid](x, out, n)
    assert (out == 2 * x).all()
    return bool(measured)


@pytest.mark.parametrize("config", CONFIGS, ids=str)
def test_a_launch_takes_the_winner(config: weft.Config, file: str, monkeypatch: pytest.MonkeyPatch) -> None:
    winners.written(file, [_entry(config, 3000)])
    assert not _measured(monkeypatch, 3000)
    assert doubled.best_config == config


@pytest.mark.parametrize(
    "change",
    [
        {"source": "0" * 64},
        {"search": "0" * 64},
        {"key": "('tuple',)"},
        {"target": "cuda:90"},
        {"config": "BLOCK: 2048, num_warps: 4, num_ctas: 1, num_stages: 3, maxnreg: None"},
    ],
    ids=str,
)
def test_an_old_winner_is_passed_over(change: dict[str, str], file: str, monkeypatch: pytest.MonkeyPatch) -> None:
    winners.written(file, [{**_entry(CONFIGS[0], 3000), **change}])
    assert _measured(monkeypatch, 3000)


def test_another_key_is_measured(file: str, monkeypatch: pytest.MonkeyPatch) -> None:
    winners.written(file, [_entry(CONFIGS[0], 3000)])
    assert _measured(monkeypatch, 3001)


@pytest.mark.parametrize("text", ["", "[]", "{", '{"weft tune": 1}', '{"weft tune": 1, "winners": [{"kernel": 3}]}'])
def test_any_other_file_is_told_and_passed_over(text: str, file: str, monkeypatch: pytest.MonkeyPatch) -> None:
    Path(file).write_text(text, encoding="utf-8")
    with pytest.warns(UserWarning, match="is not a file that `weft tune` wrote, and is passed over"):
        assert _measured(monkeypatch, 3000)


def test_what_a_planted_file_says_reaches_no_kernel(file: str, monkeypatch: pytest.MonkeyPatch) -> None:
    entry = {**_entry(CONFIGS[0], 3000), "config": "__import__('os').abort()", "ir_override": "/etc/passwd"}
    Path(file).write_text(json.dumps({"weft tune": 1, "winners": [entry]}), encoding="utf-8")
    assert _measured(monkeypatch, 3000)  # it names no configuration of the kernel, so that they are measured


def test_no_file_is_read_where_the_setting_is_empty(file: str, monkeypatch: pytest.MonkeyPatch) -> None:
    winners.written(file, [_entry(CONFIGS[0], 3000)])
    monkeypatch.setattr(doubled, "tuned", None)
    monkeypatch.setattr(knobs.autotuning, "tuned", "")
    assert _measured(monkeypatch, 3000)


def test_an_empty_variable_is_an_empty_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    """Once it was as if there were none."""
    monkeypatch.delitem(vars(knobs.autotuning), "tuned", raising=False)
    monkeypatch.setenv("WEFT_TUNED", "")
    assert knobs.autotuning.tuned == ""
    monkeypatch.delenv("WEFT_TUNED")
    assert knobs.autotuning.tuned is None


def test_winners_of_other_launches_stay(file: str) -> None:
    winners.written(file, [_entry(CONFIGS[0], 3000), _entry(CONFIGS[1], 5000)])
    winners.written(file, [_entry(CONFIGS[2], 3000)])
    configs = {e["key"]: e["config"] for e in json.loads(Path(file).read_text(encoding="utf-8"))["winners"]}
    assert sorted(configs.values()) == sorted(map(str, (CONFIGS[2], CONFIGS[1])))


def test_the_ranking_is_that_of_the_predictions() -> None:
    x = weft.like((1 << 20,), "fp32")
    rows = ranking.ranked(doubled, (x, x, 1 << 20), _grid, {}, "cuda:90")
    alone = doubled.fn.explain(x, x, 1 << 20, grid=_grid, target="cuda:90", **rows[0].config.all_kwargs())
    assert rows[0].time == alone.time
    assert [row.microseconds for row in rows] == sorted(row.microseconds for row in rows)


SCRIPT = """
import numpy as np, triton, triton.language as tl
@triton.autotune([triton.Config({"BLOCK": b}) for b in (64, 1024)], key=["n"])
@triton.jit
def doubled(x, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, mask=i < n) * 2, mask=i < n)
x = np.zeros(1 << 20, np.float32)
doubled[lambda given: (-(-given["n"] // given["BLOCK"]),)](x, x, x.size)
"""


def test_the_command_writes_a_file_beside_the_kernel(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT, encoding="utf-8")
    command = [sys.executable, "-m", "weft", "tune", "--jobs", "1", str(script)]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.startswith("doubled, 2 configurations\n  1. ")
    plain = json.loads((tmp_path / "script.tuned.json").read_text(encoding="utf-8"))
    assert [(e["kernel"], e["target"], e["config"][:11]) for e in plain["winners"]] == [
        ("doubled", "cuda:90", "BLOCK: 1024")
    ]
