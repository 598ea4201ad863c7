"""A campaign goes on where its processes end: by a crash, a lost GPU, or because a kernel does not end."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from . import campaign
from .campaign import LOST, VERDICTS, Campaign

CHILD = f"""
import os, sys, time

for pair in sys.argv[1].split():
    seed = int(pair.split(":")[0])
    if seed == 3:
        print("a last word", file=sys.stderr, flush=True)
        os._exit(9)
    if seed == 7:
        time.sleep(60)
    if seed in (5, 12):
        print(f"CRASH {{seed}} host DeviceLost: the GPU is lost")
    if seed == 9:
        print(f"UNSUPPORTED {{seed}} host OutOfResources: shared memory")
    print("DONE", pair, flush=True)
    if seed in (5, 12):
        os._exit({LOST})
"""


def test_each_failure_is_one_finding(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "child.py").write_text(CHILD)
    monkeypatch.setattr(campaign, "PATIENCE", 1.0)
    monkeypatch.setattr(campaign, "SLICE", 13)
    monkeypatch.setattr(campaign, "SLICES", 1)
    made = Campaign(0, 15, ["host"], False, 60, 1, (sys.executable, str(tmp_path / "child.py")))
    made.run()
    found = {f.seed: f.what for f in made.findings}
    lost = "DeviceLost: the GPU is lost"
    late = "no end within 1 s"
    assert found == {
        3: "status 9, a last word", 5: lost, 7: late, 9: "OutOfResources: shared memory", 12: lost
    }  # fmt: skip
    assert made.done["host"] == 15
    lines = made.table().splitlines()
    assert lines[0].startswith("5 findings, 15 run, seeds from 0")
    assert lines[1].split() == list(VERDICTS)
    assert lines[2].split() == ["host", "10", "0", "3", "1", "1"]
    assert [line.split()[-1] for line in lines[3:7]] == ["2", "1", "1", "1"]
    again = "python -m fuzz.run --seed 3 --variant host --reduce    # CRASH"
    assert len(lines) == 12 and again in lines[7:]
    made.write(tmp_path / "found")
    text = (tmp_path / "found" / "findings.txt").read_text()
    assert text.count("def kernel(") == 5 and "# TIMEOUT 7 host no end within 1 s" in text
    assert "CRASH 5 host DeviceLost" in capsys.readouterr().out


def test_it_is_given_up_where_nothing_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(campaign, "STILLBORN", 3)
    (tmp_path / "child.py").write_text("raise SystemExit(4)")
    made = Campaign(0, 1000, ["host"], False, 60, 1, (sys.executable, "-S", str(tmp_path / "child.py")))
    made.run()
    assert len(made.findings) == 3


def test_processes_share_the_gpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(campaign, "SLICE", 1)
    (tmp_path / "child.py").write_text(
        "import os, pathlib, sys, time\n"
        f"pathlib.Path({str(tmp_path)!r}, 'saw-' + os.environ['CUDA_VISIBLE_DEVICES']).touch()\n"
        "time.sleep(0.2)\nprint('DONE', sys.argv[1], flush=True)\n"
    )
    made = Campaign(0, 9, ["host"], False, 60, 3, (sys.executable, "-S", str(tmp_path / "child.py")), gpus=3)
    made.run()
    assert {path.name for path in tmp_path.glob("saw-*")} == {"saw-0,1,2", "saw-1,2,0", "saw-2,0,1"}
