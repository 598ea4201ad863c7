"""Plans: how tiles move between layouts, what that costs, and why it is done so.

Idea
----
A tile lies in layout `src` and is wanted in layout `dst`. Both map places to elements, so one linear map says for
every place of the result from which place of the source its element comes: C = src⁻¹ ∘ dst. The ways that are open can
be read off C, block by block of its matrix:

    C is the identity                    nothing to do
    C changes registers only             registers are renamed, which is free
    C stays within warps                 shuffles, with selects around them (shuffle.py, swaps.py)
    always                               a trip through shared memory: store, barrier, load (trip.py)

A plan prices each open way in cycles of the machine that is asked about, takes the cheapest, and keeps the others with
their prices: `plan.explain()`.

Example
-------
64 floats in one warp. Lane l holds elements 2l and 2l + 1; wanted are l and l + 32.

    >>> from weft.layouts import LinearLayout
    >>> def layout(register, lane):
    ...     bases = {"register": [(register,)], "lane": [(element,) for element in lane]}
    ...     return LinearLayout.from_bases(bases, {"dim0": 64})
    >>> pairs = layout(1, [2, 4, 8, 16, 32])
    >>> halves = layout(32, [1, 2, 4, 8, 16])
    >>> halves.invert_and_compose(pairs).bases
    {'register': ((0, 16),), 'lane': ((1, 0), (0, 1), (0, 2), (0, 4), (0, 8))}

Values are (register, lane) of the source. Lane l reads from lane l // 2, and its second register from 16 lanes further
on; whether it reads register 0 or 1 is bit 0 of its own number. One register bit and the lane bits change places:
shuffles are open, and cheaper than memory.

    >>> print(plan_conversion(pairs, halves, (64,), 32, "cuda:80").explain())
    shuffles: 6 cycles a warp
           2 shuffle
           4 select
    considered:
        shuffles: 6 cycles, 2 shuffle, 4 select
        shared: 41 cycles, 1 st.shared.b64, 1 ldmatrix.x2

Invariants
----------
* Every stage is linear. So a plan that is right on every basis vector is right everywhere: `Plan.check` runs it on
  those, and the tests check every plan that they meet.
* One of several copies of an element is stored; every copy of the result is filled. Of several sources the nearest is
  read: same block, same warp, same lane (../sources.py).
* Where a vector fills at least a word of a bank, both sides of a trip are free of bank conflicts (swizzle.py).
* The price of a plan counts what the lowering writes down, instruction by instruction; what is counted when a program
  is simulated, and by the hardware's counters, is compared with it.
* A plan is immutable and depends on the two layouts, the bits of an element and the machine only; plans are kept.

Why prices, and not a rule
--------------------------
The paper takes the first way of the list above that is open. With 32 registers of 32 bits in each of 32 lanes
(cuda:80), exchanging 3 of the 5 register bits with lane bits takes 28 shuffles and 192 selects, 152 cycles, and a trip
175; exchanging 4 takes 30 shuffles and 256 selects, 188 cycles, and the trip still takes 175. No rule about the shape
of C has that, and the figures differ from machine to machine.

The folder
----------
    either        `plan_conversion`: between registers, or a store or load where one side is shared memory
    conversion    the ways of a conversion between registers, and the choice
    shuffle       a conversion within a warp as three shears;    steps: the same, register by register
    swaps         elements that change places within words
    trip          a trip through shared memory;    search: which one;    swizzle: where elements lie in it
    access        the instruction of one side of a trip, how wide it is and how many wavefronts it takes
    local         the same for memory whose layout is given
    gather, picking, reduction      plans of operations that move data as well

Zhou et al., Linear Layouts (arXiv 2505.23819v5), sections 5.3 and 5.4, theorem 5.1 and lemmas 9.4 to 9.6; Triton's
pull requests 7558 (shears in place of rounds of shuffles) and 7565 (pairs of instructions, matrix instructions among
them). Pricing, words, swaps, and the choice among copies are our own.
"""

from weft.base import publish as _publish
from weft.machines import MACHINES as MACHINES, Machine as Machine, machine_of as machine_of

from ..pictures import install as _install
from .access import *
from .conversion import *
from .either import *
from .gather import *
from .local import *
from .reduction import *

_publish(globals())

_install(Plan, Gather, Reduction, LocalAccess)
