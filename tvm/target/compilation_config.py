"""The targets of one compilation, in canonical form."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tvm.ir.pass_context import register_pass_config

from .kind import TargetError
from .target_node import Target
from .virtual_device import VirtualDevice

CPU = 1
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

    def canonical_virtual_device(self, device: VirtualDevice) -> VirtualDevice:
        """A place with nothing left open that the targets tell."""
        number = device.device_type_int
        if number < 0:
            number = self.default_primitive_virtual_device.device_type_int
        known = (*self.primitive_targets, self.host_target)
        found = [t for t in known if t.get_target_device_type() == number]
        target = device.target or (found[0] if found else None)
        index = max(device.virtual_device_id, 0)
        return device.replace(device_type_int=number, virtual_device_id=index, target=target)


def make_compilation_config(ctxt: Any, target: Any, target_host: Any = None) -> CompilationConfig:
    """The configuration of a pass context and one or several targets.

    What nobody places lives on the processor, or on the device kind of the context's
    `relay.fallback_device_type`; where neither is among the targets, where the first one runs.
    """
    targets = tuple(Target.canon_multi_target_and_host(target, target_host))
    default = _default_target(targets, None if ctxt is None else ctxt.config.get(FALLBACK))
    processors = [t for t in targets if t.get_target_device_type() == CPU]
    hosts = [t.host for t in targets if t.host is not None]
    host = (*hosts, *[Target(t) for t in (target_host,) if t is not None], *processors)
    host_target = host[0] if host else Target("llvm")
    # the host is the processor among the targets, under its own target if that is the same
    is_other = bool(processors) and str(processors[0]) != str(host_target)
    return CompilationConfig(
        targets,
        host_target,
        _virtual_device(processors[0] if is_other else host_target),
        _virtual_device(default),
        targets[0] if len(targets) == 1 else None,
    )


def _virtual_device(target: Target) -> VirtualDevice:
    return VirtualDevice(target=target).replace(virtual_device_id=0)


def _default_target(targets: tuple[Target, ...], fallback: int | None) -> Target:
    if not fallback:
        kinds = {t.get_target_device_type(): t for t in reversed(targets)}
        return kinds.get(CPU, targets[0])
    for target in targets:
        if target.get_target_device_type() == fallback:
            return target
    kinds_text = ", ".join([f"{t.kind} ({t.get_target_device_type()})" for t in targets])
    raise TargetError(
        f"{FALLBACK} is {fallback}, the targets are for the device types {kinds_text}"
    )
