"""Functions of the mathematics library on NumPy arrays, as machine code of this processor.

    find("__nv_j0f")([np.float32([0.5, 1.0])])

The simulator runs functions of libdevice by this that NumPy has nothing for: what it gives is what a kernel on the CPU
computes, from the same descriptions that become code for a GPU.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import llvmlite.binding as llvm
import numpy as np

from . import vecmath
from .emit import Module
from .machine import initialize, parse
from .values import I64, PTR, VOID, vec

Array = np.ndarray[Any, Any]

_DTYPES = {"float": np.float32, "double": np.float64, "i32": np.int32, "i64": np.int64}


@cache
def find(symbol: str) -> Callable[[Sequence[Array]], Array] | None:
    """What computes a function of libdevice, by its symbol, on arrays that NumPy may broadcast; None if it is unknown.

    >>> f = find("__nv_fadd_ru")
    >>> f is not None and f([np.float32([1]), np.float32([1e-20])]).tolist() == [float(np.nextafter(np.float32(1), 2))]
    True
    """
    name, elem = vecmath.symbol_to_name.get(symbol, ("", ""))
    return _compiled(name, elem) if vecmath.has(name, elem) else None


@cache
def _compiled(name: str, elem: str) -> Callable[[Sequence[Array]], Array]:
    function = vecmath.definition(name, elem)
    engine = _engine(name, elem)
    kinds = [np.dtype(_DTYPES[a]) for a in function.args]
    prototype = ctypes.CFUNCTYPE(None, ctypes.c_int64, *[ctypes.c_void_p] * (len(kinds) + 1))
    run = prototype(engine.get_function_address("run"))

    def compute(operands: Sequence[Array]) -> Array:
        arrays = [np.ascontiguousarray(x).view(k) for x, k in zip(operands, kinds, strict=True)]
        whole = [np.ascontiguousarray(x) for x in np.broadcast_arrays(*arrays)]
        out = np.empty(whole[0].shape, _DTYPES[function.result])
        assert engine is not None
        run(out.size, *(x.ctypes.data for x in whole), out.ctypes.data)
        return out

    return compute


def _engine(name: str, elem: str) -> Any:
    """Machine code of `run(n, inputs..., output)`, a loop over elements."""
    function = vecmath.definition(name, elem)
    module = Module()
    parameters = [("n", I64), *((f"p{i}", PTR) for i in range(len(function.args))), ("out", PTR)]
    f = module.function("run", VOID, parameters)
    n, *inputs, out = f.args
    with f.loop(f.const(I64, 0), n, f.const(I64, 1)) as i:
        values = [f.load(vec(e, 0), f.gep(vec(e, 0), p, i)) for e, p in zip(function.args, inputs, strict=True)]
        f.store(vecmath.call(f, name, values), f.gep(vec(function.result, 0), out, i))
    f.ret()
    initialize()
    machine = llvm.Target.from_default_triple().create_target_machine(
        cpu=llvm.get_host_cpu_name(), features=llvm.get_host_cpu_features().flatten(), opt=1
    )
    engine = llvm.create_mcjit_compiler(parse(module.text()), machine, use_lmm=True)
    engine.finalize_object()
    return engine
