"""How kernels for the device `ext_dev` become code.

The runtime's own extension device is memory apart from the host's whose kernels the processor
runs: they are compiled by LLVM as those of a CPU are, for arrays on `tvm.ext_dev(0)`. They take the
options of `llvm` (`ext_dev -mcpu=...`), by default those of the host; the target's own keys come
before `cpu`, so that strategies and schedules that a program registers for them win.

A program that brings a code generator of its own, as the global function `target.build.ext_dev`,
gets the kernels instead.
"""

from __future__ import annotations

from typing import Any

from tvm._ffi import get_global_func

from .target_node import Target

EXT_DEV = 12


def code_target(target: Target) -> Target:
    """The target that a target's code is generated for: itself, but for `ext_dev`."""
    if target.kind.name != "ext_dev" or _has_own_generator():
        return target
    host = target.host if target.host is not None and target.host.kind.name == "llvm" else None
    return _on_ext_dev(host or Target("llvm"), target)


def _on_ext_dev(code: Target, place: Target) -> Target:
    """`code` for arrays on the extension device, with the options of `place`."""
    config = {k: v for k, v in code.export().items() if k != "host"}
    keys = list(dict.fromkeys([*place.keys, *code.keys]))
    options = {k: v for k, v in place.export().items() if k not in ("kind", "keys", "tag", "host")}
    return Target({**config, **options, "keys": keys, "target_device_type": EXT_DEV})


def _has_own_generator() -> bool:
    return get_global_func("target.build.ext_dev", allow_missing=True) is not None


def placed_target(device_type: int, target: Any) -> Target:
    """The target that a program names for a device: `{tvm.ext_dev(0): "llvm"}` is code for it."""
    found = Target(target)
    if device_type == EXT_DEV and found.kind.name == "llvm":
        return _on_ext_dev(found, found)
    return found


__all__ = ["EXT_DEV", "code_target", "placed_target"]
