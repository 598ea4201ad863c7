"""The result of a compilation: every stage as text, the object code, and what a launch needs to know.

    kernel = weft.compile(ASTSource(...))
    print(kernel.asm["ttir"], kernel.metadata.num_warps)
    kernel[grid](x, y, out, n, 1024)         # all parameters, constants too, as in Triton

Loading the object into the process is left until the kernel is launched or asked for its handle.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cached_property
from typing import Any, ClassVar

from weft import base
from weft.backends.cpu.driver import LoadedKernel, host_cpu
from weft.base import LaunchError, LaunchTypeError, Unsupported, WeftError, load, shortened, told
from weft.base.locks import renewed

_locks: dict[int, threading.Lock] = {}
"""Those of kernels that are being loaded, by id."""


class Metadata:
    """Facts about a compiled kernel, by attribute; behaves like a named tuple and can be pickled."""

    def __init__(self, facts: Mapping[str, Any]) -> None:
        self.__dict__.update(facts)

    @property
    def _fields(self) -> tuple[str, ...]:
        return tuple(sorted(self.__dict__))

    def _asdict(self) -> dict[str, Any]:
        return dict(self.__dict__)

    def _replace(self, **facts: Any) -> Metadata:
        return Metadata({**self.__dict__, **facts})

    def __iter__(self) -> Iterator[Any]:
        return (self.__dict__[name] for name in self._fields)

    def __len__(self) -> int:
        return len(self.__dict__)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Metadata) and self.__dict__ == other.__dict__

    __hash__ = None  # type: ignore[assignment]

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"metadata has no field {name!r}; it has {', '.join(self._fields)}")

    def __repr__(self) -> str:
        return f"Metadata({', '.join(f'{k}={v!r}' for k, v in sorted(self.__dict__.items()))})"


class AsmDict(dict[str, Any]):
    """The stages by name; those in `later`, "asm" among them, are made when they are first asked for."""

    def __init__(
        self,
        stages: Mapping[str, Any],
        assembly: Callable[[], str] | None = None,
        later: Mapping[str, Callable[[], Any]] | None = None,
    ) -> None:
        super().__init__(stages)
        self._later = {**(later or {}), **({"asm": assembly} if assembly is not None else {})}

    def add(self, name: str, make: Callable[[], Any]) -> None:
        """One more, made when it is first asked for."""
        self._later[name] = make

    @shortened
    def __missing__(self, key: str) -> Any:
        if key in self._later:
            self[key] = self._later[key]()
            return self[key]
        raise told(KeyError(f"there is no stage {key!r}; stages of this kernel: {', '.join(self.keys())}"))

    def keys(self) -> Any:
        """The names of the stages that are there, those not made yet included."""
        return dict.fromkeys([*super().keys(), *self._later]).keys()

    def __iter__(self) -> Iterator[str]:
        return iter(self.keys())

    def __len__(self) -> int:
        return len(self.keys())

    def __contains__(self, key: object) -> bool:
        return super().__contains__(key) or key in self._later

    def get(self, key: str, default: Any = None) -> Any:
        """A stage, made if need be."""
        if key not in self:
            return default
        return self[key]

    def items(self) -> Any:
        """The stages with their names; all that can be are made."""
        return self._all().items()

    def values(self) -> Any:
        """The stages; all that can be are made."""
        return self._all().values()

    def _all(self) -> dict[str, Any]:
        texts = {}
        for key in self:
            with suppress(Unsupported):  # machine code without its tools, which is said to who asks for it by name
                texts[key] = self[key]
        return texts

    def __reduce__(self) -> Any:
        return AsmDict, (dict(super().items()),)


class LazyDict(dict[str, Any]):
    """Facts about a launch.  Hooks written for Triton ask with `get()` for all of them."""

    def get(self, *key_and_default: Any) -> Any:
        """Everything; or, as of any dictionary, the value of a key."""
        return super().get(*key_and_default) if key_and_default else self

    def add(self, function: Callable[..., Mapping[str, Any]], args: tuple[Any, ...]) -> None:
        """Add what a function returns."""
        self.update(function(*args))


class CompiledKernel:
    """A kernel compiled for one specialisation of its arguments.

    >>> x = np.ones(4, np.float32)
    >>> @weft.jit
    ... def double(x):
    ...     i = tl.arange(0, 4)
    ...     tl.store(x + i, tl.load(x + i) * 2)
    >>> kernel = double.warmup(x, grid=(1,))
    >>> "tt.load" in kernel.asm["ttir"]
    True
    """

    make_launcher: ClassVar[Callable[[CompiledKernel], Callable[..., None]] | None] = None
    """Set by the runtime: what turns arguments into a launch."""
    make_run: ClassVar[Callable[[CompiledKernel], Callable[..., None] | None] | None] = None
    """Set by the runtime: a faster `run` for callers that keep it, where there is one."""
    load_hooks: ClassVar[Callable[[], Sequence[Callable[..., None]]] | None] = None
    """Set by the runtime: gives what is called before and after a kernel is loaded, and when it is dropped."""
    process: ClassVar[Callable[[], int]] = staticmethod(lambda: 0)
    """Set by the runtime: the number of this process."""

    def __init__(
        self,
        src: Any,
        target: Any,
        asm: AsmDict,
        metadata: Mapping[str, Any],
        hash_: str,
        timings: Mapping[str, float] | None = None,
        from_cache: bool = False,
        blobs: Mapping[str, bytes] | None = None,
    ) -> None:
        self.src = src
        self.asm = asm
        self.hash = hash_
        self.metadata = Metadata({**metadata, "hash": hash_, "target": target})
        self.name: str = self.metadata.name
        self.packed_metadata = (self.metadata.num_warps, self.metadata.num_ctas, self.metadata.shared)
        self.metadata_group: dict[str, str] = {}
        self.given_options: dict[str, Any] = {}
        """What it was compiled with; set by the runtime."""
        self.kernel: bytes = asm.get("object", b"")
        self.timings = dict(timings or {})
        """Seconds spent in each stage."""
        self.from_cache = from_cache
        self._told = {name: blob for name, blob in (blobs or {}).items() if name in ("remarks", "places")}
        """The remarks, and where the source stood when they were made if that is another time, as they are stored."""
        self.module: Any = None
        self.function: int | None = None
        self._loaded: Any = None
        self._loader = 0
        """The process that loaded it: one that was forked from it has no say in what becomes of it."""
        self._launch: Callable[..., None] | None = None

    @contextmanager
    def _loading(self) -> Iterator[None]:
        """One thread at a time loads this kernel. The lock is no part of it, so that the rest can be pickled."""
        with _locks.setdefault(id(self), renewed(threading.Lock())):
            try:
                yield
            finally:  # it is loaded, or cannot be: who comes now needs no lock, who waits has this one
                _locks.pop(id(self), None)

    def load(self) -> Any:
        """The kernel in memory. For a GPU: NoDevice where there is none, or no driver."""
        if self._loaded is None:
            with self._loading():
                if self._loaded is None:
                    hooks = type(self).load_hooks
                    before, after, _ = hooks() if hooks is not None else (None, None, None)
                    self._tell(before)
                    loaded = self._into_memory()
                    self.module, self.function, self._loaded, self._loader = (
                        loaded,
                        loaded.address,
                        loaded,
                        type(self).process(),
                    )
                    self._tell(after)
        return self._loaded

    def __del__(self) -> None:
        """Tell that it is dropped, if it was loaded here; the code goes when the last launcher of it does."""
        if self.__dict__.get("module") is None or self.__dict__.get("_loader") != type(self).process():
            return
        hooks = type(self).load_hooks
        dropped = hooks()[2] if hooks is not None else None
        if dropped:  # most often there is nobody to tell
            self._tell(dropped)
        self.module = self.function = self._loaded = None

    def _into_memory(self) -> Any:
        return LoadedKernel(self.kernel, self.metadata._asdict())

    def _tell(self, hook: Callable[..., None] | None) -> None:
        if hook is not None:
            hook(self.module, self.function, self.name, self.metadata_group, self.hash)

    def _init_handles(self) -> None:
        """Load it (the name Triton gives this).

        PyTorch's Inductor makes a kernel anew from its attributes, as a plain CompiledKernel whose `run` is None, and
        takes `run` after it has called this.
        """
        self.__dict__.pop("run", None)
        if self.metadata.target.backend != "cpu" and type(self) is CompiledKernel:
            self.__class__ = load("weft.compiler.backends").backend_of(self.metadata.target.machine).kernel
        self.load()
        factory = type(self).make_run
        if factory is not None and (run := factory(self)) is not None:
            self.__dict__["run"] = run

    @property
    def n_regs(self) -> int:
        """The vector registers that a program may use: all that the processor has."""
        return host_cpu().vector_registers

    @property
    def n_spills(self) -> int:
        """Spilled registers: LLVM does not tell; what is counted is scratch memory, see `metadata.scratch_bytes`."""
        return 0

    @property
    def n_max_threads(self) -> int:
        """The largest number of threads a program may have; the CPU runs a program on one."""
        return 1024

    @cached_property
    def remarks(self) -> base.Remarks:
        """What the compiler decided about this kernel and why: `print(kernel.remarks)`; see `weft.remarks`."""
        remarks = base.Remarks.from_json(self._told.get("remarks", b"[]"))
        if "places" not in self._told:
            return remarks
        before = [(file, line) for file, line in json.loads(self._told["places"])]
        return remarks.moved(before, self.src.places())

    @property
    def layouts(self) -> list[Any]:
        """The layouts of its tiles, each with what shows it on the layout page; see `weft.view.LayoutLink`."""
        return list(load("weft.view").links_of(self.remarks, load("weft.ir.lane").ELEMENT_BITS))

    def launcher(self) -> Callable[..., None]:
        """A function (gx, gy, gz, *arguments) that launches the kernel."""
        if self._launch is None:
            factory = type(self).make_launcher
            if factory is None:
                raise WeftError("to launch a kernel, import weft.runtime")
            self._launch = factory(self)
        return self._launch

    def run(
        self,
        grid_0: int,
        grid_1: int,
        grid_2: int,
        stream: Any,
        function: Any,
        packed_metadata: Any,
        launch_metadata: Any,
        launch_enter_hook: Any,
        launch_exit_hook: Any,
        *args: Any,
    ) -> None:
        """Launch, in the calling convention of Triton's launchers."""
        if launch_enter_hook is not None:
            launch_enter_hook(launch_metadata)
        try:
            self._launch_into(stream, (grid_0, grid_1, grid_2), args)
        finally:
            if launch_exit_hook is not None:
                launch_exit_hook(launch_metadata)

    def _launch_into(self, stream: Any, grid: tuple[Any, ...], args: tuple[Any, ...]) -> None:
        """A launch; the CPU has no streams."""
        self.launcher()(*grid, *args)

    def launch_metadata(self, grid: Any, stream: Any, *args: Any) -> LazyDict:
        """What launch hooks are told."""
        facts = LazyDict({"name": self.name, "function": self.function, "stream": stream})
        describe = getattr(getattr(self.src, "fn", None), "launch_metadata", None)
        if describe is not None:
            names = self.src.fn.arg_names
            facts.update(describe(grid, self.metadata, dict(zip(names, args, strict=False))))
        return facts

    def __getitem__(self, grid: Any) -> Callable[..., None]:
        @shortened
        def runner(*args: Any, stream: Any = None) -> None:
            if not hasattr(grid, "__index__") and not hasattr(grid, "__iter__"):
                raise LaunchTypeError(
                    f"the grid of a compiled kernel is a tuple of 1 to 3 integers, got a {type(grid).__name__}"
                )
            sizes = (grid,) if hasattr(grid, "__index__") else tuple(grid)
            while len(sizes) > 3 and sizes[-1] == 1:
                sizes = sizes[:-1]
            if not 1 <= len(sizes) <= 3:
                raise LaunchError(f"a grid has 1 to 3 dimensions, got {len(sizes)}: {sizes}")
            size = (*sizes, 1, 1)
            self._launch_into(stream, size[:3], args)

        return runner

    def __getstate__(self) -> dict[str, Any]:
        state = dict(self.__dict__)
        state.pop("run", None)
        for name in ("_loaded", "_launch", "module", "function"):
            state[name] = None
        return state

    def __repr__(self) -> str:
        return f"CompiledKernel({self.name}, {self.metadata.target}, {self.hash[:12]})"
