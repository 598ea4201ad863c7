"""Launches whose arguments are as they were before, from Python's call on in native code (see `backends/cpu/calls`).

    launch = Prepared(kernel, general).launch     # general: the launcher of `binder`
    launch(grid, x, y, out, n, BLOCK=128)         # the general way, which is watched: (1)
    launch(grid, x, y, out, m, BLOCK=128)         # natively, if the key of (1) would be found again

After some launches a plan is written of the last one: everything that the key of the general way holds of each
argument, everything that is asked at each launch (hooks, settings, what the kernel captures), what its guard looks at,
and where addresses and numbers go. What no plan says is left to the general way: tuples, descriptors, subclasses of
arrays, numbers beyond 32 bits, kernels that print or check.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from weft.backends.cpu import calls
from weft.backends.cpu.calls import MOST_ARRAYS, MOST_SLOTS, WRITEABLE, Book, Check, Kind, Plan
from weft.compiler import CompiledKernel
from weft.language.callable import MISSING, KernelParam

from . import knobs
from .arrays import address_of
from .binder import asked_grid, grid_of
from .launch import descriptor_rank, runtime_leaves
from .specialize import COARSE

AFTER = 32
"""Launches until the first plan, where the native function has to be made for it: that takes tens of milliseconds."""
SOON = 3
"""Launches until the first plan, where it is there or was kept: a plan takes as long as a dozen launches save."""
MOST_PLANS = 8
"""Plans of a kernel, looked at one after the other; the oldest goes."""

_I32 = (-(1 << 31), (1 << 31) - 1)
_DLPACK = "dlpack_exchange_api"
_FROM_OBJECT = 5
"""The word of DLPack's exchange functions that describes an array without a new object."""

_supported: bool | None = None


def supported() -> bool:
    """Whether launches can be prepared here."""
    global _supported
    if _supported is None:
        _supported = calls.supported()
    return _supported


class _NoPlan(Exception):
    """A launch of which there is to be none."""


class Prepared:
    """The launching function of a kernel, and its plans."""

    def __init__(self, kernel: Any, general: Callable[..., Any]) -> None:
        self._kernel, self._general = kernel, general
        self._book = bytearray(8 * Book.SIZE)
        self._keep: list[Any] = [self._watched]
        self._plans: list[tuple[Any, ...]] = []
        self._lock = threading.RLock()
        self._calls: dict[int, int] = {}
        """Launches by the general way, of each compiled kernel."""
        self._put(Book.GENERAL, id(self._keep[0]))
        self.launch: Callable[..., Any] = self._keep[0]

    def _put(self, word: int, value: int) -> None:
        ctypes.c_int64.from_buffer(self._book, 8 * word).value = value

    def forget(self) -> None:
        """Drop all plans; launches that are at work keep theirs."""
        with self._lock:
            self._set([])

    def _set(self, plans: list[tuple[Any, ...]]) -> None:
        following = 0
        for plan in reversed(plans):
            plan[0][Plan.NEXT], following = following, ctypes.addressof(plan[0])
        self._put(Book.FIRST, following)
        self._plans, self._keep[1:] = plans, plans

    def _watched(self, grid: Any, /, *args: Any, **kwargs: Any) -> Any:
        """The general way, and now and then a plan of it."""
        compiled = self._general(grid, *args, **kwargs)
        count = self._calls[id(compiled)] = self._calls.get(id(compiled), 0) + 1
        again = not count & (count - 1)  # ever more seldom: there may be no plan, or launches of more kinds than plans
        if (count >= AFTER and again) or ((count == SOON or (count > SOON and again)) and calls.at_hand()):
            try:
                plan = _Function(self._kernel, compiled).plan(args, kwargs)
            except _NoPlan:
                if not self._plans and count >= 2 * AFTER:  # and most likely there never will be one
                    self._kernel.launch_by(self.launch, self._general)
                return compiled
            with self._lock:
                self._set([plan, *self._plans[: MOST_PLANS - 1]])
                if self.launch is self._keep[0]:
                    self.launch = calls.function(self._book, self._keep)
                    self._kernel.launch_by(self._keep[0], self.launch)
        return compiled


class _Writer:
    """Writes plans of launches of a compiled kernel."""

    def __init__(self, compiled: Any) -> None:
        if type(compiled) is not CompiledKernel:  # one that is simulated, or a GPU's
            raise _NoPlan
        loaded = compiled._loaded
        record = getattr(loaded, "record", None)
        if record is None or not loaded.plain:
            raise _NoPlan
        self._compiled, self._loaded, self._record = compiled, loaded, record
        signature = getattr(compiled.src, "signature", None)
        self._types = list(compiled.metadata.params if signature is None else signature.values())
        leaves = runtime_leaves(self._types)
        if len(leaves) > MOST_SLOTS or any(len(path) > 1 or descriptor_rank(kind) for path, kind in leaves):
            raise _NoPlan
        self._slots = {path[0]: (slot, kind) for slot, (path, kind) in enumerate(leaves)}
        self._stored = {leaves[k][0][0] for k in compiled.metadata.stored_params}
        facts = compiled.metadata
        strict = {tuple(pair) for pair in facts.strict_alias_pairs}
        self._pairs = [(leaves[i][0][0], leaves[j][0][0], (i, j) in strict) for i, j in facts.alias_pairs]
        self._arrays = {param: k for k, param in enumerate({p for i, j, _ in self._pairs for p in (i, j)})}
        if len(self._arrays) > MOST_ARRAYS:
            raise _NoPlan
        self._kept: list[Any] = [compiled, loaded]

    def _words(self, counts: Mapping[int, int], checks: Sequence[int], rest: Sequence[int]) -> tuple[Any, ...]:
        """(words, everything they point to): a plan with these words in its header; `rest` is what follows pairs."""
        pairs = [word for i, j, strict in self._pairs for word in (self._arrays[i], self._arrays[j], int(strict))]
        body = [*checks, *pairs, *rest, *[0] * len(self._slots)]
        words = (ctypes.c_int64 * (Plan.SIZE + len(body)))(*[0] * Plan.SIZE, *body)
        common = {
            Plan.CHECKS: len(checks) // Check.SIZE,
            Plan.PAIRS: len(pairs) // 3,
            Plan.SLOTS: len(self._slots),
            Plan.SCRATCH: self._loaded.scratch_bytes,
            Plan.TABLE: self._loaded.table,
            Plan.RECORD: self._record.address,
            Plan.ROOM: self._keep(self._loaded.room),
            Plan.PREPARE: self._keep(self._loaded.prepare),
            Plan.FAIL: self._keep(self._loaded.fail),
        }
        for word, number in {**common, **counts}.items():
            words[word] = number
        plan = (words, *self._kept)
        words[Plan.OWNER] = id(plan)
        return plan

    def _keep(self, value: Any) -> int:
        """Where an object is, which lives as long as the plan."""
        self._kept.append(value)
        return id(value)

    def _same(self, value: Any) -> list[int]:
        """A constant. What may change in its place is none that can be told by its identity."""
        if not _is_constant(value):
            raise _NoPlan
        return _row(Kind.SAME, -1, want=self._keep(value))

    def _array(self, number: int, value: Any, slot: int, *, align: bool) -> list[int]:
        array = self._arrays.get(number, MOST_ARRAYS)
        cls = type(value)
        if cls is np.ndarray:
            element, size, describe = self._keep(value.dtype), value.itemsize, 0
            row = _row(Kind.ARRAY, slot, element=element, written=WRITEABLE if number in self._stored else 0)
        elif (cls.__module__, cls.__name__) in (("torch", "Tensor"), ("torch.nn.parameter", "Parameter")):
            describe, size = _describer(cls), value.element_size()
            row = _row(Kind.TENSOR, slot, element=_element(describe, value), low=describe, high=self._keep(cls.is_neg))
        else:
            raise _NoPlan
        row[Check.WANT], row[Check.ARRAY], row[Check.BYTES] = self._keep(cls), array, size
        row[Check.ALIGNED] = _alignment(value) if align else 0
        return row


class _Function(_Writer):
    """Of launches of a kernel's function."""

    def __init__(self, kernel: Any, compiled: Any) -> None:
        super().__init__(compiled)
        if all(entry[0] is not compiled for entry in kernel._entries.values()):
            raise _NoPlan
        self._kernel = kernel

    def plan(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[Any, ...]:
        """(words, everything they point to)."""
        params: Sequence[KernelParam] = self._kernel.params
        if any(name in kwargs for name in ("target", "stream")) or len(args) > len(params):
            raise _NoPlan
        places = {params[k].name: k + 1 for k in range(len(args))}
        places |= {name: len(args) + 1 + k for k, name in enumerate(kwargs)}
        bound = {**{p.name: value for p, value in zip(params, args, strict=False)}, **kwargs}
        checks: list[int] = []
        names: list[int] = []
        for param in params:
            value = bound.pop(param.name, param.default if param.has_default else MISSING)
            place = places.get(param.name, -1)
            names += [self._keep(param.name), place, self._keep(value)]
            check = self._check(param, value)
            check[Check.PLACE], check[Check.OBJECT] = place, id(value)
            checks += check
        for name, value in bound.items():  # options
            check = self._same(value)
            check[Check.PLACE] = places[name]
            checks += check
        watched, changed = self._asked()
        hooks = (knobs.runtime.launch_enter_hook, knobs.runtime.launch_exit_hook, self._kernel.pre_run_hooks)
        if not all(isinstance(hook, list) for hook in hooks):
            raise _NoPlan
        keywords = tuple(kwargs) or None
        counts = {
            Plan.ARGUMENTS: len(args) + 1,
            Plan.WATCHED: len(watched) // 3,
            Plan.EMPTY: len(hooks),
            Plan.NAMES: len(params),
            Plan.KERNEL: id(self._compiled),
            Plan.KEYWORDS: self._keep(keywords) if keywords else 0,
            Plan.ASK: self._keep(asked_grid),
            Plan.SIZES: self._keep(grid_of),
            Plan.CHANGED: self._keep(changed) if changed is not None else 0,
        }
        return self._words(counts, checks, [*watched, *map(self._keep, hooks), *names])

    def _asked(self) -> tuple[list[int], Callable[..., Any] | None]:
        """What is looked at in each launch: (dictionary, name, value) of settings and captures, and a function."""
        settings = knobs.runtime.__dict__
        triples: list[tuple[Any, Any, Any]] = [
            (settings, name, settings.get(name, MISSING)) for name in ("debug", "launch_enter_hook", "launch_exit_hook")
        ]
        changed = None
        if self._kernel.watched:
            kernels = self._kernel.compiled_of
            triples += [(fn.__dict__, "edition", fn.__dict__.get("edition", MISSING)) for fn in kernels]
            for get, name, value in self._kernel.watched_values:
                where = getattr(get, "__self__", None)
                if type(where) is not dict or get(name, MISSING) is not value:  # compared by what it is, not which
                    changed = self._kernel.has_changed
                    break
                triples.append((where, name, value))
        words: list[int] = []
        for where, name, value in triples:
            words += [self._keep(where), self._keep(name), 0 if value is MISSING else self._keep(value)]
        return words, changed

    # -- arguments -------------------------------------------------------------------------------------------------

    def _check(self, param: KernelParam, value: Any) -> list[int]:
        if param.is_constexpr or value is None:
            return self._same(value)
        kind, annotated = type(value), param.annotation_type
        if annotated and not (kind is int and annotated in ("i32", "i64")):
            raise _NoPlan
        slot, leaf = self._slots.get(param.num, (-1, ""))
        specialise, align = not param.do_not_specialize, not param.do_not_specialize_on_alignment
        if kind is int:
            return self._integer(value, slot, leaf, specialise, specialise and align)
        if kind is float and leaf in ("fp32", "fp64"):
            return _row(Kind.FLOAT, slot, element=int(leaf[2:]))
        if kind is bool and leaf in ("u1", "i1"):
            return _row(Kind.BOOL, slot)
        if leaf.startswith("*"):
            return self._array(param.num, value, slot, align=specialise and align)
        raise _NoPlan

    def _integer(self, value: int, slot: int, leaf: str, specialise: bool, align: bool) -> list[int]:
        low, high = _I32
        if not low <= value <= high or (slot >= 0 and (leaf[:1] not in "iu" or leaf in ("u1", "i1"))):
            raise _NoPlan
        if specialise and value == 1:
            return _row(Kind.INT, slot, low=1, high=1, element=0)
        aligned = 0 if not align else 1 if COARSE[value & 15] == 16 else 2
        return _row(Kind.INT, slot, low=low, high=high, aligned=aligned, element=1 if specialise else high + 1)


def _row(
    kind: int, slot: int, *, want: int = 0, aligned: int = 0, element: int = 0, low: int = 0, high: int = 0,
    written: int = 0,
) -> list[int]:  # fmt: skip
    row = [0] * Check.SIZE
    row[Check.KIND], row[Check.SLOT], row[Check.WANT], row[Check.ALIGNED] = kind, slot, want, aligned
    row[Check.ELEMENT], row[Check.LOW], row[Check.HIGH], row[Check.WRITTEN] = element, low, high, written
    return row


class _Run(_Writer):
    """Of launches of a compiled kernel by itself, in the calling convention of Triton's launchers."""

    def plan(self, args: Sequence[Any]) -> tuple[Any, ...]:
        """(words, everything they point to). Hooks are None, or lists that have to be empty."""
        checks: list[int] = []
        values, hooks = args[_BEFORE:], {place: args[place] for place in _HOOKS}
        chains = [hook for hook in hooks.values() if hook is not None]
        if len(values) != len(self._types) or not all(isinstance(hook, list) and not hook for hook in chains):
            raise _NoPlan
        for place, hook in hooks.items():
            checks += self._at(place, _row(Kind.SAME, -1, want=self._keep(hook)))
        for i, (kind, value) in enumerate(zip(self._types, values, strict=True)):
            if kind != "constexpr":
                checks += self._at(_BEFORE + i, self._value(i, value))
        counts = {Plan.ARGUMENTS: len(args), Plan.SIZES_FIRST: 1, Plan.KERNEL: id(None), Plan.EMPTY: len(chains)}
        return self._words(counts, checks, [*map(self._keep, chains)])

    @staticmethod
    def _at(place: int, check: list[int]) -> list[int]:
        check[Check.PLACE] = place
        return check

    def _value(self, i: int, value: Any) -> list[int]:
        slot, leaf = self._slots[i]
        if leaf.startswith("*"):
            return self._array(i, value, slot, align=False)
        if leaf in ("i32", "i64", "u32", "u64") and type(value) is int:
            low, high = (0 if leaf[0] == "u" else _I32[0]), _I32[1]
            return _row(Kind.INT, slot, low=low, high=high, element=high + 1)
        if leaf in ("fp32", "fp64") and type(value) is float:
            return _row(Kind.FLOAT, slot, element=int(leaf[2:]))
        raise _NoPlan


_BEFORE = 9
"""Arguments of a launcher before those of the kernel: sizes, stream, function, metadata, what hooks are told, hooks."""
_HOOKS = (7, 8)


def prepared_run(kernel: Any) -> Callable[..., None] | None:
    """The method `run` of a compiled kernel, which plans launches that succeed; None where none can be prepared."""
    if not supported() or type(kernel) is not CompiledKernel:
        return None
    book = bytearray(8 * Book.SIZE)
    plans: list[tuple[Any, ...]] = []
    keep: list[Any] = []
    left = [4 * MOST_PLANS]  # plans to be written: arguments of many kinds are left to the general way

    def general(*args: Any) -> None:
        CompiledKernel.run(kernel, *args)
        if not left[0]:
            return
        left[0] -= 1
        try:
            plan = _Run(kernel).plan(args)
        except _NoPlan:
            return
        plans[:] = [plan, *plans[: MOST_PLANS - 1]]
        following = 0
        for one in reversed(plans):
            one[0][Plan.NEXT], following = following, ctypes.addressof(one[0])
        ctypes.c_int64.from_buffer(book, 8 * Book.FIRST).value = following
        keep[1:] = plans

    keep.append(general)
    ctypes.c_int64.from_buffer(book, 8 * Book.GENERAL).value = id(general)
    run: Callable[..., None] = calls.function(book, keep)
    return run


_FIXED = frozenset({int, str, float, bool, type(None)})


def _is_constant(value: Any) -> bool:
    """Whether a value can never be another one than it is: then its identity, or an equal number, says it all."""
    if isinstance(value, tuple):
        return type(value) is tuple and all(map(_is_constant, value))
    return type(value) in _FIXED or (type(value).__name__ == "dtype" and type(value).__module__.startswith("weft."))


def _alignment(value: Any) -> int:
    """1 for an array whose address is a multiple of 16, 2 for others."""
    address = address_of(value) if isinstance(value, np.ndarray) else value.data_ptr()
    return 2 if address & 15 else 1


def _describer(cls: Any) -> int:
    """The address of the function that describes tensors, by DLPack's exchange interface (PyTorch 2.10 and later)."""
    capsule = getattr(cls, "__dlpack_c_exchange_api__", None)
    if capsule is None:
        raise _NoPlan
    pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
        ("PyCapsule_GetPointer", ctypes.pythonapi)
    )
    table = pointer(capsule, _DLPACK.encode())
    major = ctypes.c_uint32.from_address(table).value
    address = ctypes.c_int64.from_address(table + 8 * _FROM_OBJECT).value
    if major != 1 or not address:
        raise _NoPlan
    return address


def _element(describe: int, value: Any) -> int:
    """DLPack's type of a tensor's elements, as a number; that of one in the host's memory whose address it gives."""
    told = (ctypes.c_int64 * 6)()
    if ctypes.PYFUNCTYPE(ctypes.c_int32, ctypes.py_object, ctypes.c_void_p)(describe)(value, ctypes.addressof(told)):
        raise _NoPlan
    if told[1] & 0xFFFFFFFF != 1 or told[0] + told[5] != value.data_ptr():
        raise _NoPlan
    return (told[2] >> 32) & 0xFFFFFFFF
