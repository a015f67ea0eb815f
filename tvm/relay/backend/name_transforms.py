"""Names of generated functions and variables."""

from __future__ import annotations

from collections.abc import Sequence

PREFIX = "tvmgen"


def mangle_module_name(mod_name: str | None) -> str:
    """The prefix of all functions generated for a module.

    Raises
    ------
    ValueError
        If the name cannot be a part of one in C.
    """
    if mod_name and not mod_name.isascii():
        raise ValueError(f"a module's name requires letters of ASCII, got {mod_name!r}")
    return f"{PREFIX}_{mod_name}" if mod_name else PREFIX


def prefix_name(names: str | Sequence[str]) -> str:
    """`["Device", "target"]` gives `TVM_Device_target`."""
    return "_".join(["TVM", *_names(names)])


def prefix_generated_name(names: str | Sequence[str]) -> str:
    """`["default", "run"]` gives `TVMGen_default_run`."""
    return "_".join(["TVMGen", *_names(names)])


def to_c_function_style(original_name: str) -> str:
    """`TVMGen_default_run` gives `TVMGenDefaultRun`."""
    _check_not_empty(original_name)
    return "".join([part[:1].upper() + part[1:] for part in original_name.split("_")])


def to_c_variable_style(original_name: str) -> str:
    """`TVMGen_Default_run` gives `tvmgen_default_run`."""
    _check_not_empty(original_name)
    return original_name.lower()


def to_c_constant_style(original_name: str) -> str:
    """`TVMGen_default_run` gives `TVMGEN_DEFAULT_RUN`."""
    _check_not_empty(original_name)
    return original_name.upper()


def sanitize(name: str) -> str:
    """A name that C accepts."""
    return "".join([c if c.isalnum() else "_" for c in name])


def _names(names: str | Sequence[str]) -> list[str]:
    found = [names] if isinstance(names, str) else list(names)
    if not found or not any(found):
        raise ValueError("a name is required, got none")
    return [sanitize(n) for n in found]


def _check_not_empty(name: str) -> None:
    if not name:
        raise ValueError("a name is required, got none")
