"""What a vendor says of itself where a lane program becomes LLVM IR.

Everything else in this folder is the same for all GPUs: values are LLVM's, control flow is LLVM's, and so are loads and
stores that have no mask. A vendor gives a `Dialect`, made anew for each program: `backends/nvidia/dialect.py` is one.

    text = emit_llvm(program, MyDialect(program.machine))

Registers are spelled as LLVM spells operands (`%x7`, `16`). A method that gives a register has written what makes it,
by `e.ins` (each time), `e.pure` (once for one text), `e.early` (the same, in front of loops) or `e.once` (once for a
key). What three vendors would write:

    place("thread")      @llvm.nvvm.read.ptx.sreg.tid.x    @llvm.amdgcn.workitem.id.x    @_Z12get_local_idj(i32 0)
    shuffle              shfl.sync.bfly                    ds_bpermute, DPP              @_Z21sub_group_shuffle_xorfj
    masked_load          @%p ld.global                     a branch around a load        a branch around a load
    barrier              barrier.cta.sync                  s_barrier                     @_Z7barrierj
    copy                 cp.async                          global_load_lds               nothing: there is none
    await_copies         groups of cp.async                vmcnt, the copies of groups   nothing
    instruction          inline assembly                   an intrinsic                  a function of that name
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, TypeAlias, TypeVar

from weft.backends.llvm.emit import Function
from weft.backends.llvm.values import Value
from weft.ir import lane
from weft.ir.lane import LaneOp, LaneProgram
from weft.targets.instruction import Instruction

from .operands import Access, Register

E = TypeVar("E")
"""The emitter, which knows the dialect: `emitter.Emitter`."""
Scalar: TypeAlias = Callable[[E, LaneOp, list[str]], str]
"""How one register of an element-wise operation is computed, its operands spelled out."""
Pair: TypeAlias = Callable[[E, list[Register]], list[Register]]
"""How two registers are converted at once."""

APPROXIMATE = ("exp2", "log2", "reciprocal", "sqrt", "rsqrt", "sin", "cos", "quotient")
"""What `Dialect.approximation` is asked for, of f32; all may take denormals for 0. `exp2` may be off by
2^-22 of the result, `log2` by 2^-22 near 1, `reciprocal` and `sqrt` by 2^-23, `rsqrt` by 2^-22.9 of the result,
`quotient` by two units in the last place."""


class Dialect(Protocol[E]):
    """The vendor's part of emission, for one program."""

    processor: str
    """What the vendor's assembler calls the machine."""
    convention: str
    """LLVM's calling convention of kernels."""
    tensor_map: str
    """Attributes of a parameter that is a tensor map, 128 bytes by value."""
    counts_shared: bool
    """Whether addresses of shared memory are counted from its beginning, where pointers to it are no numbers."""
    scopes: Mapping[str, str]
    """What LLVM calls the threads among which an atomic is ordered, for `cta` and `gpu`."""
    bf16: str
    """How a bf16 is held: `bfloat`, or `i16` where LLVM computes with none; it is then computed with as f32."""
    adds_bf16: bool
    """Whether pairs of bf16 are added and multiplied by instructions of their own; by fma otherwise."""
    converts_slowly: bool
    """Whether an integer becomes a float in more time than two operations take, on bits and on floats."""
    scalars: Mapping[str, Scalar[E]]
    """Element-wise operations that it computes in a way of its own."""

    # -- the kernel ---------------------------------------------------------------------------------------------------

    def attributes(self, program: LaneProgram, registers: int) -> str:
        """Attributes of the kernel's function: the size of its blocks and clusters, how many `registers` (0: any)."""

    def pointers(self, program: LaneProgram) -> Sequence[str]:
        """The names of pointers to global memory that the kernel takes behind its parameters."""

    def shared_memory(self, program: LaneProgram, alignment: int) -> str:
        """The definition of `@shared_memory`, in address space 3."""

    def begin(self, e: E) -> None:
        """Write what comes before all else in the kernel."""

    # -- where a thread is --------------------------------------------------------------------------------------------

    def place(self, e: E, index: str, below: int = 0) -> str:
        """An index of 32 bits, known to be less than `below`: `thread` of the block, `rank` of the block in its
        cluster, `block.x`, `blocks.x` (how many) and the same of `program`, which is a cluster of blocks, for y, z too.
        """

    def same(self, e: E, key: object, number: str) -> str:
        """A number that all lanes have, in a form of which the assembler sees that they do; once for a key."""

    # -- between lanes ------------------------------------------------------------------------------------------------

    def shuffle(self, e: E, word: str, lane: str, *, xor: bool) -> str:
        """32 bits from another lane: that of this number, or (`xor`) that whose number differs in these bits."""

    def ballot(self, e: E, bit: str) -> str:
        """The bit of each lane: an i32, or an i64 where a warp has 64."""

    def elect(self, e: E) -> str:
        """A bit that one lane of the warp has."""

    def permute(self, e: E, a: str, b: str, selector: str) -> str:
        """The bytes of two words that the selector names, four bits each: 0 to 3 in `a`, 4 to 7 in `b`."""

    # -- order --------------------------------------------------------------------------------------------------------

    def barrier(self, e: E, op: LaneOp) -> None:
        """`barrier`, of a warp, a partition, a block, a cluster."""

    def fence(self, e: E, op: LaneOp) -> None:
        """`fence`, by the kinds that the lane program has."""

    # -- memory -------------------------------------------------------------------------------------------------------

    def hints(self, e: E, op: LaneOp) -> Any:
        """What an access asks of the caches, for the accesses below; called before them."""

    def masked_load(self, e: E, access: Access, hints: Any, other: Sequence[Register] | None) -> Sequence[Register]:
        """The words of an access that has a mask or hints, or reaches another block; where the mask does not hold
        `instead_of(e, access, other)`."""

    def masked_store(self, e: E, access: Access, hints: Any, words: Sequence[str]) -> None:
        """The same for a store. Single bytes come as words of which the lowest byte counts."""

    def atomic(
        self, e: E, op: LaneOp, elem: str, address: Register, new: Sequence[Register], mask: Register | None
    ) -> list[Register] | None:
        """What was there before; None where there is no such instruction, and LLVM's own way is taken."""

    def ordered(self, e: E, op: LaneOp, elem: str, address: Register, new: Register, mask: Register | None) -> Register:
        """`atomic` of kind `load` or `store`: what is there; of a store nothing."""

    def compare_and_swap(
        self, e: E, op: LaneOp, address: Register, old: Register, new: Register, mask: Register | None
    ) -> Register:
        """What was there before, where `new` is stored if that is `old`; 0 where the mask does not hold."""

    def remote(self, e: E, address: str, rank: str) -> str:
        """The address in the shared memory of another block of the cluster."""

    def copy(self, e: E, op: LaneOp, target: Register, source: Register, mask: Register | None) -> None:
        """One copy of `copy_async`, from global to shared memory: zeros where the mask does not hold."""

    def await_copies(self, e: E, op: LaneOp) -> None:
        """`commit_async`, `wait_async`: copies are waited for by the groups that they were committed in. A vendor that
        counts single copies counts those of the groups that may be pending."""

    # -- arithmetic ---------------------------------------------------------------------------------------------------

    def approximation(self, f: Function, name: str, operands: list[Value]) -> Value:
        """One of APPROXIMATE."""

    def hidden(self, name: str, a: str, b: str) -> str:
        """An instruction on 64 bits, as text, which LLVM does not rewrite where that can be said: `add`, `shl`, `sdiv`,
        `udiv`; a divisor is never 0."""

    def pair_conversion(self, source: str, target: str) -> Pair[E] | None:
        """How two floats at once are converted, to or from 8 bits; None if they are not."""

    def toward_zero(self, e: E, source: str, target: str, name: str) -> str | None:
        """A float as a narrower one, rounded toward zero; None where there is no instruction."""

    def to_integer(self, e: E, name: str, source: str, bits: int, *, signed: bool) -> str:
        """f32 or f64 as an integer of 32 or 64 bits, toward zero; out of range saturates, NaN is 0."""

    def together(self, value: lane.Value) -> int:
        """How many neighbouring registers of a value a loop carries in one vector of LLVM's, where it is what the loop
        yields; 1 where each is for itself."""

    # -- what has no other form ---------------------------------------------------------------------------------------

    def instruction(
        self, e: E, op: LaneOp, entry: Instruction, chunks: Sequence[Sequence[Register]]
    ) -> list[list[Register]]:
        """One instruction, an entry of the vendor's table: the elements of each operand, and those of each result."""

    def wait(self, e: E, op: LaneOp) -> None:
        """`await`: registers that an instruction has still been writing."""

    def assembly(self, e: E, op: LaneOp) -> None:
        """`assembly`, which the kernel's author wrote."""

    def clock(self, e: E) -> str:
        """64 bits of nanoseconds since some moment, read each time."""

    def zero(self, e: E) -> str:
        """A zero of 32 bits of which nobody knows that it is one."""

    def load_anew(self, e: E) -> None:
        """Nothing, but what was loaded before is loaded again behind it, in every iteration of a loop."""

    def keep(self, e: E, registers: list[tuple[str, str]]) -> None:
        """Nothing, but registers (type, name) count as read here."""

    def print(self, e: E, form: str, values: list[tuple[str, str]]) -> None:
        """Print a line: a format of C's, and values (type, name), of 32 and 64 bits."""

    def anywhere(self, e: E, bit: str) -> str:
        """Where threads stop for an assertion: where this bit says so, or where that of any thread does."""

    def give_up(self, e: E, message: str, path: str, line: int) -> None:
        """An assertion does not hold: the launch ends. What is wrong, and where that stands."""

    def trap(self, e: E) -> None:
        """The program stops itself."""
