"""Random Gluon kernels: the same statements on tiles with explicit layouts, and what only Gluon has.

layouts     random layouts of registers and of shared memory, as text
scope       the generator: which layout each variable has, and how operands come to have one
operations  conversions, shapes, reductions, scans, gathers
memory      shared memory and views of it, copies that go on meanwhile
products    products by mma.sync, by wgmma, in lanes; bulk copies
pipelines   products in loops that fetch operands ahead
kernels     a seed becomes a kernel
"""
