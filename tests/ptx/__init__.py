"""PTX run by an interpreter: what `weft.backends.nvidia` emits, without a GPU.

The simulator runs lane programs; what is emitted from them only a GPU would run. Here the text in `.asm["ptx"]` itself
is run, on arrays of the host: all threads of a block at once, each register an array with one number per thread.

    launch(kernel, (4,), {"x": x, "out": out, "n": 1000, "BLOCK": 256}, target="cuda:90")

parsing.py       the text: parameters, tables, instructions, labels
spaces.py        where bytes lie: global, shared, local, parameters; bounds and alignment
state.py         what a block has: registers, the threads that take part
memory.py        loads, stores, atomics, cp.async
control.py       blocks of a grid, branches that diverge and meet again, barriers
exchange.py      between the lanes of a warp: shfl, vote, redux
matrices.py      ldmatrix, stmatrix, mma
launching.py     a Weft kernel, from its arguments to what the arrays hold

Instructions mean what NVIDIA's "Parallel Thread Execution ISA" says; sections are named as in its chapter "Instruction
Set". What only registers take part in (add to cvt) stands in `weft.sim.nvidia.ptx_table`, which inline assembly in the
simulator reads too; that table knows nothing of lane programs, and test_table.py judges it by Python's integers and
fractions. A register that nothing has written holds noise, and so does shared memory, so that what relies on zeros
gives another result. Not known: wgmma, bulk copies, mbarriers, clusters, calls of functions: `Unknown`, by name.
"""
