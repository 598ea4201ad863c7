"""Collecting garbage pauses while something compiles, and only then."""

from __future__ import annotations

import gc
import os
import threading

import pytest

from weft.runtime.collection import uncollected


def test_it_resumes_when_the_last_one_ends() -> None:
    assert gc.isenabled()
    inside, leave = threading.Event(), threading.Event()

    def other() -> None:
        with uncollected():
            inside.set()
            leave.wait()

    thread = threading.Thread(target=other)
    with pytest.raises(KeyError), uncollected():
        thread.start()
        inside.wait()
        raise KeyError
    assert not gc.isenabled()
    leave.set()
    thread.join()
    assert gc.isenabled()


def test_who_has_disabled_it_keeps_it_disabled() -> None:
    gc.disable()
    try:
        with uncollected():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_a_forked_process_collects() -> None:
    with uncollected():
        child = os.fork()
        if not child:
            os._exit(0 if gc.isenabled() else 1)
    assert os.waitpid(child, 0)[1] == 0
