"""`--pass-config tir.disable_vectorize=1`."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Sequence
from typing import Any

from tvm.driver.tvmc.errors import TVMCException, similar_or_all
from tvm.ir.transform import Pass, PassContext

_TRUTH = {"true": True, "1": True, "on": True, "false": False, "0": False, "off": False}


class NoSuchModuleError(TVMCException, ModuleNotFoundError):
    """There is no module that an option names."""


def load_function(full_name: str) -> Callable[..., Any]:
    """The function of that dotted name: ``my_package.passes.AddTimers``, ``tir.transform.UnrollLoop``."""
    module_name, _, name = full_name.rpartition(".")
    prefix = "tvm." if module_name.startswith(("tir.", "relay.")) else ""
    try:
        found: Callable[..., Any] = getattr(importlib.import_module(prefix + module_name), name)
    except ModuleNotFoundError as error:
        raise NoSuchModuleError(f"there is no function {full_name!r}: {error}") from None
    except (ImportError, ValueError, AttributeError) as error:
        raise TVMCException(f"there is no function {full_name!r}: {error}") from None
    if not callable(found):
        raise TVMCException(f"{full_name!r} is not a function")
    return found


def get_pass_config_value(name: str, value: str, config_type: str) -> Any:
    """The value of an option of that type, from its text."""
    kind = config_type.removeprefix("runtime::").removeprefix("Int")
    if kind in ("bool", "Bool"):
        if value.lower() not in _TRUTH:
            raise TVMCException(f"Invalid value {value!r} for configuration {name}: 1 or 0")
        return _TRUTH[value.lower()]
    if kind in ("int", "", "IntImm", "Imm"):
        try:
            return _TRUTH[value.lower()] if value.isalpha() else int(value)
        except KeyError:
            raise TVMCException(f"Invalid value {value!r} for configuration {name}") from None
        except ValueError:
            raise TVMCException(f"Invalid value {value!r} for configuration {name}") from None
    if kind in ("str", "String"):
        return value
    if name == "tir.add_lower_pass":
        return _lower_passes(name, value)
    return _record(name, value, config_type)


def _lower_passes(name: str, value: str) -> list[tuple[int, Any]]:
    """``"1,my.passes.Check,2,my.passes.Trace"`` -> phases and passes."""
    parts = value.split(",")
    if len(parts) % 2:
        raise TVMCException(
            f"The value for the pass config {name} must be a list of phases and passes: "
            f'"1,my.passes.Check,2,my.passes.Trace", got {value!r}'
        )
    phases, names = [phase.strip() for phase in parts[::2]], parts[1::2]
    if wrong := [phase for phase in phases if phase not in ("0", "1", "2", "3")]:
        raise TVMCException(f"{name} has the phases 0 to 3, got {wrong[0]!r}")
    return [
        (int(phase), _as_pass(load_function(full_name.strip())))
        for phase, full_name in zip(phases, names, strict=True)
    ]


def _as_pass(found: Callable[..., Any]) -> Callable[..., Any]:
    """A pass, or a function from module to module; what needs no argument is called to give one."""
    if isinstance(found, Pass):
        return found
    required = [
        param
        for param in inspect.signature(found).parameters.values()
        if param.default is param.empty
        and param.kind not in (param.VAR_POSITIONAL, param.VAR_KEYWORD)
    ]
    return found if required else found()


def _record(name: str, value: str, config_type: str) -> dict[str, Any]:
    """``"auto_max_step=16,explicit_unroll=0"`` -> the options of a pass."""
    pairs = [item.partition("=") for item in value.split(",")]
    try:
        return {key.strip(): int(_TRUTH.get(text.lower(), text)) for key, _, text in pairs}
    except ValueError:
        raise TVMCException(
            f"configuration {name} of type {config_type} requires options with numbers, such as "
            f'"--pass-config {name}=option=1", got {value!r}'
        ) from None


def parse_configs(input_configs: Sequence[str] | None) -> dict[str, Any]:
    """Options of passes by key.

    Parameters
    ----------
    input_configs : list of str
        Such as ``["tir.disable_vectorize=1"]``.
    """
    known = PassContext.list_configs()
    found: dict[str, Any] = {}
    for config in input_configs or ():
        name, equals, value = (part.strip() for part in config.partition("="))
        if not equals or not name or not value:
            raise TVMCException(f'Invalid format for pass configuration "{config}", use name=value')
        if name not in known:
            raise TVMCException(
                f'Configuration "{name}" is not defined in TVM. {similar_or_all(name, known)}'
            )
        parsed = get_pass_config_value(name, value, known[name]["type"])
        # lists grow with each option; of other values the last one holds
        found[name] = [*found.get(name, ()), *parsed] if isinstance(parsed, list) else parsed
    return found
