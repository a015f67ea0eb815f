"""The targets of one compilation, in canonical form."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tvm.ir.pass_context import register_pass_config

from .kind import TargetError
from .target_node import Target
from .virtual_device import VirtualDevice

FALLBACK = "relay.fallback_device_type"
register_pass_config(FALLBACK, int)


@dataclass(frozen=True)
class CompilationConfig:
    """Primitive targets, the host and where it runs."""

    primitive_targets: tuple[Target, ...]
    host_target: Target
    host_virtual_device: VirtualDevice
    default_primitive_virtual_device: VirtualDevice
    optional_homogeneous_target: Target | None


def make_compilation_config(ctxt: Any, target: Any, target_host: Any = None) -> CompilationConfig:
    """The configuration of a pass context and one or several targets.

    What nobody places lives where the first target runs, or on the device kind of the context's
    `relay.fallback_device_type`.
    """
    targets = tuple(Target.canon_multi_target_and_host(target, target_host))
    default = _default_target(targets, None if ctxt is None else ctxt.config.get(FALLBACK))
    is_cpu = targets[0].get_target_device_type() == 1
    host = targets[0].host or Target.canon_target(target_host)
    host = host or (targets[0] if is_cpu else Target("llvm"))
    return CompilationConfig(
        targets,
        host,
        VirtualDevice(target=host),
        VirtualDevice(target=default),
        targets[0] if len(targets) == 1 else None,
    )


def _default_target(targets: tuple[Target, ...], fallback: int | None) -> Target:
    if not fallback:
        return targets[0]
    for target in targets:
        if target.get_target_device_type() == fallback:
            return target
    kinds = ", ".join([f"{t.kind} ({t.get_target_device_type()})" for t in targets])
    raise TargetError(f"{FALLBACK} is {fallback}, the targets are for the device types {kinds}")
