"""What the choice among compilers asks: their patterns, and the seconds that a program takes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

import tvm.runtime.ndarray as nd
from tvm._ffi import register_func
from tvm.error import TVMError
from tvm.ir.module import IRModule
from tvm.ir.transform import PassContext
from tvm.ir.type import TensorType, TupleType, Type
from tvm.relay import contrib
from tvm.relay.backend import vm
from tvm.relay.backend.target_hooks import is_external
from tvm.relay.transform.collage_candidates import PATTERNS
from tvm.relay.transform.collage_costs import MEASURE
from tvm.runtime import Device, cpu
from tvm.runtime.vm import VirtualMachine
from tvm.target import Target

# milliseconds before the time is taken; runs of a measurement; measurements
WARMUP_MIN_REPEAT_MS, MEASURE_NUMBER, MEASURE_REPEAT = 20, 5, 3


def arg_for(arg_type: Type, device: Device) -> Any:
    """A random value of a type."""
    if isinstance(arg_type, TupleType):
        return tuple([arg_for(field, device) for field in arg_type.fields])
    if not isinstance(arg_type, TensorType) or arg_type.is_dynamic:
        raise TVMError(f"a measurement requires tensors of known shapes, got {arg_type}")
    values = np.random.default_rng(0).uniform(-1, 1, arg_type.concrete_shape)
    return nd.array(values.astype(str(arg_type.dtype)), device)


def vm_estimate_seconds(device: Device, machine: VirtualMachine, args: Sequence[Any]) -> float:
    """The median of the seconds that `main` takes."""
    machine.benchmark(device, *args, repeat=1, number=1, min_repeat_ms=WARMUP_MIN_REPEAT_MS)
    result = machine.benchmark(device, *args, repeat=MEASURE_REPEAT, number=MEASURE_NUMBER)
    return float(result.median)


@register_func(MEASURE, override=True)
def estimate_seconds(mod: IRModule, target: Target) -> float:
    """The seconds that `main` of a module takes; infinity if the target cannot compile it."""
    device = cpu()
    main = mod["main"]
    ours = target.host if is_external(target) else target
    targets = [ours or Target("llvm"), *([target] if ours is not target else [])]
    args = [arg_for(param.checked_type, device) for param in main.params]
    try:
        with PassContext(opt_level=3):
            executable = vm.compile(mod, targets)
    except TVMError:
        return math.inf
    return vm_estimate_seconds(device, VirtualMachine(executable, device), args)


@register_func(PATTERNS, override=True)
def pattern_table(compiler: str) -> Any:
    """The patterns of a compiler, by the public name, under which programs put tables of their own."""
    return contrib.get_pattern_table(compiler)
