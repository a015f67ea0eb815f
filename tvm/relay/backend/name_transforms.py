"""Names of generated functions and variables."""

from __future__ import annotations

from collections.abc import Sequence

from tvm.error import RuntimeValueError

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
    return camel_case(_prefixed(original_name, "Function"))


def to_c_variable_style(original_name: str) -> str:
    """`TVMGen_Default_run` gives `tvmgen_default_run`."""
    return _prefixed(original_name, "Variable").lower()


def to_c_constant_style(original_name: str) -> str:
    """`TVMGen_default_run` gives `TVMGEN_DEFAULT_RUN`."""
    return _prefixed(original_name, "Constant").upper()


def camel_case(name: str) -> str:
    """`some_name` gives `SomeName`."""
    return "".join([part[:1].upper() + part[1:] for part in name.split("_")])


def sanitize(name: str) -> str:
    """A name that C accepts."""
    return "".join([c if c.isalnum() else "_" for c in name])


def _names(names: str | Sequence[str]) -> list[str]:
    found = [names] if isinstance(names, str) else list(names)
    if not any(found):
        raise RuntimeValueError(f"Name segments empty: a name is required, got {names!r}")
    return [sanitize(n) for n in found]


def _prefixed(name: str, kind: str) -> str:
    """The name, which must be one of this package's."""
    if not name:
        raise RuntimeValueError(f"{kind} name is empty: one that begins with TVM is required")
    if not name.startswith("TVM"):
        raise RuntimeValueError(
            f"{kind} not TVM prefixed: got {name!r}", hint="prefix_name(name) has it"
        )
    return name
