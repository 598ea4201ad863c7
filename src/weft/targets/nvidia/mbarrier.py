"""mbarrier: a barrier in shared memory that counts arrivals and bytes, phase after phase.

A phase ends when as many arrivals as at `init` were counted and all bytes announced by `expect_tx` have come; then the
next begins with the same count. `try_wait.parity` asks whether the phase of that parity has ended: it is true while the
current phase has the other parity.

>>> barrier = MBarrier.init(1)
>>> barrier.try_wait(0), barrier.try_wait(1)          # phase 0 is under way; the one before it counts as ended
(False, True)
>>> barrier.expect_tx(16); barrier.arrive(); barrier.try_wait(0)
False
>>> barrier.complete_tx(16); barrier.try_wait(0)
True
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ..instruction import Instruction, Operand

__all__ = ["MBarrier", "MBarrierError", "mbarrier_instructions"]

LARGEST_COUNT = (1 << 20) - 1


class MBarrierError(Exception):
    """A barrier is used in a way that PTX leaves undefined; the text says how."""


@dataclass
class MBarrier:
    """The state of one barrier object."""

    expected: int
    pending: int
    bytes: int = 0
    """Announced and not yet come."""
    phase: int = 0

    @classmethod
    def init(cls, count: int) -> MBarrier:
        """mbarrier.init: phase 0, waiting for `count` arrivals."""
        if not 1 <= count <= LARGEST_COUNT:
            raise MBarrierError(f"the count of an mbarrier must be 1 .. {LARGEST_COUNT}, got {count}")
        return cls(count, count)

    def arrive(self, count: int = 1) -> None:
        """mbarrier.arrive: counts down; may end the phase."""
        if count > self.pending:
            raise MBarrierError(
                f"{count} more arrivals at an mbarrier that waits for {self.pending} of {self.expected}"
            )
        self.pending -= count
        self._maybe_next()

    def expect_tx(self, count: int) -> None:
        """mbarrier.expect_tx: so many more bytes belong to this phase."""
        self.bytes += count
        if not -LARGEST_COUNT <= self.bytes <= LARGEST_COUNT:
            raise MBarrierError(f"an mbarrier counts at most {LARGEST_COUNT} bytes, {self.bytes} are pending")

    def complete_tx(self, count: int) -> None:
        """A copy has delivered so many bytes."""
        self.bytes -= count
        self._maybe_next()

    def try_wait(self, parity: int) -> bool:
        """mbarrier.try_wait.parity."""
        return self.phase & 1 != parity & 1

    def _maybe_next(self) -> None:
        if self.pending == 0 and self.bytes == 0:
            self.pending = self.expected
            self.phase += 1


def mbarrier_instructions() -> Iterator[Instruction]:
    """All entries of mbarrier. All but the waits are for the lanes whose `active` holds, mostly one of a block."""
    address, active = Operand("address", "i32", 1, "r"), Operand("active", "i1", 1, "b")

    def entry(
        name: str, text: str, *operands: Operand, results: tuple[Operand, ...] = (), since: int = 90
    ) -> Instruction:
        return Instruction(
            f"mbarrier.{name}", since, text, (address, *operands), results, cost=2, touches="barrier", width=8,
            version="8.0",
        )  # fmt: skip

    def word(name: str) -> Operand:
        return Operand(name, "i32", 1, "r")

    b64 = "shared::cta.b64"
    where = "@<active> mbarrier."
    yield entry("init", f"{where}init.{b64} [<address>], <count>;", word("count"), active, since=80)
    yield entry("inval", f"{where}inval.{b64} [<address>];", active, since=80)
    yield entry("arrive.once", f"{where}arrive.{b64} _, [<address>];", active, since=80)
    yield entry("arrive", f"{where}arrive.{b64} _, [<address>], <count>;", word("count"), active)
    yield entry("arrive.each", f"{where}arrive.{b64} _, [<address>];", active, since=80)  # a warp for itself alone
    yield entry(
        "expect_tx", f"{where}expect_tx.relaxed.cta.shared::cta.b64 [<address>], <bytes>;", word("bytes"), active
    )
    yield entry("arrive.expect_tx", f"{where}arrive.expect_tx.{b64} _, [<address>], <bytes>;", word("bytes"), active)
    far = "mbarrier.arrive{}.release.cluster.shared::cluster.b64 _, [<address>], <{}>;"  # of a block of the cluster
    yield entry("arrive.remote", "@<active> " + far.format("", "count"), word("count"), active)
    # of a warp that has only read: a release to the cluster would wait until all that it has written is seen by all
    yield entry("arrive.each.remote", f"{where}arrive.shared::cluster.b64 _, [<address>];", active)
    yield entry("arrive.expect_tx.remote", "@<active> " + far.format(".expect_tx", "bytes"), word("bytes"), active)
    for name in ("copies.arrive", "copies.arrive.noinc"):  # when this lane's cp.async so far are done
        suffix = name.removeprefix("copies.arrive")
        yield entry(name, f"cp.async.mbarrier.arrive{suffix}.{b64} [<address>];", since=80)
    done = Operand("d", "i32", 1, "r")
    ask = f"mbarrier.try_wait.parity.{b64} p, [<address>], <parity>;"
    yield entry(
        "try_wait.parity", "{ .reg .pred p; " + ask + " selp.b32 <d>, 1, 0, p; }", word("parity"), results=(done,)
    )
    yield entry("wait.parity", "{ .reg .pred p; WAIT: " + ask + " @!p bra WAIT; }", word("parity"))
    wide = ask.replace("parity", "parity.acquire.cluster", 1)  # where other blocks arrive
    yield entry("wait.parity.cluster", "{ .reg .pred p; WAIT: " + wide + " @!p bra WAIT; }", word("parity"))
    test = ask.replace("try_wait", "test_wait")  # which does not sleep
    yield entry("wait.parity.awake", "{ .reg .pred p; WAIT: " + test + " @!p bra WAIT; }", word("parity"), since=80)
