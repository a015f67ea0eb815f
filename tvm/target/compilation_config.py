"""The targets of one compilation, in canonical form."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .target_node import Target
from .virtual_device import VirtualDevice


@dataclass(frozen=True)
class CompilationConfig:
    """Primitive targets, the host and where it runs."""

    primitive_targets: tuple[Target, ...]
    host_target: Target
    host_virtual_device: VirtualDevice
    default_primitive_virtual_device: VirtualDevice
    optional_homogeneous_target: Target | None


def make_compilation_config(ctxt: Any, target: Any, target_host: Any = None) -> CompilationConfig:
    """The configuration of a pass context and one or several targets."""
    del ctxt
    targets = tuple(Target.canon_multi_target_and_host(target, target_host))
    is_cpu = targets[0].get_target_device_type() == 1
    host = targets[0].host or Target.canon_target(target_host)
    host = host or (targets[0] if is_cpu else Target("llvm"))
    return CompilationConfig(
        targets,
        host,
        VirtualDevice(target=host),
        VirtualDevice(target=targets[0]),
        targets[0] if len(targets) == 1 else None,
    )
