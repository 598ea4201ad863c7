"""A differential fuzzer: random kernels, compiled, against a NumPy interpreter that shares nothing with the compiler.

elements    the element types and what integer arithmetic means
program     statements: how they are written in the language and what they do to NumPy arrays
scope       the generator's state: variables with their types and the range of their values
operations  elementwise operations, shapes, reductions, scans, products
memory      loads, stores and atomics with all kinds of addresses and masks
control     loops, branches, early returns
special     operations on floats of any value: NaN, infinities, both zeros, denormals, numbers that round
rounding    results that are rounded once
arrays      what a kernel is launched on
device      a kernel on a GPU, twice
gluon/      Gluon kernels, with layouts
flow/       control flow alone: programs that Python runs too
compare     a seed from start to end: generate, launch, interpret, compare
shrink      cut a failing kernel down
campaign    many seeds, in processes of their own
run         the command line: `python -m fuzz.run` in the folder `tests`
"""
