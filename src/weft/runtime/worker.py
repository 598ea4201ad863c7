"""What a compile worker runs: asked through one pipe, it answers through another, until the first is closed.

A request is a function with its arguments; answers are ("stage", "") when it has arrived, ("stage", name) whenever a
stage of a compilation begins, and at the end ("result", value) or ("error", exception). See `workers`, which starts
this.
"""

from __future__ import annotations

import ctypes
import importlib
import os
import pickle
import signal
import struct
import sys
import threading
from typing import IO, Any

from weft.base import WeftError
from weft.compiler import stages_begun

LENGTH = struct.Struct("<Q")
"""What is before each message: how many bytes it has."""
HELLO = b"\0weft compile worker\0"
"""What a worker says first. What comes before it was printed while Python started, by a `sitecustomize`, say."""
PR_SET_PDEATHSIG = 1
ARRIVED = pickle.dumps(("stage", ""))


def await_hello(pipe: IO[bytes]) -> None:
    """Read until the worker says that it is there. EOFError where it is dead."""
    last = b""
    while last != HELLO:
        byte = pipe.read(1)
        if not byte:
            raise EOFError
        last = (last + byte)[-len(HELLO) :]


def read(pipe: IO[bytes]) -> Any:
    """The next message. EOFError where the other side has closed the pipe, or is dead."""
    return pickle.loads(_received(pipe))


def _received(pipe: IO[bytes]) -> bytes:
    head = pipe.read(LENGTH.size)
    if len(head) < LENGTH.size:
        raise EOFError
    size = LENGTH.unpack(head)[0]
    body = pipe.read(size)
    if len(body) < size:
        raise EOFError
    return body


def write(pipe: IO[bytes], message: Any) -> None:
    """Send a message. OSError where nobody reads any more."""
    _send(pipe, _body(message))


def _body(message: Any) -> bytes:
    return pickle.dumps(message, pickle.HIGHEST_PROTOCOL)


def _send(pipe: IO[bytes], body: bytes) -> None:
    pipe.write(LENGTH.pack(len(body)) + body)
    pipe.flush()


def main(memory: int) -> None:
    """Answer requests; with a limit of `memory` bytes of addresses, or none for 0."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # whom the user interrupts is the process that is worked for
    if sys.platform == "linux":  # which may be killed
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if memory and sys.platform != "win32":
        resource = importlib.import_module("resource")  # which Windows has not

        resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    requests, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    sys.stdout.flush()
    os.dup2(2, 1)  # what is printed meanwhile is no answer
    answers.write(HELLO)
    answers.flush()
    lock = threading.Lock()

    def answer(body: bytes) -> None:
        with lock:
            _send(answers, body)

    stages_begun.append(lambda name: answer(_body(("stage", name))))
    while True:
        try:
            request = _received(requests)
        except EOFError:
            return
        answer(ARRIVED)
        try:
            function, args, kwargs = pickle.loads(request)
            body = _body(("result", function(*args, **kwargs)))
        except BaseException as error:  # also SystemExit, and a result that does not pickle: the worker lives on
            body = _body(("error", error if isinstance(error, WeftError) else _picklable(error)))
        answer(body)


def _picklable(error: BaseException) -> BaseException:
    """An exception that arrives: the same one, or one that says what it said."""
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return RuntimeError(f"{type(error).__name__}: {error}")
    return error
