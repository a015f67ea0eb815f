"""Names that ``tvm.relay`` had in release 0.6."""

from __future__ import annotations

from collections.abc import Iterable
from types import SimpleNamespace
from typing import Any

from tvm.error import TVMError
from tvm.ir.module import IRModule
from tvm.ir.transform import PassContext
from tvm.support.deprecation import warn_renamed


def _build_config(
    opt_level: int = 2,
    fallback_device: Any = None,
    add_pass: Iterable[str] | None = None,
    disable_pass: Iterable[str] | None = None,
    **kwargs: Any,
) -> PassContext:
    """The context that the options of an old build configuration ask for."""
    required = kwargs.pop("required_pass", add_pass)
    disabled = kwargs.pop("disabled_pass", disable_pass)
    if kwargs:
        raise TVMError(f"relay.build_config has no option {next(iter(kwargs))!r}")
    config = {}
    if fallback_device is not None:
        config["relay.fallback_device_type"] = getattr(
            fallback_device, "device_type", fallback_device
        )
    return PassContext(opt_level, required, disabled, config=config)


# old name -> what it is, its spelling today
NAMES: dict[str, tuple[Any, str]] = {
    "Module": (IRModule, "tvm.IRModule"),
    "build_config": (_build_config, "tvm.transform.PassContext"),
    "module": (SimpleNamespace(Module=IRModule), "tvm.ir"),
}


def __getattr__(name: str) -> Any:
    """What ``tvm.relay.<name>`` was, with a warning."""
    if name not in NAMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found, today = NAMES[name]
    warn_renamed(f"tvm.relay.{name}", today, stacklevel=4)
    return found
