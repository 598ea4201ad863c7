"""Spans, diagnostics and options: what every other room may use and none may do without."""

from typing import TYPE_CHECKING

from .errors import (
    CacheWarning,
    CapturedGlobalError,
    CompilationError,
    CompilerCrash,
    CompileTimeAssertionFailure,
    DefinitionError,
    DeviceAssertionError,
    DeviceLost,
    LaunchError,
    LaunchOverflowError,
    LaunchTypeError,
    LayoutError,
    NoDevice,
    Note,
    OffsetOverflowWarning,
    OptionError,
    OutOfBoundsError,
    OutOfResources,
    OutsideKernelError,
    PTXASError,
    SettingWarning,
    SpecializationError,
    Unsupported,
    UnsupportedLanguageConstruct,
    WeftError,
    WeftWarning,
    hinted,
    render,
)
from .faces import lazy_face, load, publish
from .options import CompileOptions
from .spans import Span, caret_line
from .warned import warn_at

if TYPE_CHECKING:
    from .remarks import Remarks

__all__ = [
    # places
    "Span",
    "caret_line",
    "warn_at",
    # diagnostics
    "Note",
    "render",
    "hinted",
    "WeftError",
    "CompilationError",
    "DefinitionError",
    "UnsupportedLanguageConstruct",
    "CompileTimeAssertionFailure",
    "Unsupported",
    "LayoutError",
    "OutOfResources",
    "LaunchError",
    "LaunchOverflowError",
    "LaunchTypeError",
    "OptionError",
    "CapturedGlobalError",
    "SpecializationError",
    "NoDevice",
    "DeviceLost",
    "OutsideKernelError",
    "DeviceAssertionError",
    "OutOfBoundsError",
    "CompilerCrash",
    "PTXASError",
    "WeftWarning",
    "SettingWarning",
    "CacheWarning",
    "OffsetOverflowWarning",
    # options
    "CompileOptions",
    # what the compiler tells of its decisions
    "Remarks",
    # packages
    "lazy_face",
    "load",
    "publish",
]

__getattr__ = lazy_face(__name__, {"remarks": "Remarks"})  # a launch out of the cache needs none
