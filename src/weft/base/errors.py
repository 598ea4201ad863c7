"""Everything Weft raises, as one family; `launch_errors.py` has the branch of LaunchError.

    WeftError
      CompilationError              the kernel is wrong: where, what was found, what is expected, a way out
        DefinitionError                 what is decorated cannot be a kernel (a TypeError and a ValueError)
        UnsupportedLanguageConstruct    Python that kernels cannot contain
        CompileTimeAssertionFailure     `tl.static_assert`
        Unsupported                     right, but not on this target
        LayoutError                     a layout that is no layout, or does not fit
      OutOfResources                the kernel needs more than the machine has
      LaunchError                   wrong arguments, grid or options in a call (a ValueError)
        LaunchTypeError                 ... of a wrong type or number (a TypeError)
        LaunchOverflowError             ... an integer that no type holds (an OverflowError)
        UnknownKeyword                  ... neither a parameter nor an option (a KeyError)
        OptionError                     an option that cannot be so (an AssertionError)
        CapturedGlobalError             a captured global has changed (a RuntimeError)
        SpecializationError             preloaded for another kernel (a RuntimeError)
        OutsideKernelError              called from Python, works only in kernels (a RuntimeError)
        NoDevice                        a launch for a GPU where there is none (a RuntimeError)
      DeviceAssertionError          `tl.device_assert`, and what `debug=True` checks while a kernel runs (an
                                    AssertionError, and a RuntimeError as PyTorch has it)
        OutOfBoundsError                an access outside of the array
      DeviceLost                    a kernel went wrong on a GPU, which is lost (a RuntimeError)
      CompilerCrash                 our fault: what to report and where
        PTXASError                      NVIDIA's assembler refused, died, took too long, or could not be run

The text of a compilation error is laid out like this, and is tested whole:

    k.py:14:11: error: dot needs K >= 16 for f16 operands, got K = 8
       14 |     acc = tl.dot(a, b)
          |           ^^^^^^^^^^^^
    note: `a` has K = 8 because of BLOCK_K, k.py:6
    hint: choose BLOCK_K = 16 or more

Every error pickles (a compilation may run in another process) and turns into a dictionary (`to_dict`) for editors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, TypeVar

from .spans import Span, caret_line

__all__ = [
    "CacheWarning",
    "CompilationError",
    "CompileTimeAssertionFailure",
    "CompilerCrash",
    "DefinitionError",
    "DeviceAssertionError",
    "DeviceLost",
    "LayoutError",
    "Note",
    "OffsetOverflowWarning",
    "OutOfBoundsError",
    "OutOfResources",
    "PTXASError",
    "SettingWarning",
    "Unsupported",
    "UnsupportedLanguageConstruct",
    "WeftError",
    "WeftWarning",
    "hinted",
    "render",
]

_OF_PYTHON = (
    *(TypeError, ValueError, NameError, AttributeError, AssertionError, NotImplementedError, ZeroDivisionError),
    *(OverflowError, RuntimeError, IndexError),
)
REPORT_TO = "the issue tracker of Weft"


@dataclass(frozen=True, slots=True)
class Note:
    """A remark under an error: another place that has to do with it."""

    message: str
    span: Span | None = None
    source_line: str | None = None


def _excerpt(span: Span, source_line: str | None) -> list[str]:
    """The source line of `span` with its number, and the carets under it."""
    text = source_line if source_line is not None else span.source_line()
    if text is None:
        return []
    text = text.rstrip()
    number = f"{span.line:>5}"
    return [f"{number} | {text}", f"{' ' * len(number)} | {caret_line(text, span)}"]


def render(
    level: str,
    message: str,
    span: Span | None,
    source_line: str | None = None,
    notes: Sequence[Note] = (),
    hint: str | None = None,
) -> str:
    """Lay out a diagnostic; `level` is the word after the place: error, warning."""
    lines = [f"{span}: {level}: {message}" if span else f"{level}: {message}"]
    if span is not None:
        lines += _excerpt(span, source_line)
    for note in notes:
        lines.append(f"{note.span}: note: {note.message}" if note.span else f"note: {note.message}")
        if note.span is not None:
            lines += _excerpt(note.span, note.source_line)
    if hint:
        lines.append(f"hint: {hint}")
    return "\n".join(lines)


E = TypeVar("E", bound=Exception)


def hinted(error: E, hint: str) -> E:
    """Add a way out to a plain exception: it becomes the hint of the compilation error that is made of it."""
    error.add_note(hint)
    return error


def _rebuild(cls: type[WeftError], state: dict[str, Any]) -> WeftError:
    """Make an error from its attributes, without running its constructor (used by pickle)."""
    error = cls.__new__(cls)
    error.__dict__.update(state)
    error.args = (state.get("message", ""),)
    return error


class WeftError(Exception):
    """The base class of all errors that Weft raises deliberately.

    >>> issubclass(weft.CompilationError, weft.WeftError)
    True
    """

    as_told: ClassVar[Callable[[str], str]] = staticmethod(str)
    """The words of a hint as they are shown: where Weft goes by the name triton, it says triton.cdiv."""

    message: str

    def __init__(self, message: str = "") -> None:
        super().__init__(message)
        self.message = message

    def __str__(self) -> str:
        return self.message

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (type(self), dict(self.__dict__))

    def to_dict(self) -> dict[str, Any]:
        """The error as plain data (strings, numbers, lists), for editors and logs."""
        data: dict[str, Any] = {"kind": type(self).__name__}
        for name, value in self.__dict__.items():
            if name.startswith("_"):
                continue
            if isinstance(value, Span):
                value = asdict(value)
            elif isinstance(value, (list, tuple)):
                value = [asdict(v) if isinstance(v, (Note, Span)) else v for v in value]
            data[name] = value
        return data


class CompilationError(WeftError):
    """The kernel cannot be compiled, because it is wrong.

    `span` is the user's place; errors raised below the frontend without one get it as they pass through
    (`with_span`).  `notes` have other places, above all "called from" for inlined functions.

    >>> try:
    ...     evaluate("tl.sqroot(x)", x=[1.0, 4.0])
    ... except weft.CompilationError as error:
    ...     print(str(error).splitlines()[-1])
    hint: did you mean `sqrt` or `rsqrt`?
    """

    also_at: ClassVar[Callable[[Span], str | None] | None] = None
    """A second way to say the place, after the text: `weft.compat` sets it to Triton's. The message comes once more
    after it, since Triton ends with it."""

    span: Span | None
    source_line: str | None
    notes: tuple[Note, ...]
    hint: str | None
    _like: type[Exception] = ValueError

    def __init__(
        self,
        message: str,
        span: Span | None = None,
        *,
        source_line: str | None = None,
        notes: Sequence[Note] = (),
        hint: str | None = None,
    ) -> None:
        super().__init__(message)
        self.span = span
        self.source_line = source_line if source_line is not None or span is None else span.source_line()
        self.notes = tuple(notes)
        self.hint = hint

    @property
    def rendered(self) -> str:
        """The message with its place, notes and hint; without what programs written for Triton look for."""
        hint = self.hint and WeftError.as_told(self.hint)
        return render("error", self.message, self.span, self.source_line, self.notes, hint)

    def __str__(self) -> str:
        also = CompilationError.also_at
        if also is None or self.span is None:
            return self.rendered
        places = [also(span) for span in (self.span, *self.callers)]
        return "\n".join([self.rendered, *filter(None, places), self.message])

    @property
    def error_message(self) -> str:
        """The message alone (the name Triton gives it)."""
        return self.message

    @property
    def callers(self) -> tuple[Span, ...]:
        """Where the function that is wrong was called, the innermost call first."""
        return tuple(n.span for n in self.notes if n.span is not None and n.message.startswith("called from here"))

    @property
    def like(self) -> type[Exception]:
        """What Python would raise in its place, for programs that ask for the class of the cause."""
        return self._like

    def likened(self, kind: type[Exception]) -> CompilationError:
        """Say what Python would raise in its place; returns the error itself."""
        self._like = next((k for k in kind.__mro__ if k in _OF_PYTHON), ValueError)
        return self

    def with_span(self, span: Span, source_line: str | None = None) -> CompilationError:
        """Set the place, where none is known yet; returns the error itself."""
        if self.span is None:
            self.span = span
            self.source_line = source_line if source_line is not None else span.source_line()
        return self

    def with_note(self, note: Note) -> CompilationError:
        """Append a note; returns the error itself."""
        self.notes = (*self.notes, note)
        return self


class DefinitionError(CompilationError, TypeError, ValueError):
    """What is given as a kernel cannot be one: no function, or one whose source cannot be found.

    >>> try:
    ...     weft.jit(len)[(1,)]()
    ... except weft.DefinitionError as error:
    ...     print(isinstance(error, TypeError))
    True
    """


class UnsupportedLanguageConstruct(CompilationError):
    """Python syntax or a Python feature that a kernel cannot contain.

    >>> try:
    ...     evaluate("lambda: 1")
    ... except weft.UnsupportedLanguageConstruct as error:
    ...     print(error.message)
    `lambda` cannot be used in a kernel
    """


class CompileTimeAssertionFailure(CompilationError):
    """A `tl.static_assert` that does not hold.

    >>> try:
    ...     evaluate("tl.static_assert(1 > 2, 'too small')")
    ... except weft.CompileTimeAssertionFailure as error:
    ...     print(error.message)
    static assertion failed: too small
    """


class Unsupported(CompilationError):
    """The kernel is correct but uses `feature`, which `target` does not support (`works_on` lists targets that do).

    >>> issubclass(weft.Unsupported, weft.CompilationError)
    True
    """

    def __init__(
        self,
        feature: str,
        target: str | None = None,
        span: Span | None = None,
        *,
        works_on: Sequence[str] = (),
        notes: Sequence[Note] = (),
        hint: str | None = None,
    ) -> None:
        message = f"{feature} is not supported" + (f" on target {target}" if target else "")
        if hint is None and works_on:
            hint = f"it works on {', '.join(works_on)}"
        super().__init__(message, span, notes=notes, hint=hint)
        self.feature = feature
        self.target = target
        self.works_on = tuple(works_on)


class LayoutError(CompilationError, ValueError):
    """A layout is ill-formed, or does not fit the tile or the operation it is used for.

    >>> from weft.layouts import BlockedLayout, LayoutError
    >>> try:
    ...     BlockedLayout([3], [32], [4], [0])
    ... except LayoutError as error:
    ...     print(str(error).splitlines()[0])
    error: BlockedLayout: the entries of size_per_thread must be powers of two, got 3 in [3]
    """

    way_out: ClassVar[Callable[[str], str | None]] = staticmethod(lambda message: None)
    """The hint for a message that comes without one; `weft.layouts` sets it."""

    def __init__(self, message: str, span: Span | None = None, *, hint: str | None = None, **where: Any) -> None:
        super().__init__(message, span, hint=hint or LayoutError.way_out(message), **where)


class OutOfResources(WeftError):
    """The kernel needs `required` of the resource `name`; the machine has `limit`. Both are 0 if that is unknown.

    >>> issubclass(weft.OutOfResources, weft.WeftError)
    True
    """

    def __init__(
        self, required: int, limit: int, name: str, hint: str | None = None, *, details: Sequence[str] = ()
    ) -> None:
        numbers = f", Required: {required}, Hardware limit: {limit}" if required or limit else ""
        message = f"out of resource: {name}{numbers}."
        if not hint:
            message += " Reducing block sizes or `num_stages` may help."
        super().__init__("\n".join([message, *details, *([f"hint: {hint}"] if hint else ())]))
        self.required = required
        self.limit = limit
        self.name = name
        self.hint = hint
        self.details = tuple(details)
        """What the resource is needed for, one line each."""


LOST_HINT = (
    "run the kernel with target='sim:cuda:90', which names the line and the address; "
    "or with CUDA_LAUNCH_BLOCKING=1 to learn which launch it is"
)


class DeviceLost(WeftError, RuntimeError):
    """A kernel went wrong on a GPU: `what` the driver says; `recent` the last launches (kernel, grid), newest first.

    The GPU's context is lost: nothing on it can be used any more, and the process has to end.

    >>> error = weft.DeviceLost("an illegal address", "CUDA_ERROR_ILLEGAL_ADDRESS", [("add", (4, 1, 1))])
    >>> error.recent
    (('add', (4, 1, 1)),)
    """

    def __init__(
        self,
        message: str,
        what: str,
        recent: Sequence[tuple[str, tuple[int, int, int]]] = (),
        kernel: str = "",
        *,
        hint: str = LOST_HINT,
    ) -> None:
        suspects = [f"  {name} over {grid}" for name, grid in recent]
        lines = [f"the GPU is lost: {message}", f"the driver says: {what}"]
        if suspects:
            lines += ["launches that may have done it, the last one first:", *suspects]
        elif kernel:
            lines.append(f"found when {kernel} was launched")
        lines += [
            "Arrays on the GPU are lost and every further call fails: restart the process.",
            f"hint: {hint}",
        ]
        super().__init__("\n".join(lines))
        self.what = what
        self.recent = tuple(recent)


class DeviceAssertionError(WeftError, AssertionError, RuntimeError):
    """A `tl.device_assert`, or a check that `debug=True` adds, failed while the kernel ran.

    `program` is the id (x, y, z) of the first program in which it failed, `position` the position in the tile, which
    has the shape `shape` (None for a scalar), and `told` a text with the values there.

    >>> @weft.jit
    ... def positive(n):
    ...     tl.device_assert(n > 0, "n is positive")
    >>> try:
    ...     positive[(1,)](-1, debug=True)
    ... except weft.DeviceAssertionError as error:
    ...     print(error.program)
    (0, 0, 0)
    """

    def __init__(
        self,
        message: str,
        span: Span | None = None,
        program: tuple[int, ...] | None = None,
        function: str | None = None,
        *,
        kernel: str | None = None,
        position: tuple[int, ...] | None = None,
        shape: tuple[int, ...] | None = None,
        told: str = "",
        hint: str | None = None,
    ) -> None:
        super().__init__(message)
        self.span = span
        self.source_line = span.source_line() if span else None
        self.program = program
        self.function = function
        self.kernel = kernel
        self.position = position
        self.shape = shape
        self.told = told
        self.hint = hint

    def _headline(self) -> str:
        return f"device assertion failed: {self.message}" if self.message else "device assertion failed"

    def __str__(self) -> str:
        notes = []
        if self.program is not None:
            text = f"in program {self.program}" + (f" of kernel `{self.kernel}`" if self.kernel else "")
            if self.position is not None and self.shape is not None:
                text += f", at position {list(self.position)} of a tile of shape {list(self.shape)}"
            notes.append(Note(text + (f": {self.told}" if self.told else "")))
        text = render("error", self._headline(), self.span, self.source_line, notes, self.hint)
        # programs written for Triton look for what PyTorch says
        return text if CompilationError.also_at is None else f"{text}\ndevice-side assert triggered"


class OutOfBoundsError(DeviceAssertionError, IndexError):
    """A load, store or atomic of element `index` of the array `argument`, which has no such element.

    Launches with `debug=True` check this on the CPU, launches in the simulator always. The access was not executed:
    nothing outside of the array was read or written.

    >>> @weft.jit
    ... def double(x):
    ...     i = tl.arange(0, 4)
    ...     tl.store(x + i, tl.load(x + i) * 2)
    >>> try:
    ...     double[(1,)](np.zeros(2, np.float32), debug=True)
    ... except weft.OutOfBoundsError as error:
    ...     print(error.position)
    (2,)
    """

    def __init__(
        self,
        message: str,
        span: Span | None = None,
        program: tuple[int, ...] | None = None,
        function: str | None = None,
        *,
        argument: str | None = None,
        index: int | None = None,
        **where: Any,
    ) -> None:
        super().__init__(message, span, program, function, **where)
        self.argument = argument
        self.index = index

    def _headline(self) -> str:
        return self.message


class CompilerCrash(WeftError):
    """A bug in Weft: `stage` is the stage of the compiler that failed, `ir` the IR that it worked on.

    If there is a `hint`, the cause may lie elsewhere, and the hint says what to do.

    >>> issubclass(weft.CompilerCrash, weft.WeftError)
    True
    """

    def __init__(
        self,
        message: str,
        stage: str | None = None,
        span: Span | None = None,
        *,
        ir: str | None = None,
        traceback: str | None = None,
        hint: str | None = None,
        reproducer: str | None = None,
    ) -> None:
        super().__init__(message)
        self.hint = hint
        self.reproducer = reproducer
        """A file that `weft.compile` takes; its first line says how."""
        self.stage = stage
        self.span = span
        self.source_line = span.source_line() if span else None
        self.ir = ir
        self.traceback = traceback

    def __str__(self) -> str:
        where = f" in {self.stage}" if self.stage else ""
        kept = f"\nTo do it again: {self.reproducer}, whose first line says how." if self.reproducer else ""
        if self.hint:
            return render("error", self.message, self.span, self.source_line, hint=self.hint) + kept
        text = render("internal error", f"Weft failed{where}: {self.message}", self.span, self.source_line)
        text += f"\nThis is a fault of Weft, not of your kernel. Please send the kernel and this text to {REPORT_TO}."
        text += kept
        if self.ir:
            text += f"\n--- IR before ---\n{self.ir.rstrip()}"
        if self.traceback:
            text += f"\n--- traceback ---\n{self.traceback.rstrip()}"
        return text


class PTXASError(CompilerCrash):
    """NVIDIA's assembler made no machine code of a kernel: it refused it, died, took too long, could not be run.

    >>> issubclass(weft.PTXASError, weft.CompilerCrash)
    True
    """


class WeftWarning(UserWarning):
    """The base class of Weft's warnings.

    >>> issubclass(weft.WeftWarning, UserWarning)
    True
    """


class SettingWarning(WeftWarning):
    """A setting was made that has no effect here; the text says what to do instead.

    >>> issubclass(weft.SettingWarning, weft.WeftWarning)
    True
    """


class CacheWarning(WeftWarning):
    """The cache of compiled kernels cannot be used; compiling goes on without it.

    >>> issubclass(weft.CacheWarning, weft.WeftWarning)
    True
    """


class OffsetOverflowWarning(WeftWarning):
    """An offset of a pointer is known to wrap around the end of its type; told once for each place in the source.

    >>> import warnings
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("error", weft.OffsetOverflowWarning)    # make it an error; or "ignore" it
    >>> issubclass(weft.OffsetOverflowWarning, weft.WeftWarning)
    True
    """

    def __init__(
        self, message: str, span: Span | None = None, *, notes: Sequence[Note] = (), hint: str | None = None
    ) -> None:
        super().__init__(message)
        self.message = message
        self.span = span
        self.source_line = span.source_line() if span else None
        self.notes = tuple(notes)
        self.hint = hint

    def __str__(self) -> str:
        return render("warning", self.message, self.span, self.source_line, self.notes, self.hint)


def as_users_find_them(names: Mapping[str, Any], public: Iterable[str]) -> dict[str, type]:
    """The public classes of a module, for its `__test__`; tracebacks name errors by the module where users find them.

    Doctests of classes that say to be of another module are found by `__test__` alone.
    """
    classes = {name: names[name] for name in public if isinstance(names[name], type)}
    for kind in classes.values():
        if issubclass(kind, (WeftError, WeftWarning)):
            kind.__module__ = "weft"
    return classes


__test__ = as_users_find_them(globals(), __all__)
