"""The process that makes modules of SPIR-V: it has LLVM and little else, and forks for each of them.

    status, answer = asked(text)         LLVM IR in; 0 and the words, or another status and why there are none

A fork takes as long as a process has pages, here some milliseconds, and the one for the next module is there before it
is asked for. The process is started with the first kernel, and ends when its input does, which is when the process that
has started it ends. Messages are a length of 8 bytes and so many bytes, and an answer has a status of 4 bytes before
it. What LLVM says goes where this process's errors go.
"""

from __future__ import annotations

import atexit
import os
import struct
import subprocess
import sys
import threading
from typing import IO

from weft.base import load
from weft.base.locks import renewed

_LENGTH, _STATUS = struct.Struct("<Q"), struct.Struct("<i")
_lock = renewed(threading.Lock())
_running: dict[int, subprocess.Popen[bytes]] = {}
"""The server of this process, by its id: a fork of this process has another one."""


def started() -> subprocess.Popen[bytes]:
    """The server, which is there from the first call on."""
    with _lock:
        return _server()


def asked(text: bytes) -> tuple[int, bytes]:
    """What a process of its own answers. One that has ended, whyever, is started once more."""
    with _lock:
        for last in (False, True):
            server = _server()
            try:
                return _exchanged(server, text)
            except BaseException as error:  # an interrupt too: its answer would be taken for that of the next module
                server.kill()
                server.wait()
                if last or not isinstance(error, OSError | EOFError):
                    raise
    raise AssertionError


def _server() -> subprocess.Popen[bytes]:
    server = _running.get(os.getpid())
    if server is None or server.poll() is not None:
        code = f"import sys; sys.path[:] = {sys.path!r}; from {__name__} import serve; serve()"
        server = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        _running.clear()
        _running[os.getpid()] = server
        atexit.register(_stop, os.getpid())
    return server


def _stop(owner: int) -> None:
    """End the server of this process, where it is this one's."""
    server = _running.pop(owner, None) if owner == os.getpid() else None
    if server is not None:
        server.kill()
        server.communicate()


def _exchanged(server: subprocess.Popen[bytes], text: bytes) -> tuple[int, bytes]:
    assert server.stdin is not None and server.stdout is not None
    server.stdin.write(_LENGTH.pack(len(text)) + text)
    server.stdin.flush()
    (status,) = _STATUS.unpack(_read(server.stdout, _STATUS.size))
    return status, _message(server.stdout)


def _read(pipe: IO[bytes], size: int) -> bytes:
    data = pipe.read(size)
    if len(data) < size:
        raise EOFError
    return data


def _message(pipe: IO[bytes]) -> bytes:
    (length,) = _LENGTH.unpack(_read(pipe, _LENGTH.size))
    return _read(pipe, length)


def serve() -> None:
    """Be the server, until there are no more messages."""
    machine = load("weft.backends.intel.machine")
    machine.prepare()
    source, answers = sys.stdin.buffer, sys.stdout.buffer
    while True:
        fork = machine.Fork.waiting()
        try:
            text = _message(source)
        except EOFError:
            return
        status, answer = fork.answer(text.decode())
        answers.write(_STATUS.pack(status) + _LENGTH.pack(len(answer)) + answer)
        answers.flush()
