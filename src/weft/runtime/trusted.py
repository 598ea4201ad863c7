"""Files that are read back from disk and then believed: from which directories, and how they are opened.

    with Folder("/home/me/.cache/weft", create=True) as folder:
        folder.write("a.weft", data)          # beside its place, synced, renamed
        folder.read("a.weft", limit=1 << 30)  # Untrusted, unless it is this user's own

What lies in a cache becomes machine code of this process: whoever can write there can run code as this user. Two rules
keep others out. Nothing is repaired on the way, because what was open to others may hold what they put there.

- A directory has to belong to this user and must not be writable by anybody else, and no symbolic link on the way to
  it may belong to anybody but this user and root (in /tmp others may make links). Directories above it may be open, as
  /tmp is: whoever exchanges the directory for another one puts one there that is not this user's.
- A file is opened by its name in that directory, through the handle that was examined: without following a link and
  without waiting (a pipe would wait for a writer). Then the opened file itself is examined: a regular file of this
  user, without a second name elsewhere, not writable by others.

Owners and modes are what the system says. File systems that have none (FAT, network mounts that show everything
as nobody's) are refused by the same rules. On Windows, where the user's directory is private, none of this is asked.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Iterator

_POSIX = hasattr(os, "geteuid") and os.open in os.supports_dir_fd
_NOFOLLOW = getattr(os, "O_NOFOLLOW", 0)
_READ = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0) | getattr(os, "O_BINARY", 0)
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _NOFOLLOW | getattr(os, "O_BINARY", 0)
_DIRECTORY = os.O_RDONLY | _NOFOLLOW | getattr(os, "O_DIRECTORY", 0)
_MOST_LINKS = 40
"""As many symbolic links on one way as Linux follows."""


class Untrusted(OSError):
    """A directory or a file that others may have written; `problem` says why, as the rest of a sentence."""

    def __init__(self, problem: str, remedy: str = "") -> None:
        super().__init__(problem)
        self.problem = problem
        self.remedy = remedy


def _is_mine(facts: os.stat_result) -> bool:
    """Whether a file is this user's; for a program that runs with the rights of another, nothing is."""
    return facts.st_uid == os.getuid() == os.geteuid()


def _owners(facts: os.stat_result) -> str:
    mine = f"uid {os.geteuid()}" if os.getuid() == os.geteuid() else f"uid {os.getuid()}, acting as {os.geteuid()}"
    return f"belongs to another user (its owner is uid {facts.st_uid}, this process is {mine})"


def _refuse_directory(path: str, facts: os.stat_result) -> None:
    if not _is_mine(facts):
        raise Untrusted(_owners(facts))
    if facts.st_mode & 0o022:
        raise Untrusted(
            f"can be written by others (its mode is {stat.S_IMODE(facts.st_mode):04o})",
            f"`chmod go-w {path}` closes it",
        )


def _refuse_file(facts: os.stat_result) -> None:
    if not stat.S_ISREG(facts.st_mode):
        raise Untrusted("it is not a regular file")
    if not _POSIX:
        return
    if not _is_mine(facts):
        raise Untrusted(f"it {_owners(facts)}")
    if facts.st_mode & 0o022:
        raise Untrusted(f"it can be written by others (its mode is {stat.S_IMODE(facts.st_mode):04o})")
    if facts.st_nlink > 1:  # 0 where it was replaced since it was opened
        raise Untrusted("it has other names as well (hard links)")


def _resolved(path: str, *, create: bool) -> str:
    """A path without symbolic links. Untrusted where one of another user is on the way; with `create`, what is missing
    is made, for this user only.
    """
    place, links = os.sep, 0
    parts = (path if os.path.isabs(path) else os.path.join(os.getcwd(), path)).split(os.sep)[::-1]
    while parts:
        part = parts.pop()
        if part in ("", os.curdir):
            continue
        if part == os.pardir:  # `place` has no links, so that this is its parent
            place = os.path.dirname(place)
            continue
        ahead = os.path.join(place, part)
        try:
            facts = os.lstat(ahead)
        except FileNotFoundError:
            if not create:
                raise
            with contextlib.suppress(FileExistsError):  # another process was quicker
                os.mkdir(ahead, 0o700)
            facts = os.lstat(ahead)
        if not stat.S_ISLNK(facts.st_mode):
            place = ahead
            continue
        if facts.st_uid and not _is_mine(facts):
            raise Untrusted(f"is reached by {ahead}, a symbolic link of another user (uid {facts.st_uid})")
        links += 1
        if links > _MOST_LINKS:
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
        target = os.readlink(ahead)
        place = os.sep if os.path.isabs(target) else place
        parts += target.split(os.sep)[::-1]
    return place


def _read_all(handle: int, facts: os.stat_result, limit: int) -> bytes:
    if facts.st_size > limit:
        raise Untrusted(f"it is larger than {limit} bytes")
    parts, left = [], limit + 1
    while left and (part := os.read(handle, min(left, max(facts.st_size, 4096)))):
        parts.append(part)
        left -= len(part)
    if not left:
        raise Untrusted(f"it is larger than {limit} bytes")
    return b"".join(parts)


def _close(handle: int) -> None:
    """Close what was only read: an error means nothing."""
    with contextlib.suppress(OSError):
        os.close(handle)


def read_regular(path: str, limit: int) -> bytes:
    """The bytes of a file that the user has named, whoever owns it, by links or not; an OSError for a pipe or a device,
    which could be waited for without end.
    """
    handle = os.open(path, _READ)
    try:
        facts = os.fstat(handle)
        if not stat.S_ISREG(facts.st_mode):
            raise Untrusted("it is not a regular file")
        return _read_all(handle, facts, limit)
    finally:
        _close(handle)


class Folder:
    """An open directory; unless `trusted` is false, one that only this user can have written to.

    Making one raises Untrusted, FileNotFoundError (unless `create`), or another OSError. `trusted=False` is for
    directories that are only written to: they are not examined, but links in them are not followed either.
    """

    def __init__(self, path: str, *, create: bool = False, trusted: bool = True) -> None:
        self.path = path
        self._trusted = trusted
        self._handle: int | None = None
        if not _POSIX:
            if create:
                os.makedirs(path, exist_ok=True)
            if not stat.S_ISDIR(os.stat(path).st_mode):
                raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
            return
        if trusted:
            self._handle = os.open(_resolved(path, create=create), _DIRECTORY)
        else:
            if create:
                os.makedirs(path, exist_ok=True)
            self._handle = os.open(path, _DIRECTORY & ~_NOFOLLOW)
        if trusted:
            try:
                _refuse_directory(path, os.fstat(self._handle))
            except OSError:
                self.close()
                raise

    def __enter__(self) -> Folder:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Give the handle back."""
        if self._handle is not None:
            handle, self._handle = self._handle, None
            _close(handle)

    def _at(self, name: str) -> str:
        """What a call that knows directories by handle is given as the path of a file in this one."""
        if os.path.basename(name) != name or name in ("", os.curdir, os.pardir):
            raise Untrusted(f"{name!r} is not the name of a file in a directory")
        return name if self._handle is not None else os.path.join(self.path, name)

    def _open(self, name: str) -> tuple[int, os.stat_result]:
        """A handle for reading, and what it is of. Untrusted unless it is a file as the module says."""
        try:
            handle = os.open(self._at(name), _READ | _NOFOLLOW, dir_fd=self._handle)
        except OSError as error:
            if error.errno in (errno.ELOOP, errno.EMLINK):  # what the systems say of a link that is not followed
                raise Untrusted("it is a symbolic link") from None
            if error.errno in (errno.ENXIO, errno.EOPNOTSUPP):  # of a socket
                raise Untrusted("it is not a regular file") from None
            raise
        try:
            facts = os.fstat(handle)
            _refuse_file(facts)
        except OSError:
            _close(handle)
            raise
        return handle, facts

    def check(self, name: str) -> None:
        """An OSError unless a file may be read: it is there, and as the module says."""
        _close(self._open(name)[0])

    def read(self, name: str, limit: int, *, used: bool = False) -> bytes:
        """The bytes of a file; `used` notes the time. Untrusted as the module says, and if it exceeds the limit."""
        handle, facts = self._open(name)
        try:
            data = _read_all(handle, facts, limit)
            if used:
                with contextlib.suppress(OSError):
                    os.utime(handle if os.utime in os.supports_fd else self._at(name))
            return data
        finally:
            _close(handle)

    def write(self, name: str, data: bytes) -> None:
        """Write a file beside its place, wait until it is on the disk, and rename it: it is there as a whole or not at
        all, and what had its name (a link, a pipe) is replaced, not written through.
        """
        temporary = f"{name}.{os.getpid()}.{os.urandom(6).hex()}.tmp"
        try:
            handle = os.open(self._at(temporary), _CREATE, 0o600 if self._trusted else 0o666, dir_fd=self._handle)
            try:
                view = memoryview(data)
                while view:
                    view = view[os.write(handle, view) :]
                os.fsync(handle)
            finally:
                os.close(handle)
            os.replace(self._at(temporary), self._at(name), src_dir_fd=self._handle, dst_dir_fd=self._handle)
        except BaseException:
            with contextlib.suppress(OSError):
                self.remove(temporary)
            raise

    def remove(self, name: str) -> None:
        """Remove a name; of a link, the link."""
        os.unlink(self._at(name), dir_fd=self._handle)

    def names(self) -> Iterator[tuple[str, os.stat_result]]:
        """Everything in it but directories, with what is known of it; links are not followed."""
        with os.scandir(self.path if self._handle is None else self._handle) as listing:
            for item in listing:
                with contextlib.suppress(OSError):
                    facts = item.stat(follow_symlinks=False)
                    if not stat.S_ISDIR(facts.st_mode):
                        yield item.name, facts
