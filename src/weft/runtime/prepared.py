"""Launches whose arguments are as they were before, from Python's call on in native code (see `backends/cpu/calls`).

    launch = prepared(kernel, general).launch     # general: the launcher of `binder`
    launch(grid, x, y, out, n, BLOCK=128)         # the general way, which is watched: (1)
    launch(grid, x, y, out, m, BLOCK=128)         # natively, if the key of (1) would be found again

After some launches a plan is written of the last one: everything that the key of the general way holds of each
argument, everything that is asked at each launch (hooks, settings, what the kernel captures), what its guard looks at,
and where addresses and numbers go. What no plan says is left to the general way: subclasses of tensors, kernels that
print or check their accesses.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import accumulate, chain
from typing import Any

import numpy as np

from weft.backends.cpu import calls
from weft.backends.cpu.calls import MOST_ARRAYS, MOST_PARTS, MOST_SLOTS, WRITEABLE, Book, Check, Kind, Plan, part
from weft.base import shortened
from weft.base.locks import renewed
from weft.compiler import CompiledKernel
from weft.language.callable import MISSING, KernelParam
from weft.language.constants import constexpr

from . import knobs
from .arrays import address_of
from .binder import asked_grid, grid_of
from .checks import alike, cheap_first, check_row, is_integer, is_tuple
from .descriptor import TensorDescriptor
from .exchange import HOST, Described, described, describer
from .launch import enter_hooks, leave_hooks, positions, runtime_leaves, slots_of
from .negatives import can_be_read
from .specialize import COARSE, INT32, INT64, INT_RANGES

AFTER = 3
"""Launches of a kind until its plan: a plan takes as long as a dozen launches save."""
VAIN = 64
"""Launches of a kernel without any plan, after which there is to be none."""
MOST_PLANS = 32
"""Plans of a kernel, looked at one after the other; the oldest goes."""
MOST_RETURNS = 4 * MOST_PLANS
"""Plans of a kernel that are written again since the oldest went, after which there are to be none: launches of so many
kinds in turn take longer to look at all plans than to be made in Python."""

_TENSORS = (("torch", "Tensor"), ("torch.nn.parameter", "Parameter"))
"""Classes by module and name; subclasses may do anything in `data_ptr`."""
_supported: bool | None = None


def supported() -> bool:
    """Whether launches can be prepared here."""
    global _supported
    if _supported is None:
        _supported = calls.supported()
    return _supported


_writing = renewed(threading.Lock())
"""Held while a plan is written, for which modules are imported: what a signal runs meanwhile goes the general way."""


class NoPlan(Exception):
    """A launch of which there is to be none."""


class _Plans:
    """The plans of a launching function in native code, which calls another one where none fits."""

    def __init__(self, general: Callable[..., Any]) -> None:
        self._book = bytearray(8 * Book.SIZE)
        self._keep: list[Any] = [general]
        self._lock = renewed(threading.RLock())
        self._put(Book.GENERAL, id(general))

    def _put(self, word: int, value: int) -> None:
        ctypes.c_int64.from_buffer(self._book, 8 * word).value = value

    def __bool__(self) -> bool:
        return len(self._keep) > 1

    def add(self, plan: tuple[Any, ...]) -> None:
        """One more, the first that is looked at; the oldest goes. Launches that are at work keep theirs."""
        with self._lock:
            self._set([plan, *self._keep[1:MOST_PLANS]])

    def forget(self) -> None:
        """Drop all."""
        with self._lock:
            self._set([])

    def _set(self, plans: list[tuple[Any, ...]]) -> None:
        for plan in self._keep[1:]:  # a launch that is at one that goes does not go on to another that goes
            plan[0][Plan.NEXT] = 0
        following = 0
        for plan in reversed(plans):
            plan[0][Plan.NEXT], following = following, ctypes.addressof(plan[0])
        self._put(Book.FIRST, following)
        self._keep[1:] = plans

    def function(self) -> Callable[..., Any]:
        """The launching function."""
        return calls.function(self._book, self._keep)


class Prepared:
    """The launching function of a kernel, and its plans.

    `general`, which may be exchanged, launches in all other cases, and gives the compiled kernel; `plan` writes the
    plan of such a launch; `launch_by(before, now)` is told of another launching function.
    """

    def __init__(
        self,
        general: Callable[..., Any],
        plan: Callable[[Any, Sequence[Any], Mapping[str, Any]], tuple[Any, ...]],
        launch_by: Callable[[Callable[..., Any], Callable[..., Any]], None],
    ) -> None:
        self.general, self._plan, self._launch_by = general, plan, launch_by
        self.launch: Callable[..., Any] = self._watched
        self._slow = self.launch
        self._plans = _Plans(self.launch)
        self._calls: dict[tuple[Any, ...], int] = {}
        """Launches by the general way, of each compiled kernel, classes of arguments, and whether there are hooks."""
        self._planned = set[tuple[Any, ...]]()
        """Kinds of which there was a plan."""
        self._returns = 0
        self._has_given_up = False
        self.forget = self._plans.forget

    @shortened
    def _watched(self, grid: Any, /, *args: Any, **kwargs: Any) -> Any:
        """The general way, and now and then a plan of it."""
        compiled = self.general(grid, *args, **kwargs)
        if self._has_given_up:  # and this was indexed before
            return compiled
        hooks = (bool(knobs.runtime.launch_enter_hook), bool(knobs.runtime.launch_exit_hook))
        kind = (id(compiled), hooks, type(grid), *map(type, args), *kwargs, *map(type, kwargs.values()))
        count = self._calls[kind] = self._calls.get(kind, 0) + 1
        if count < AFTER or (count > AFTER and count & (count - 1)):  # again ever more seldom: there may be no plan
            return compiled
        if not _writing.acquire(blocking=False):
            return compiled
        try:
            self._plans.add(self._plan(compiled, args, kwargs))
            self._returns += kind in self._planned
            self._planned.add(kind)
            if self._returns > MOST_RETURNS:
                self._give_up()
            elif self.launch is self._slow:
                self.launch = self._plans.function()
                self._launch_by(self._slow, self.launch)
        except NoPlan:
            if not self._plans and count >= VAIN:  # and most likely there never will be one
                self._give_up()
        finally:
            _writing.release()
        return compiled

    def _give_up(self) -> None:
        """Launch the general way from now on."""
        self._has_given_up = True
        self._launch_by(self.launch, self.general)
        self._plans.forget()


def prepared(kernel: Any, general: Callable[..., Any]) -> Prepared:
    """That of a kernel on this machine's processors."""

    def plan(compiled: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[Any, ...]:
        entries = [*kernel._entries.values()]  # at once: other threads may add some
        return PlanOfFunction(kernel, compiled, entries, kernel.watched).plan(args, kwargs)

    return Prepared(general, plan, kernel.launch_by)


class Writer:
    """Writes plans of launches of a compiled kernel."""

    divisors = COARSE
    """What keys tell apart of integers, by their remainder by 16."""

    def __init__(self, compiled: Any) -> None:
        self._compiled = compiled
        self._kept: list[Any] = [compiled]
        self._checks: list[int] = []
        self._parts = 0
        """Parts of tuples that have checks."""
        self._running = self._run()
        signature = getattr(compiled.src, "signature", None)
        self._types = list(compiled.metadata.params if signature is None else signature.values())
        leaves = runtime_leaves(self._types)
        by_argument, by_slot = positions(leaves)
        self._slots = {leaf[0]: (slot, leaf[1]) for slot, leaf in by_slot.items()}
        self._count = sum(slots_of(kind) for _, kind in leaves)
        if self._count > MOST_SLOTS:
            raise NoPlan
        facts = compiled.metadata
        self._stored = {by_argument[k][0] for k in facts.stored_params}
        self._pairs = [(by_slot[i][0], by_slot[j][0], *rest) for i, j, *rest in facts.alias_pairs]
        self._arrays = {path: k for k, path in enumerate({p for i, j, *_ in self._pairs for p in (i, j)})}
        if len(self._arrays) > MOST_ARRAYS:
            raise NoPlan

    def _run(self) -> Mapping[int, int]:
        """The words of a header that say how a grid is run."""
        loaded = self._compiled._loaded
        record = getattr(loaded, "record", None)
        if type(self._compiled) is not CompiledKernel or record is None or not loaded.plain:
            raise NoPlan  # also of one that is simulated, or a GPU's
        self._kept.append(loaded)
        return {
            Plan.RUN: calls.runs_grid(),
            Plan.RECORD: record.address,
            Plan.SCRATCH: loaded.scratch_bytes,
            Plan.TABLE: loaded.table,
            Plan.ROOM: self._keep(loaded.room),
            Plan.PREPARE: self._keep(loaded.prepare),
            Plan.FAIL: self._keep(loaded.fail),
            Plan.WAIT: self._keep(loaded.wait) if loaded.waits else 0,
        }

    def _words(self, header: Mapping[int, int], *rest: Sequence[int]) -> tuple[Any, ...]:
        """(words, everything they point to): a plan with these words in its header; `rest` is what follows pairs."""
        pairs = [word for i, j, *facts in self._pairs for word in (self._arrays[i], self._arrays[j], *facts)]
        rows = [cheap_first(self._checks), pairs, *rest]
        if {*range(self._count)} - {*self._checks[Check.SLOT :: Check.SIZE]}:
            raise NoPlan
        words = (ctypes.c_int64 * (Plan.SIZE + sum(map(len, rows))))(*[0] * Plan.SIZE, *chain(*rows))
        begin = ctypes.addressof(words) + 8 * Plan.SIZE
        ends = accumulate((8 * len(some) for some in rows), initial=begin)
        common = {
            **dict(zip(range(Plan.CHECKS, Plan.SLOTS), ends, strict=True)),
            Plan.SLOTS: self._count,
            **self._running,
        }
        for word, number in {**common, **header}.items():
            words[word] = number
        plan = (words, *self._kept)
        words[Plan.OWNER] = id(plan)
        return plan

    def _keep(self, value: Any) -> int:
        """Where an object is, which lives as long as the plan."""
        self._kept.append(value)
        return id(value)

    def _add(self, check: list[int], place: int, value: Any = None) -> None:
        """A check of what is at a place; where that is none, of a value that is always the same."""
        check[Check.PLACE], check[Check.OBJECT] = place, id(value)
        self._checks += check

    def _array(self, path: tuple[int, ...], value: Any, slot: int, *, align: bool) -> list[int]:
        cls = type(value)
        if (cls.__module__, cls.__name__) in _TENSORS:
            return self._tensor(path, value, slot, align=align)
        if not issubclass(cls, np.ndarray):
            raise NoPlan
        return self._ndarray(path, value, slot, align=align)

    def _ndarray(self, path: tuple[int, ...], value: Any, slot: int, *, align: bool) -> list[int]:
        written = WRITEABLE if path in self._stored else 0
        row = check_row(Kind.ARRAY, slot, element=self._keep(value.dtype), written=written)
        return self._placed(row, path, value, value.itemsize, address_of(value), align=align)

    def _tensor(self, path: tuple[int, ...], value: Any, slot: int, *, align: bool) -> list[int]:
        cls = type(value)
        describe = describer(cls)
        told = described(describe, value) if describe else None
        if told is None or not self._can_read(value, told):
            raise NoPlan
        ask = 0 if can_be_read(cls) else self._keep(cls.is_neg)
        row = check_row(Kind.TENSOR, slot, element=told.element, low=describe, high=ask)
        row[Check.DEVICE] = told.device
        return self._placed(row, path, value, value.element_size(), value.data_ptr(), align=align)

    def _can_read(self, tensor: Any, told: Described) -> bool:
        """Whether a tensor is where the kernel runs."""
        return told.kind == HOST

    def _placed(
        self, row: list[int], path: tuple[int, ...], value: Any, size: int, address: int, *, align: bool
    ) -> list[int]:
        """A row of an array with what all have: its class, and how it lies."""
        row[Check.WANT], row[Check.BYTES] = self._keep(type(value)), size
        row[Check.ARRAY] = self._arrays.get(path, MOST_ARRAYS)
        row[Check.REMAINDERS] = alike(address, COARSE) if align else Check.ANY
        return row

    def _integer(self, value: Any, slot: int, limits: tuple[int, int], specialise: bool, align: bool) -> list[int]:
        """An integer between limits; what a key tells apart is not taken for the same."""
        cls, number = type(value), int(value)
        if specialise and number == 1:
            return check_row(Kind.INT, slot, want=self._keep(cls), low=1, high=1)
        within = next((w for w in _RANGES if w[0] <= number <= w[1]), None)
        if within is None:
            raise NoPlan
        low, high = max(within[0], limits[0]), min(within[1], limits[1])
        remainders = alike(number, self.divisors) if align else Check.ANY
        but = 1 if specialise and low <= 1 <= high else low - 1 if low > INT64[0] else high + 1
        return check_row(Kind.INT, slot, want=self._keep(cls), low=low, high=high, remainders=remainders, element=but)


class PlanOfFunction(Writer):
    """Of launches of a kernel's function."""

    def __init__(self, kernel: Any, compiled: Any, entries: Iterable[Any], watched: bool) -> None:
        if all(entry[0] is not compiled for entry in entries):
            raise NoPlan
        super().__init__(compiled)
        self._kernel, self._watched = kernel, watched

    def plan(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[Any, ...]:
        """(words, everything they point to)."""
        params: Sequence[KernelParam] = self._kernel.params
        if any(name in kwargs for name in ("target", "stream")) or len(args) > len(params):
            raise NoPlan
        places = {params[k].name: k + 1 for k in range(len(args))}
        places |= {name: len(args) + 1 + k for k, name in enumerate(kwargs)}
        bound = {**{p.name: value for p, value in zip(params, args, strict=False)}, **kwargs}
        names: list[int] = []
        for param in params:
            value = bound.pop(param.name, param.default if param.has_default else MISSING)
            place = places.get(param.name, -1)
            # An argument is looked up in each launch: a plan that kept it would keep its memory, too.
            names += [self._keep(param.name), place, self._keep(value) if place < 0 else 0]
            self._param(param, value, place)
        for name, value in bound.items():  # options
            self._constant(value, places[name])
        watched, changed = self._asked()
        hooks = (knobs.runtime.launch_enter_hook, knobs.runtime.launch_exit_hook)
        lists = self._full(*hooks, self._kernel.pre_run_hooks)
        if self._kernel.pre_run_hooks:
            raise NoPlan
        hooked, compiled = any(hooks), self._compiled
        keywords = tuple(kwargs) or None
        header = {
            Plan.ARGUMENTS: len(args) + 1,
            Plan.KERNEL: id(self._compiled),
            Plan.ENTER: self._keep(lambda grid, named: enter_hooks(compiled, grid, named.values())) if hooked else 0,
            Plan.LEAVE: self._keep(leave_hooks) if hooked else 0,
            Plan.KEYWORDS: self._keep(keywords) if keywords else 0,
            Plan.ASK: self._keep(asked_grid),
            Plan.SIZES: self._keep(grid_of),
            Plan.CHANGED: self._keep(changed) if changed is not None else 0,
        }
        return self._words(header, watched, lists, names)

    def _full(self, *hooks: Any) -> list[int]:
        """(list, whether it has items) of hooks that are lists; others are watched, and true or not once for all."""
        words: list[int] = []
        for hook in hooks:
            if isinstance(hook, list):
                words += [self._keep(hook), int(bool(hook))]
            elif hook is not None and (hasattr(type(hook), "__bool__") or hasattr(type(hook), "__len__")):
                raise NoPlan
        return words

    def _asked(self) -> tuple[list[int], Callable[..., Any] | None]:
        """What is looked at in each launch: (dictionary, name, value) of settings and captures, and a function."""
        settings = knobs.runtime.__dict__
        triples: list[tuple[Any, Any, Any]] = [
            (settings, name, settings.get(name, MISSING)) for name in ("debug", "launch_enter_hook", "launch_exit_hook")
        ]
        changed = None
        if self._watched:
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

    def _param(self, param: KernelParam, value: Any, place: int) -> None:
        if param.is_constexpr:
            self._constant(value, place)
            return
        specialise, align = not param.do_not_specialize, not param.do_not_specialize_on_alignment
        annotated = param.annotation_type
        if not annotated or value is None:
            self._value((param.num,), value, place, specialise, specialise and align)
            return
        slot, leaf = self._slots.get((param.num,), (-1, ""))
        if annotated in INT_RANGES and leaf == annotated and is_integer(value):
            self._add(self._integer(value, slot, INT_RANGES[annotated], specialise, specialise and align), place, value)
        elif leaf == annotated and not is_integer(value):
            self._number(value, slot, leaf, place)
        else:
            raise NoPlan

    def _value(self, path: tuple[int, ...], value: Any, place: int, specialise: bool, align: bool) -> None:
        """A value whose type was found from what it is; of a part of a tuple all is, always."""
        slot, leaf = self._slots.get(path, (-1, ""))
        if value is None:
            self._constant(value, place)
        elif is_tuple(value):
            for k, (item, where) in enumerate(self._unpacked(value, place)):
                self._value((*path, k), item, where, True, True)
        elif is_integer(value) and (slot < 0 or (leaf[0] in "iu" and leaf not in ("u1", "i1"))):
            self._add(self._integer(value, slot, INT64, specialise, align), place, value)
        elif leaf.startswith("*"):
            self._add(self._array(path, value, slot, align=align), place, value)
        elif leaf.startswith("tensordesc"):
            self._descriptor(path, value, place)
        else:
            self._number(value, slot, leaf, place)

    def _descriptor(self, path: tuple[int, ...], value: Any, place: int) -> None:
        """A descriptor, whose array takes a slot, and after it its padding, shape and strides.

        Of these a key holds whether rows are multiples of 16 bytes: so the length of a row stays a multiple of 16
        elements, or it and what says otherwise stay what they are.
        """
        if type(value) is not TensorDescriptor:
            raise NoPlan
        slot, last = self._slots[path][0], len(value.shape) - 1
        base, *others, padding = self._fields(value, ("base", "shape", "strides", "block_shape", "padding"), place)
        self._add(self._array(path, base[0], slot, align=True), base[1], base[0])
        self._constant(*padding)
        self._add(self._integer(int(padding[0] == "nan"), slot + 1, INT64, False, False), -1, int(padding[0] == "nan"))
        whole = value.shape[-1] % 16 == 0
        for first, (numbers, where) in zip((slot + 2, slot + 3 + last), others, strict=False):
            for k, (number, at) in enumerate(self._unpacked(numbers, where)):
                if not whole and k == (last if first == slot + 2 else last - 1):
                    self._constant(number, at)
                    at = -1
                aligned = whole and first == slot + 2 and k == last
                self._add(self._integer(number, first + k, INT64, False, aligned), at, number)
        self._constant(*others[2])

    def _number(self, value: Any, slot: int, leaf: str, place: int) -> None:
        """A bool, or a float."""
        cls = type(value)
        if cls in (bool, np.bool_) and leaf in ("u1", "i1"):
            self._add(check_row(Kind.BOOL, slot, want=self._keep(cls(1)), low=self._keep(cls(0))), place, value)
        elif (cls is float or (issubclass(cls, np.floating) and cls.__module__ == "numpy")) and leaf in _FLOATS:
            self._add(check_row(Kind.FLOAT, slot, want=self._keep(cls), element=int(leaf[2:])), place, value)
        else:
            raise NoPlan

    def _constant(self, value: Any, place: int) -> None:
        """A constant, or a tuple of constants. What may change in its place is none that can be told by identity."""
        if is_tuple(value) or type(value) is list:
            for item, where in self._unpacked(value, place):
                self._constant(item, where)
        elif type(value) is constexpr:
            self._constant(*self._fields(value, ("value",), place)[0])
        elif type(value) in _FIXED or (type(value).__name__ == "dtype" and type(value).__module__.startswith("weft.")):
            self._add(check_row(Kind.SAME, -1, want=self._keep(value)), place, value)
        else:
            raise NoPlan

    def _unpacked(self, value: Sequence[Any], place: int) -> list[tuple[Any, int]]:
        """The parts of a tuple or a list with their places, its own check added."""
        return self._divided(Kind.LIST if type(value) is list else Kind.TUPLE, value, value, place)

    def _fields(self, value: Any, names: tuple[str, ...], place: int) -> list[tuple[Any, int]]:
        """The same of attributes of an object, whose class has no ways of its own."""
        return self._divided(Kind.FIELDS, value, [getattr(value, name) for name in names], place, self._keep(names))

    def _divided(
        self, kind: int, value: Any, parts: Sequence[Any], place: int, names: int = 0
    ) -> list[tuple[Any, int]]:
        first, self._parts = self._parts, self._parts + len(parts)
        if self._parts > MOST_PARTS:
            raise NoPlan
        row = check_row(kind, -1, want=self._keep(type(value)), low=len(parts), high=first, element=names)
        self._add(row, place, value)
        return [(item, part(first + k)) for k, item in enumerate(parts)]


class _Run(Writer):
    """Of launches of a compiled kernel by itself: what comes `before`, three sizes first, and then its arguments, with
    or without the constants. Of what else comes before, the hooks have to be those that were, with nothing to call."""

    def __init__(self, compiled: Any, before: int) -> None:
        super().__init__(compiled)
        self._before = before

    def plan(self, args: Sequence[Any]) -> tuple[Any, ...]:
        """(words, everything they point to)."""
        lists: list[int] = []
        for place in range(max(3, self._before - 2), self._before):
            hook = args[place]
            if hook:
                raise NoPlan
            self._add(check_row(Kind.SAME, -1, want=self._keep(hook)), place, hook)
            if isinstance(hook, list):
                lists += [self._keep(hook), 0]
        dynamic = [i for i, kind in enumerate(self._types) if kind != "constexpr"]
        places = dynamic if len(args) == self._before + len(self._types) else range(len(dynamic))
        for i, place in zip(dynamic, places, strict=True):
            self._add(self._value(i, args[self._before + place]), self._before + place)
        return self._words({Plan.ARGUMENTS: len(args), Plan.SIZES_FIRST: 1, Plan.KERNEL: id(None)}, [], lists, [])

    def _value(self, i: int, value: Any) -> list[int]:
        if (i,) not in self._slots:  # parts of a tuple
            raise NoPlan
        slot, leaf = self._slots[i,]
        if leaf.startswith("*"):
            return self._array((i,), value, slot, align=False)
        if leaf in INT_RANGES and is_integer(value):
            return self._integer(value, slot, INT_RANGES[leaf], False, False)
        if leaf in _FLOATS and type(value) is float:
            return check_row(Kind.FLOAT, slot, want=self._keep(float), element=int(leaf[2:]))
        raise NoPlan


def prepare_launcher(kernel: Any, general: Callable[..., None]) -> Callable[..., None]:
    """The launcher of a compiled kernel, (x, y, z, *arguments), which plans launches by the general one.

    From the first plan on the kernel has another launcher, in native code.
    """
    if not supported() or type(kernel) is not CompiledKernel:
        return general

    def planned() -> None:
        if kernel._launch is launch:
            kernel._launch = plans.function()

    launch = _planning(kernel, general, 3, lambda: plans, planned)
    plans = _Plans(launch)
    return launch


def prepare_run(kernel: Any) -> Callable[..., None] | None:
    """The same for `kernel.run`, (x, y, z, stream, function, three more, two hooks, *arguments), which callers keep: so
    it is in native code from the start. None where there is none."""
    if not supported() or type(kernel) is not CompiledKernel:
        return None
    plans = _Plans(_planning(kernel, partial(CompiledKernel.run, kernel), 9, lambda: plans))
    return plans.function()


def _planning(
    kernel: Any,
    general: Callable[..., None],
    before: int,
    plans: Callable[[], _Plans],
    planned: Callable[[], None] = lambda: None,
) -> Callable[..., None]:
    """Launches the general way, which are then planned; `planned` is called after each plan."""
    left = [4 * MOST_PLANS]  # plans to be written: arguments of many kinds are left to the general way

    def launch(*args: Any) -> None:
        general(*args)
        if not left[0] or not _writing.acquire(blocking=False):
            return
        left[0] -= 1
        try:
            plans().add(_Run(kernel, before).plan(args))
            planned()
        except NoPlan:
            pass
        finally:
            _writing.release()

    return launch


_FIXED = frozenset({int, str, float, bool, type(None)})
_FLOATS = ("fp32", "fp64")
_RANGES = ((INT64[0], INT32[0] - 1), INT32, (INT32[1] + 1, INT64[1]))
"""Of the numbers of each, keys and what is compiled are alike."""
