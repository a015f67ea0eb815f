"""Models compiled in this process, called with tensors of PyTorch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tvm._ffi.runtime_ctypes import Device
from tvm.relax.vm_build import build
from tvm.runtime.container import ShapeTuple
from tvm.runtime.ndarray import NDArray, array, empty
from tvm.runtime.relax_vm import VirtualMachine
from tvm.target import Target

from . import spec as _spec
from .core import Module


class TorchModule:
    """A compiled model: ``model["forward"](x)`` takes and returns tensors of PyTorch.

    Parameters
    ----------
    spec : ModuleSpec
        The methods.
    vm : VirtualMachine
        The machine.
    params : list of NDArray
        The values of the parameters.
    """

    def __init__(
        self, spec: _spec.ModuleSpec, vm: VirtualMachine, params: Sequence[NDArray]
    ) -> None:
        self.spec = spec
        self.vm = vm
        self.params = list(params)
        has_state = vm.module.implements_function("_initialize_effect")
        self.effects: list[Any] = list(vm["_initialize_effect"]()) if has_state else []

    def __getitem__(self, name: str) -> Callable[..., Any]:
        place = self.spec.method_names.index(name)
        method = self.spec.method_specs[place]

        def call(*args: Any) -> Any:
            if len(args) != len(method.arg_names):
                raise TypeError(f"{name} takes {method.arg_names}, got {len(args)} arguments")
            given = [_as_native(a, s) for a, s in zip(args, method.arg_specs, strict=True)]
            states = _passed(self.effects, method.effect_mode)
            params = _passed(self.params, method.param_mode)
            result = self.vm[name](*given, *states, *params)
            if self.effects and method.effect_mode != "none":
                result, states = result
                self.effects = list(states)
            return _as_torch(result)

        return call


def _passed(values: list[Any], mode: str) -> list[Any]:
    """Parameters or states as arguments: one each, none, or all as one."""
    return values if mode == "plain" else [values] if mode == "packed" else []


def _as_native(value: Any, spec: Any) -> Any:
    if isinstance(spec, _spec.Int):
        return ShapeTuple([int(value)])
    if isinstance(spec, _spec.Tuple):
        return [_as_native(v, s) for v, s in zip(value, spec.elements, strict=True)]
    if isinstance(value, NDArray) or not hasattr(value, "detach"):
        return value
    return array(value.detach().cpu().contiguous().numpy())


def _as_torch(value: Any) -> Any:
    import torch

    if isinstance(value, NDArray):
        return torch.from_numpy(value.numpy())
    if isinstance(value, (list, tuple)) and not isinstance(value, ShapeTuple):
        return tuple([_as_torch(part) for part in value])
    return value


def compile_module(
    module: Module, spec: Any, device: Device, pipeline: Any, out_format: str, debug: bool
) -> TorchModule:
    """The model compiled; see `Module.jit`."""
    if out_format != "torch":
        raise ValueError(f'out_format must be "torch", got {out_format!r}')
    found = spec if isinstance(spec, _spec.ModuleSpec) else _spec.ModuleSpec.from_raw(spec, module)
    mod, params, externals = module.export_tvm(found, debug=debug, allow_extern=True)
    if externals:
        mod = mod.with_attrs({"external_mods": [each.load() for each in externals]})
    executable = build(mod, Target.from_device(device), pipeline=pipeline)
    values = []
    for _, param in params:
        value = param.data
        values.append(
            empty(param.shape, param.dtype, device) if value is None else value.copyto(device)
        )
    return TorchModule(found, VirtualMachine(executable, device), values)
