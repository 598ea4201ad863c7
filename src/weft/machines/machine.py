"""A machine: what the compiler knows of a processor, as one frozen value.

Whoever needs to know how many lanes a warp has, how much shared memory a block may take or what a shuffle costs is
given a `Machine` and reads its fields; nobody takes the name of a target apart or compares it. A new processor is a
row (`nvidia.py`, `amd.py`, `intel.py`); a machine that exists nowhere is a row in a test:

>>> narrow = Machine("toy:1", lanes=16, banks=64, shared_bytes=32 << 10)
>>> narrow.threads(4), narrow.blocks_at_a_time(narrow.threads(4), 16 << 10)
(64, 2)

Its matrix instructions and those for special purposes stand in the table of its vendor, `weft.targets`; which of them
it has follows from `vendor` and `generation`.

Costs are in cycles of one multiprocessor for one instruction of a warp, as far as they are known; a plan for moving a
tile is chosen by their sum.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import xor

KIB = 1024
ROWS_OTHERS = 2 * KIB
"""Bytes of shared memory that such a block has for results of reductions."""


@dataclass(frozen=True)
class Machine:
    """A GPU, as the passes, the lowering, the planner of layouts and the simulator see it.

    >>> from weft.layouts import machine_of
    >>> machine = machine_of("cuda:90")
    >>> machine.vendor, machine.generation
    ('nvidia', 90)
    """

    name: str
    """What its target is called: `cuda:90`."""
    vendor: str = ""
    """Whose table has its instructions."""
    generation: int = 0
    """The number by which its vendor orders its processors: NVIDIA's compute capability, times ten."""
    portable: bool = True
    """Whether what is compiled for it runs on all newer processors of its vendor as well."""

    hosted: bool = False
    """Whether launches take arrays of the host, which whoever runs the kernel moves if they must be."""

    is_default: bool = False
    """Whether layouts are planned for it, and layout IR lowered, where no machine is said."""

    lanes: int = 32
    """Threads of a warp."""
    banks: int = 32
    """Banks of shared memory."""
    bank_bytes: int = 4
    """The width of a bank."""
    vector_bytes: int = 16
    """The most that one lane loads or stores at once."""
    load_phase: tuple[int, ...] = ()
    """Distances of lanes that shared memory serves together where each loads 16 bytes, before those of others; empty
    where lanes that follow each other are."""
    matrix_loads: str = ""
    """What its instructions are called by which a warp loads 1, 2 or 4 matrices of 8 rows by 16 bytes from shared
    memory, as operands of products lie in lanes: "load" where they are load.x4, load.trans.x4 ...; "" without them."""
    matrix_stores: str = ""
    """The same for stores."""

    shared_bytes: int = 48 * KIB
    """Shared memory that a block may have; a conversion that needs more is done in rounds."""
    reserved_bytes: int = 0
    """Shared memory that each block takes besides its own."""
    most_threads: int = 2048
    """Threads that a multiprocessor runs at a time."""
    most_blocks: int = 32
    """Blocks that it runs at a time."""
    registers: int = 64 * KIB
    """Registers of 32 bits that it has."""
    thread_registers: int = 255
    """Those that a thread may have."""
    register_step: int = 8
    """The registers of a thread are allocated in multiples of so many."""
    block_threads: int = 1024
    """Threads that a block may have."""
    schedulers: int = 4
    """Instructions of warps that a multiprocessor issues in a cycle."""
    enough_threads: int = 1024
    """Threads of a multiprocessor that saturate memory by loads of 16 bytes: more blocks are not worth a spilled
    register (H100 and H200)."""
    lines_at_a_time: int = 0
    """Bytes of lines of its L1 cache that a multiprocessor is best asked for at a time by tiles whose rows begin
    anywhere; 0 where nobody has measured it."""
    copied_at_a_time: int = 0
    """Bytes in flight on a multiprocessor with which copies by blocks of 8 to 32 KB are fastest; 0 if nobody measured
    it."""
    l2_size: int = 0
    """Bytes of its L2 cache; 0 if unknown."""
    rows_ahead: int = 0
    """How many bytes ahead of the programs that load them long rows are best prefetched into the L2 cache; 0 if nobody
    measured it."""
    multiprocessors: int = 1
    """Of the largest processor of the kind."""
    clock: float = 1.0
    """In GHz, while matrix units are idle."""
    cached_bytes: float = 64.0
    """Bytes that a multiprocessor gets from the L2 cache in a cycle while all of them load."""
    copy_latency: float = 1550.0
    """Latency in cycles of a copy from the L2 cache to shared memory, while all multiprocessors copy at full speed."""
    block_start: float = 0.0
    """Cycles between two blocks that a multiprocessor starts, where all start blocks as fast as they can; 0 where
    nobody has measured it."""
    streamed_bytes: float = 0.0
    """Bytes of global memory for a multiprocessor in each cycle, where all read or write large arrays; 0 where nobody
    has measured it."""

    async_copies: tuple[int, ...] = ()
    """How many bytes a thread may have copied at once from global to shared memory while it goes on; of several, the
    largest last."""
    partial_copies: bool = False
    """Whether such a copy may be of fewer bytes than it is wide, and fills up with zeros."""
    async_proxy: bool = False
    """Whether a copy engine and matrix units access shared memory by a path of their own, which needs fences."""
    cluster_blocks: int = 1
    """Blocks of a cluster, whose shared memory they all reach, at most."""
    portable_cluster: int = 1
    """The largest cluster that every GPU with clusters can run, so that it need not be queried."""
    stages: int = 3
    """Iterations of a loop of products that are under way at a time where nobody says it: the option `num_stages`."""
    float32_products: str = "tf32"
    """How exact products of float32 are where nobody says it: a value of the option `input_precision`."""
    atomic_adds: tuple[tuple[str, int], ...] = ()
    """Types of floats of which one atomic addition adds several elements side by side, and how many at most."""

    select: float = 0.5
    permute: float = 0.75
    """A byte permutation: what packs elements in words, and takes them out."""
    shuffle: float = 2.0
    exchanges: tuple[float, ...] = ()
    """What a shuffle costs by which each lane reads the lane whose number differs by a constant, for each such mask;
    empty where all shuffles cost the same."""
    wavefront: float = 2.0
    line: float = 2.0
    """A line of global memory that an access touches, in the cache."""
    line_bytes: int = 128
    sector_bytes: int = 32
    """The part of a line that is moved where less is wanted."""
    access: float = 1.0
    """Issuing one load or store, beside its wavefronts."""
    wait: float = 0.25
    """Keeping a word that was loaded until others come that it is used with."""
    address: float = 1.0
    """One address that cannot be an immediate offset from another."""
    warp_barrier: float = 8.0
    block_barrier: float = 30.0
    cluster_barrier: float = 200.0
    trip: float = 23.0
    """The latency of a trip through shared memory that nothing hides."""

    def __hash__(self) -> int:
        """By name: machines are keys of caches that are asked for every conversion."""
        return hash(self.name)

    def threads(self, warps: int) -> int:
        """Of a block of so many warps."""
        return self.lanes * warps

    def blocks_at_a_time(self, threads: int, shared: int, registers: int = 0) -> int:
        """How many blocks of so many threads and bytes of shared memory a multiprocessor runs at a time.

        A thread may have any number of registers where `registers` is 0.

        >>> Machine("toy:1").blocks_at_a_time(256, 10 << 10), Machine("toy:1").blocks_at_a_time(256, 10 << 10, 100)
        (4, 2)
        """
        blocks = min(self.most_threads // threads, self.most_blocks)
        taken = shared + self.reserved_bytes
        if taken:
            blocks = min(blocks, (self.shared_bytes + self.reserved_bytes) // taken)
        if registers:
            blocks = min(blocks, self.registers // (self.registers_taken(registers) * threads))
        return blocks

    def registers_taken(self, registers: int) -> int:
        """The registers that are allocated for a thread that needs so many."""
        return -(-registers // self.register_step) * self.register_step

    def blocks_with_rows(self, threads: int, words: int) -> int:
        """How many blocks of so many threads run at a time, each with so many words of a thread in shared memory: if
        they have room, those of `enough_threads` together, otherwise those of three quarters, but two; 0 if these have
        none either.

        >>> toy = Machine("toy:1")
        >>> [toy.blocks_with_rows(128, words) for words in (4, 8, 12, 16)]
        [8, 8, 6, 0]
        """
        for together in (self.enough_threads, self.enough_threads * 3 // 4):
            blocks = max(2, together // threads) if threads < together else 1
            if threads * words * 4 <= self.room_for_rows(blocks):
                return blocks
        return 0

    def room_for_rows(self, blocks: int) -> int:
        """Bytes of shared memory that rows have in each of so many blocks of a multiprocessor."""
        return (self.shared_bytes + self.reserved_bytes) // blocks - self.reserved_bytes - ROWS_OTHERS

    def served(self, lanes: Sequence[int]) -> list[int]:
        """Of what the bits of a lane's number add to an offset: what `load_phase` adds."""
        return [reduce(xor, (x for i, x in enumerate(lanes) if way >> i & 1)) for way in self.load_phase]

    def narrow(self, bytes: int) -> float:
        """What it takes to put what one access moves into its place in a word, where that is less than a word."""
        return self.permute * (4 - bytes) / 4 if bytes < 4 else 0.0

    def exchange(self, *masks: int) -> float:
        """What a shuffle costs where lanes read those at one of these distances, each as often; at any without them."""
        return sum(self.exchanges[m] for m in masks) / len(masks) if masks and self.exchanges else self.shuffle

    def instructions(self, counted: Mapping[str, int], packed: int, masks: Sequence[int] = ()) -> float:
        """What instructions by kind cost; 2 ** packed elements are put in each word, and taken out again.

        To put four bytes that lie in four words in one takes two permutations, where the four words are made so.
        Shuffles are at the distances `masks`, or at any.
        """
        shuffle = self.exchange(*masks) if self.exchanges else self.shuffle
        price = {"shuffle": shuffle, "permute": self.permute, "pack": self.permute * packed}
        price["unpack"] = self.permute * packed / (1 << packed)
        return sum(n * price.get(kind, self.select) for kind, n in counted.items())

    def waiting(self, scope: str, repetitions: int = 1) -> float:
        """What a trip through shared memory costs besides moving: its barriers, and latency that nothing hides."""
        barriers = {"warp": self.warp_barrier, "block": self.block_barrier, "cluster": self.cluster_barrier}
        return barriers[scope] * (2 * repetitions - 1) + self.trip * repetitions
