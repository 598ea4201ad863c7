"""Weft's threads beside those of others: how many there are, where they run, and that they leave the cores alone."""

from __future__ import annotations

import ctypes
import importlib.util
import os
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import weft
import weft.language as tl
from children import SOURCE, TESTS, environment
from weft.backends.cpu import driver, host, keeping, native, native_code, nodes, places, pool, pool_layout, waking
from weft.backends.cpu.engine import ENGINE, Record
from weft.backends.cpu.limits import GLANCE_NS, PAUSE_NS, SPIN_NS, WATCH_NS

from .test_driver import NUMBERED, build


@pytest.fixture(autouse=True)
def _threads():
    yield
    driver.set_num_threads(None)


@pytest.mark.parametrize(
    ("weft", "openmp", "threads"),
    [
        (None, None, 6),
        (None, "2", 2),
        (None, "3,2", 3),
        (None, "64", 6),
        (None, "", 6),
        (None, "many", 6),
        (None, "0", 6),
        ("4", "2", 4),
        ("9", None, 9),
        ("0", "2", 2),
    ],
)
def test_how_many_threads(monkeypatch: pytest.MonkeyPatch, weft: str | None, openmp: str | None, threads: int) -> None:
    monkeypatch.setattr("weft.backends.cpu.pool.usable_cores", lambda: 6)
    for name, value in (("WEFT_NUM_THREADS", weft), ("OMP_NUM_THREADS", openmp)):
        monkeypatch.delenv(name, raising=False)
        if value is not None:
            monkeypatch.setenv(name, value)
    driver.set_num_threads(1)
    ENGINE.threads = 0  # as in a new process
    assert driver.get_num_threads() == threads


def limits(root: Path, files: dict[str, str]) -> float:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return host.cpu_quota(str(root))


def test_no_control_groups(tmp_path: Path) -> None:
    assert limits(tmp_path, {}) == 1e6


def test_quotas_of_version_2(tmp_path: Path) -> None:
    files = {"proc/self/cgroup": "0::/user/app\n", "sys/fs/cgroup/user/app/cpu.max": "max 100000\n"}
    assert limits(tmp_path, files) == 1e6
    assert limits(tmp_path, {"sys/fs/cgroup/user/cpu.max": "250000 100000\n"}) == 2.5, "of a group around"
    assert limits(tmp_path, {"sys/fs/cgroup/user/app/cpu.max": "150000 100000\n"}) == 1.5, "the least counts"


def test_quotas_in_a_container(tmp_path: Path) -> None:
    """Its own group is the root of what it sees, and what the system calls its path is not there."""
    files = {"proc/self/cgroup": "0::/docker/0123\n", "sys/fs/cgroup/cpu.max": "300000 100000\n"}
    assert limits(tmp_path, files) == 3.0


@pytest.mark.parametrize("controllers", ["cpu", "cpu,cpuacct"])
def test_quotas_of_version_1(tmp_path: Path, controllers: str) -> None:
    folder = f"sys/fs/cgroup/{controllers}/job"
    files = {
        "proc/self/cgroup": f"5:memory:/other\n4:{controllers}:/job\n0::/\n",
        f"{folder}/cpu.cfs_quota_us": "-1\n",
        f"{folder}/cpu.cfs_period_us": "50000\n",
    }
    assert limits(tmp_path, files) == 1e6
    assert limits(tmp_path, {f"{folder}/cpu.cfs_quota_us": "100000\n"}) == 2.0


def test_quotas_and_affinity_limit_the_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host, "cpu_quota", lambda: 1.2)
    assert host.usable_cores() == 1
    monkeypatch.setattr(host, "cpu_quota", lambda: 1e6)
    assert 1 <= host.usable_cores() <= len(os.sched_getaffinity(0))


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="needs affinities")
def test_an_affinity_is_respected_from_when_it_is_set() -> None:
    script = textwrap.dedent(
        """
        import os, time
        import numpy as np
        from runtime.test_driver import build, driver, pool_module
        cores = os.sched_getaffinity(0)
        launch = build().launcher("Qqq")
        out = np.zeros(1000, np.int32)
        for _ in range(4):
            launch(1000, 1, 1, out.ctypes.data, 20_000, -1)
        assert driver.get_num_threads() == len(cores)
        pool = pool_module._pool
        one = min(cores)
        os.sched_setaffinity(0, {one})
        time.sleep(0.02)
        for _ in range(4):
            launch(1000, 1, 1, out.ctypes.data, 20_000, -1)
        assert (out == 8).all()
        assert driver.get_num_threads() == 1
        assert {os.sched_getaffinity(thread.native_id) == {one} for thread in pool._threads} == {True}
        os.sched_setaffinity(0, cores)
        time.sleep(0.15)
        for _ in range(4):
            launch(1000, 1, 1, out.ctypes.data, 20_000, -1)
        assert (out == 12).all()
        assert driver.get_num_threads() == len(cores)
        """
    )
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("needs two cores")
    env = {k: v for k, v in environment(SOURCE, TESTS).items() if not k.endswith("NUM_THREADS")}
    done = subprocess.run([sys.executable, "-c", script], env=env, timeout=60, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def topology(root: Path, *lists: str) -> str:
    for number, text in enumerate(lists):
        folder = root / f"sys/devices/system/node/node{number}"
        folder.mkdir(parents=True)
        (folder / "cpulist").write_text(text + "\n")
    (root / "sys/devices/system/node/online").write_text("0-1\n")
    return str(root)


def test_nodes_with_memory_of_their_own(tmp_path: Path) -> None:
    """What a process may not use is nothing to it; where the system says nothing of some cores all are one node's."""
    root = topology(tmp_path, "0-3,8-11", "4-7,12-15", "")
    assert nodes.usable_by_node(set(range(16)), root) == [{0, 1, 2, 3, 8, 9, 10, 11}, {4, 5, 6, 7, 12, 13, 14, 15}]
    assert nodes.usable_by_node({1, 2, 8}, root) == [{1, 2, 8}]
    assert nodes.usable_by_node({3, 99}, root) == [{3, 99}]
    assert nodes.usable_by_node({0, 1}, str(tmp_path / "nowhere")) == [{0, 1}]


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="needs affinities")
def test_workers_stay_on_their_node(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each worker on the same, whichever core its caller is on, but for one where a node ends; the caller's is free."""
    asked: list[set[int]] = []
    monkeypatch.setattr(pool, "usable_by_node", lambda allowed: [{0, 1, 2}, {3, 4, 5}])
    driver.set_num_threads(6)
    workers = pool.get_pool(6)
    monkeypatch.setattr(os, "sched_setaffinity", lambda thread, cores: asked.append(set(cores)))
    seen = {}
    for core in (1, 4):
        monkeypatch.setattr(workers, "_here", lambda core=core: core)
        asked.clear()
        workers._place(set(range(6)))
        seen[core] = list(asked)
    assert seen[1] == [{0, 2}, {0, 2}, *[{3, 4, 5}] * 3]
    assert seen[4] == [*[{0, 1, 2}] * 3, {3, 5}, {3, 5}]


SLOW = NUMBERED.replace("  br label %take\ntake:", """  %number.p = getelementptr i8, ptr %state, i64 36
  %number = load i32, ptr %number.p
  %is.worker = icmp ne i32 %number, 0
  %slow = mul i64 %spin0, 8
  %spin = select i1 %is.worker, i64 %slow, i64 %spin0
  br label %take
take:""").replace("  %spin = load i64", "  %spin0 = load i64")  # fmt: skip
"""The same, eight times as slow on all threads but the caller's."""


def test_a_slow_core_does_less() -> None:
    """Parts are equal, but who is done with its own goes on with what is left of others, so that a grid takes little
    more than if each had done what it can: 8 of 9 programs here are the caller's.
    """
    driver.set_num_threads(2)
    kernel = build(SLOW)
    launch, out = kernel.launcher("Qqq"), np.zeros(2000, np.int32)
    until, shares = time.monotonic() + 30, [0]
    while not 100 < shares[-1] < 500 and time.monotonic() < until:  # on a busy machine the worker may not come at all
        launch(2000, 1, 1, out.ctypes.data, 5_000, -1)
        shares.append(int(np.count_nonzero(out)))
    assert 100 < shares[-1] < 500, f"of 2000 programs the worker had {shares}"


def test_nobody_waits_busily_for_long() -> None:
    """Neither workers after a launch nor a caller that waits for them take time of a processor that they do not use."""
    assert max(SPIN_NS, GLANCE_NS + WATCH_NS) <= 50_000
    driver.set_num_threads(3)
    launch = build().launcher("Qqq")
    out = np.zeros(300, np.int32)
    for gap in (0.01, 3e-4):
        for _ in range(5):
            launch(300, 1, 1, out.ctypes.data, 50_000, -1)
            time.sleep(gap)
        time.sleep(0.01)
        begin = time.process_time()
        for _ in range(20):
            time.sleep(0.01)
        assert time.process_time() - begin < 0.02


@pytest.mark.usefixtures("costs")
def test_workers_nap_until_the_launch_that_is_foreseen() -> None:
    """It comes as long after the launch of a kernel as the last time; what is to come soon is waited for awake."""
    driver.set_num_threads(2)
    kernel = build()
    kernel.record.ns = 1e5
    launch, out = kernel.launcher("Qqq"), np.zeros(30, np.int32)
    word = ctypes.c_int64.from_address(pool.get_pool(2)._address + pool_layout.NAP)
    for gap, least, most in ((500_000, 300_000, 700_000), (0, 0, 0)):
        until, naps = time.monotonic() + 20, -1
        while not least <= naps <= most and time.monotonic() < until:  # on a busy machine launches come late
            for _ in range(3):
                launch(30, 1, 1, out.ctypes.data, 20_000, -1)
                begin = time.monotonic_ns()
                while time.monotonic_ns() < begin + gap:
                    pass
            naps = word.value
        assert least <= naps <= most, gap


@pytest.mark.usefixtures("costs")
def test_what_follows_a_pause_is_foreseen_by_what_followed_the_pause_before() -> None:
    """A caller whose code has to come into its caches again takes longer, the first time."""
    kernel = build()
    kernel.record.ns = 1e5
    launch, out = kernel.launcher("Qqq"), np.zeros(30, np.int32)
    until, first, second = time.monotonic() + 20, 0, 0
    while not (250_000 < first < 400_000 and 50_000 < second < 200_000) and time.monotonic() < until:
        driver.set_num_threads(2)
        word = ctypes.c_int64.from_address(pool.get_pool(2)._address + pool_layout.NAP)
        for _ in range(3):
            time.sleep(2 * PAUSE_NS / 1e9)
            naps = []
            for gap in (400_000, 200_000, 0):
                launch(30, 1, 1, out.ctypes.data, 20_000, -1)
                naps.append(word.value)
                begin = time.monotonic_ns()
                while time.monotonic_ns() < begin + gap:
                    pass
            first, second, _ = naps
    assert 250_000 < first < 400_000 and 50_000 < second < 200_000


@pytest.mark.usefixtures("costs")
def test_workers_that_were_not_awake_in_time_three_times_do_not_nap_the_next_time() -> None:
    kernel = build()
    kernel.record.ns = 1e5
    launch, out = kernel.launcher("Qqq"), np.zeros(30, np.int32)

    def naps_after(*gaps: int) -> list[int]:
        driver.set_num_threads(2)  # another pool, which knows of nothing
        word = ctypes.c_int64.from_address(pool.get_pool(2)._address + pool_layout.NAP)
        naps = []
        for gap in gaps:
            begin = time.monotonic_ns()
            while time.monotonic_ns() < begin + gap:
                pass
            launch(30, 1, 1, out.ctypes.data, 20_000, -1)
            naps.append(word.value)
        return naps

    until, naps = time.monotonic() + 20, [0]
    while time.monotonic() < until:  # on a busy machine they come as they may
        gaps = (0, 500_000, 500_000, 500_000, 300_000, 200_000, 120_000, 120_000)  # three come in the middle of a nap
        naps = naps_after(*gaps)
        if naps[3] > 320_000 > naps[4] > 220_000 > naps[5] > 130_000 and naps[6] == 0 < naps[7] < 120_000:
            return
    pytest.fail(str(naps))


def wanted(record: Record, programs: int) -> int:
    return int(native.native().wanted(record.address, programs))


@pytest.fixture
def costs():
    words = list(ENGINE.words)
    driver.set_num_threads(16)
    ENGINE.words[ENGINE.LAST] = 0
    ENGINE.set_costs(wake=20_000, tell=2_000, hot=1_000)
    yield
    ENGINE.words[:] = words


@pytest.mark.usefixtures("costs")
def test_what_pays() -> None:
    record = Record(0, 0)
    assert wanted(record, 100) == 0, "nothing is known: the first program is measured"
    assert wanted(record, 16) == 15, "a thread for each"
    record.ns = 100.0
    assert wanted(record, 1) == 0
    assert wanted(record, 20) == 0, "2 us are the caller's"
    assert wanted(record, 240) == 0, "24 us are not worth 20 of waiting and 4 of waking"
    some = [wanted(record, programs) for programs in (400, 1_000, 3_000, 10_000)]
    assert some == [3, 7, 15, 15], "some workers where all are too many"
    record.ns = 1e6
    assert wanted(record, 3) == 2, "no more workers than programs"


GRIDS = [
    (2, 98, 1e2, 10),
    (16, 98, 1e2, 10),
    (16, 16, 5e7, 0),
    (7, 1000, 1e4, 0),
    (16, 17, 1e2, 10),
    (64, 5000, 1e6, 0),
]
"""Threads, programs, nanoseconds of each, and how many the caller runs until the others begin."""


@pytest.mark.usefixtures("costs")
def test_parts_of_a_grid() -> None:
    """They follow each other, and differ by one program; the caller's is longer by what the others come later."""
    text = native_code.text()
    keep, (address,) = places.load_native(*places.made("parts", text), ["weft_parts"])
    word, pointer = ctypes.c_int64, ctypes.c_void_p
    divide = ctypes.CFUNCTYPE(word, pointer, pointer, word, word, ctypes.c_double, word)(address)
    words = (word * (pool_layout.LINE // 8 * 64))()
    for parts, left, each, lead in GRIDS:
        state = (word * 3)(5, 5 + left, 0)
        divide(ctypes.addressof(words), ctypes.addressof(state), parts, left, each, 1 << 40)
        rows = [words[pool_layout.LINE // 8 * k :][:4] for k in range(parts)]
        assert [row[0] for row in rows] == [5, *(row[1] for row in rows[:-1])]
        assert rows[-1][1] == 5 + left
        sizes = [row[1] - row[0] for row in rows]
        assert max(sizes[1:]) - min(sizes[1:]) <= 1 <= min(sizes)
        assert abs(sizes[0] - lead - min(sizes[1:])) <= 1 or max(sizes[1:]) == 1, (parts, left, sizes)
        assert all(1 <= row[pool_layout.HEAD // 8] for row in rows)
    del keep


def test_a_caller_who_found_nothing_left_learns_from_that() -> None:
    """Workers ran all of a short grid while it woke others: its programs take less than was thought."""
    text = native_code.text().replace("define internal void @measured", "define void @measured")
    keep, (address,) = places.load_native(*places.made("measured", text), ["measured"])
    word, pointer = ctypes.c_int64, ctypes.c_void_p
    measured = ctypes.CFUNCTYPE(None, pointer, word, word, word)(address)
    record = Record(0, 0)
    for before, ran, after in ((1000.0, 0, 500.0), (0.0, 0, 1.0), (0.0, 2, 25.0)):
        record.ns = before
        measured(record.address, 100, 150, ran)
        assert record.ns == after
    del keep


@pytest.mark.usefixtures("costs")
def test_who_launches_at_the_same_time_has_a_core() -> None:
    record = Record(0, 0)
    record.ns = 1e6
    some = []
    for callers in (0, 1, 3, 14, 15, 40):
        ENGINE.words[ENGINE.CALLERS] = callers
        some.append(wanted(record, 1000))
    assert some == [15, 14, 12, 1, 0, 0]


@pytest.mark.usefixtures("costs")
def test_in_a_burst_a_worker_is_woken_for_less() -> None:
    record = Record(0, 0)
    record.ns = 100.0
    ENGINE.words[ENGINE.DEBT] = 0
    assert wanted(record, 150) == 0
    ENGINE.words[ENGINE.LAST] = time.monotonic_ns()
    assert wanted(record, 150) == 2, "two of seven, which wake two more each"
    ENGINE.set_costs(wake=20_000, tell=20_000, hot=1_000)
    some = []
    for _ in range(6):
        ENGINE.words[ENGINE.LAST] = time.monotonic_ns()
        some.append(wanted(record, 150))
    assert some == [0, 2, 0, 2, 0, 2], "when what was lost without them comes to what waking them costs"


class Kept:
    """A store in memory."""

    def __init__(self) -> None:
        self.entries: dict[str, Any] = {}

    def get(self, key: str) -> Any:
        return self.entries.get(key)

    def put(self, key: str, facts: dict[str, Any], blobs: dict[str, bytes]) -> None:
        self.entries[key] = (facts, blobs)


@pytest.mark.usefixtures("costs")
def test_what_waking_costs_is_measured_once_for_a_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    store, measured = Kept(), []
    driver.set_num_threads(2)
    workers = pool.get_pool(2)
    monkeypatch.setattr(keeping, "_find", lambda: (store, "compiler"))
    monkeypatch.setattr(waking, "_known", None)

    def measure(address: int) -> waking.Costs | None:
        measured.append(address)
        return waking.Costs(wake=12_345, tell=2_345, hot=345) if len(measured) > 1 else None

    monkeypatch.setattr(waking, "measured", measure)
    before = list(ENGINE.words[ENGINE.WAKE : ENGINE.HOT + 1])
    workers.prepare(0)
    assert not measured, "not with the first launch"
    workers.prepare(0)
    assert ENGINE.words[ENGINE.WAKE : ENGINE.HOT + 1] == before, "a busy machine: nothing was learnt"
    workers.prepare(0)
    assert ENGINE.words[ENGINE.WAKE : ENGINE.HOT + 1] == [12_345, 2_345, 345]
    workers.prepare(0)
    assert len(measured) == 2 and len(store.entries) == 1
    monkeypatch.setattr(waking, "_known", None)  # as in another process
    ENGINE.set_costs(wake=1, tell=1, hot=1)
    assert waking.know_costs(workers._address)
    assert ENGINE.words[ENGINE.WAKE : ENGINE.HOT + 1] == [12_345, 2_345, 345]
    assert len(measured) == 2


def test_waking_is_measured() -> None:
    driver.set_num_threads(2)
    workers = pool.get_pool(2)
    until = time.monotonic() + 30
    while (costs := waking.measured(workers._address)) is None and time.monotonic() < until:
        time.sleep(0.01)  # others have the cores
    assert costs is not None
    assert all(low <= getattr(costs, name) <= high for name, (low, high) in waking.LIMITS.items())
    assert costs.hot < costs.wake, "who is awake begins sooner"
    launch, out = build().launcher("Qqq"), np.zeros(1000, np.int32)
    launch(1000, 1, 1, out.ctypes.data, 1_000, -1)
    assert (out == 1).all(), "and the workers are free again"


def test_an_outlier_counts_little() -> None:
    """A program that the system interrupted is measured as a thousand times too long."""
    driver.set_num_threads(1)
    kernel = build()
    launch = kernel.launcher("Qqq")
    out = np.zeros(64, np.int32)
    for _ in range(3):
        launch(64, 1, 1, out.ctypes.data, 2_000, -1)
    before = kernel.record.ns
    launch(64, 1, 1, out.ctypes.data, 2_000_000, -1)
    assert kernel.record.ns < 2 * before


def test_callers_at_once_share_the_workers() -> None:
    """One of them has the workers, the others run alone meanwhile; all programs run once."""
    driver.set_num_threads(2)
    launch = build().launcher("Qqq")
    outs = [np.zeros(2000, np.int32) for _ in range(6)]
    begin = threading.Barrier(len(outs))

    def work(out: np.ndarray) -> None:
        begin.wait()
        for _ in range(30):
            launch(2000, 1, 1, out.ctypes.data, 100, -1)

    threads = [threading.Thread(target=work, args=(out,)) for out in outs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    assert all((out == 30).all() for out in outs)
    assert ENGINE.words[ENGINE.CALLERS] == 0


def test_a_launch_takes_the_workers_when_another_is_done_with_them() -> None:
    """It was begun while they were busy, and does not run alone to its end."""
    driver.set_num_threads(2)
    kernel = build(NUMBERED)
    launch = kernel.launcher("Qqq")
    first, second = np.zeros(100, np.int32), np.zeros(500, np.int32)
    for _ in range(3):
        launch(100, 1, 1, first.ctypes.data, 100_000, -1)
    other = threading.Thread(target=launch, args=(100, 1, 1, first.ctypes.data, 1_000_000, -1))
    other.start()
    word = ctypes.c_int64.from_address(pool.get_pool(2)._address + pool_layout.BUSY)
    until = time.monotonic() + 10
    while not word.value and time.monotonic() < until:
        time.sleep(0.0005)
    assert word.value, "the other launch has them"
    launch(500, 1, 1, second.ctypes.data, 1_000_000, -1)
    other.join(timeout=60)
    assert second[0] == 0
    assert second.any(), "a worker has run some of its programs"


FORKS = """
import os, signal, sys, threading, time
import numpy as np
from runtime.test_driver import build, driver
driver.set_num_threads(3)
launch = build().launcher("Qqq")
over = False

def work():
    mine = np.zeros(300, np.int32)
    while not over:
        launch(300, 1, 1, mine.ctypes.data, 2_000, -1)

thread = threading.Thread(target=work, daemon=True)
thread.start()
before = os.environ.get("BEFORE")
if before:
    import torch
    torch.set_num_threads(2)
    x = torch.rand(1 << 20)
    assert torch.exp(x).sum() > 0  # OpenMP has threads now
for _ in range(8):
    time.sleep(0.002)
    child = os.fork()
    if child == 0:
        signal.alarm(30)  # it would wait for ever for what only its parent has
        out = np.zeros(1000, np.int32)
        for _ in range(3):
            launch(1000, 1, 1, out.ctypes.data, 2_000, -1)
        os._exit(7 if (out == 3).all() else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
if before:
    for _ in range(20):  # by turns, each with threads of its own
        out = np.zeros(1000, np.int32)
        launch(1000, 1, 1, out.ctypes.data, 2_000, -1)
        assert (out == 1).all()
        assert torch.allclose(torch.log(torch.exp(x)), x, atol=1e-5)
over = True
thread.join()
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.parametrize("beside", ["", "torch"])
def test_forks_while_others_launch(beside: str) -> None:
    """Workers, and the locks that they and who compiles may hold, are the parent's; so are OpenMP's threads, if any
    are there. At the first fork the other thread is in LLVM.
    """
    if beside and importlib.util.find_spec(beside) is None:
        pytest.skip("PyTorch is not installed")
    env = {**environment(SOURCE, TESTS), "BEFORE": beside}
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", FORKS], env=env, timeout=100, capture_output=True)
    assert done.returncode == 0, done.stderr.decode()


@weft.jit
def _sums(x, out, rounds):
    total = tl.load(x)
    for i in range(rounds):
        total = (total * 5) ^ i
    tl.store(out, total)


@weft.jit
def _waits(x, out):
    while tl.load(x) == 0:
        pass
    tl.store(out, 1)


def test_only_who_may_wait_for_others_lets_them_have_its_core() -> None:
    """A product gave its core away every 20 us: beside other work it had a fifth of what is its due."""
    x, out = np.ones(1, np.int32), np.zeros(1, np.int32)
    calm, patient = native.native().signals.tables
    for kernel, args, table in ((_sums, (1 << 22,), calm), (_waits, (), patient)):
        assert kernel[(1,)](x, out, *args)._loaded.table == ctypes.addressof(table)
    assert calm[0] != patient[0] and calm[1:] == patient[1:]
    code = native_code.text()
    poll, look = (code[code.index(f"define i32 @weft_{name}(") :].partition("\n}")[0] for name in ("poll", "look"))
    assert "@yield" in poll and "@yield" not in look
