"""A fuzzer of control flow: kernels on integers that are at the same time Python programs, run by Python itself.

write      random programs: loops of all kinds, branches, early returns, tuples, calls, constexprs, names used again
check      one program, in Python and in Weft; what Triton's frontend says of it
run        the command line: `python -m fuzz.flow.run --seeds 0:5000` in the folder `tests`
"""
