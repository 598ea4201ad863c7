"""Settings that mean something to Triton and change nothing here: one warning for each that is set, with what to do.

A setting that is accepted and does nothing misleads whoever sets it; one that is refused keeps scripts from running.
"""

from __future__ import annotations

from weft.base import SettingWarning

from . import knobs
from .warned import warn

# Group, setting, and what to do instead.  Settings of groups for other targets (nvidia, amd) are not listed: they say
# where the tools of a target are, and are often set for a whole machine.
INSTEAD = (
    (
        "runtime",
        "interpret",
        "there is no interpreter: kernels run compiled, on the CPU. print(...) and tl.device_print show values, "
        "tl.device_assert and debug=True check them; a debugger cannot stop in a kernel",
    ),
    (
        "runtime",
        "override_arch",
        "kernels are compiled for this processor; launch with cpu='x86-64-v3', features='+avx2,+fma' for another",
    ),
    (
        "runtime",
        "add_stages_inspection_hook",
        "the stages cannot be changed; knobs.compilation.listener and WEFT_DUMP=all show them, the launch option "
        "ir_override='file.ttir' replaces the first",
    ),
    (
        "compilation",
        "instrumentation_mode",
        "there is no instrumentation on the CPU; debug=True checks accesses, integer overflow, hints and assertions",
    ),
    (
        "compilation",
        "enable_asan",
        "accesses are not checked by it; debug=True checks each against the array that it belongs to",
    ),
    ("compilation", "store_binary_only", "the cache always keeps every stage; WEFT_CACHE_SIZE bounds it"),
    ("compilation", "use_ir_loc", "places in messages are those of the kernel's source"),
    ("compilation", "dump_ir_extract_di_local_variables", "the code has no debug information"),
    ("cache", "manager_class", "kernels are kept in a directory: WEFT_CACHE_DIR; the class itself still works"),
    (
        "cache",
        "remote_manager_class",
        "kernels are kept in a directory, which may be shared: WEFT_CACHE_DIR; the class itself still works",
    ),
)

_OF_GPUS = {("runtime", "override_arch")}
"""What does mean something on a GPU, and in the simulator of one."""

_warned: set[tuple[str, str]] = set()


def warn_of_unused(on_cpu: bool = True) -> None:
    """Warn of each setting that is set and changes nothing, once in a process."""
    for group, name, instead in INSTEAD:
        if not on_cpu and (group, name) in _OF_GPUS:
            continue
        if (group, name) in _warned or not _is_set(getattr(knobs, group), name):
            continue
        _warned.add((group, name))
        setting = getattr(knobs, group).knob_descriptors.get(name)
        known_as = f"knobs.{group}.{name}" + (f" ({', '.join(setting.keys)})" if setting is not None else "")
        warn(f"the setting {known_as} has no effect: {instead}", SettingWarning)


def _is_set(group: knobs.base_knobs, name: str) -> bool:
    """Whether a setting is on; a class is not imported for that."""
    if isinstance(group.knob_descriptors.get(name), knobs.env_class):
        return group.is_set(name)
    return bool(getattr(group, name))
