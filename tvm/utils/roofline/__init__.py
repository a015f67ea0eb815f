"""How near each kernel of a model comes to what the machine can do.

import tvm.utils

report = tvm.utils.roofline_analysis(mod, params, "llvm", tvm.cpu())
print(report.table())

The roof of a kernel is the longer of its operations at the peak of multiply-adds and of its arguments'
bytes at the memory's bandwidth, both measured in the same run. What stays in a cache between kernels
can be faster than memory: such kernels are above 100 percent.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tvm._ffi.runtime_ctypes import Device
from tvm.ir.expr import GlobalVar
from tvm.ir.instrument import PassInstrument
from tvm.ir.module import IRModule
from tvm.ir.pass_context import PassContext
from tvm.relay.backend import vm
from tvm.runtime import ndarray as nd
from tvm.runtime import profiler_vm
from tvm.runtime.profiling import Count, Duration, Metric, Ratio, Report
from tvm.support.dtype import dtype as as_dtype
from tvm.target import Target
from tvm.tir.analysis import estimate_tir_flops
from tvm.tir.expr import IntImm
from tvm.tir.function import PrimFunc

from . import cuda, x86

__all__ = ["SaveLoweredTIR", "cuda", "roofline_analysis", "roofline_from_existing", "x86"]

# kernels have their loops then, one scalar operation an iteration
_AFTER = "tir.FlattenBuffer"
_ARGUMENT = re.compile(r"(\w+)\[([^\]]*)\]")


class SaveLoweredTIR(PassInstrument):
    """Keeps the kernels that are built in its context, as ``functions``."""

    def __init__(self) -> None:
        super().__init__()
        self.functions: dict[GlobalVar, PrimFunc] = {}

    def run_after_pass(self, mod: IRModule, info: Any) -> None:
        """Keep the functions of a module once they have loops."""
        if info.name == _AFTER:
            for name, func in mod.functions.items():
                if isinstance(func, PrimFunc):
                    self.functions[name] = func


@dataclass(frozen=True)
class _Roof:
    """What the machine can do."""

    flops: float  # operations a second
    bandwidth: float  # bytes a second


def roofline_analysis(
    mod: IRModule,
    params: Mapping[str, Any] | Sequence[Any] | None,
    target: str | Target,
    dev: Device,
    remote: Any = None,
) -> Report:
    """Run a model once and compare each kernel with the machine's roof.

    Parameters
    ----------
    mod : IRModule
        The model.
    params : dict of str to NDArray, or list of NDArray, or None
        The values of parameters: by name they are compiled in, as a list they are the first inputs.
        Other inputs are random.
    target : Target
        What it is compiled for.
    dev : Device
        Where it runs.
    remote : RPCSession, optional
        The device's machine; by default this one.

    Returns
    -------
    report : Report
        The calls with ``Estimated FLOPs``, ``FLOP/s``, ``Arithmetic Intensity``, ``Bandwidth (B/s)``,
        ``Bound`` and ``Percent of Theoretical Optimal``; those of open extents without them.
    """
    saved = SaveLoweredTIR()
    before = PassContext.current()
    with PassContext(
        opt_level=before.opt_level,
        required_pass=before.required_pass,
        disabled_pass=before.disabled_pass,
        instruments=[*before.instruments, saved],
        config=before.config,
    ):
        named = dict(params) if isinstance(params, Mapping) else None
        executable = vm.compile(mod, target=target, params=named)
    program = executable if remote is None else x86.loaded_there(executable.mod, remote)
    machine = profiler_vm.VirtualMachineProfiler(program, dev)
    report = machine.profile(*_inputs_of(mod, params, dev), func_name="main")
    return roofline_from_existing(report, saved.functions, target, dev, remote)


def roofline_from_existing(
    report: Report,
    tir_functions: Mapping[GlobalVar, PrimFunc],
    target: str | Target,
    dev: Device,
    remote: Any = None,
) -> Report:
    """A report with what each kernel reaches of the machine's roof.

    Parameters
    ----------
    report : Report
        What a profiling executor returned.
    tir_functions : dict of GlobalVar to PrimFunc
        The kernels, as :class:`SaveLoweredTIR` keeps them; they are found by their names.
    target : Target
        What they were compiled for.
    dev : Device
        Where they ran.
    remote : RPCSession, optional
        The device's machine; by default this one.
    """
    target = target if isinstance(target, Target) else Target(target)
    roof = _roof_of(target, dev, remote)
    flops = {name.name_hint: _flops_of(func) for name, func in tir_functions.items()}
    calls = [
        {**call, **_comparison(call, known, roof)}
        if (known := flops.get(str(call["Name"])))
        else call
        for call in report.calls
    ]
    configuration: dict[str, Metric] = {
        **report.configuration,
        "Estimated Peak FLOP/s (float32 FMA)": Ratio(roof.flops),
        "Estimated Peak Bandwidth (DRAM, byte/second)": Ratio(roof.bandwidth),
    }
    return Report(calls, report.device_metrics, configuration)


def _roof_of(target: Target, dev: Device, remote: Any) -> _Roof:
    if target.kind.name == "cuda":
        return _Roof(
            cuda.estimate_peak_flops_fma(target, dev, remote),
            cuda.estimate_peak_bandwidth_global_mem(target, dev, remote),
        )
    return _Roof(
        x86.estimate_peak_fma_vector_flops(target, dev, remote),
        x86.estimate_peak_bandwidth_dram(target, dev, remote),
    )


def _inputs_of(mod: IRModule, params: Any, dev: Device) -> list[Any]:
    """The given values, and random ones for other parameters."""
    named = params if isinstance(params, Mapping) else {}
    first = list(params) if isinstance(params, Sequence) else []
    arrays = [nd.array(value, dev) for value in first]
    for param in mod["main"].params[len(first) :]:
        if param.name_hint in named:
            continue
        shape = [int(dim) for dim in param.type_annotation.shape]
        values = np.random.uniform(size=shape).astype(param.type_annotation.dtype)
        arrays.append(nd.array(values, dev))
    return arrays


def _flops_of(func: PrimFunc) -> float | None:
    """The operations of a kernel; None if its arrays have open extents."""
    extents = [extent for buffer in func.buffer_map.values() for extent in buffer.shape]
    is_open = any([not isinstance(extent, IntImm) for extent in extents])
    return None if is_open else estimate_tir_flops(func)


def _comparison(call: Mapping[str, Metric], flops: float, roof: _Roof) -> dict[str, Metric]:
    duration = call["Duration (us)"]
    assert isinstance(duration, Duration)
    seconds = max(duration.value, 1e-3) / 1e6
    size = _bytes_of(str(call["Argument Shapes"]))
    of_flops, of_memory = flops / roof.flops, size / roof.bandwidth
    return {
        "Estimated FLOPs": Count(int(flops)),
        "FLOP/s": Ratio(flops / seconds),
        "Arithmetic Intensity": Ratio(flops / max(size, 1)),
        "Bandwidth (B/s)": Ratio(size / seconds),
        "Bound": "compute" if of_flops > of_memory else "memory",
        "Percent of Theoretical Optimal": Ratio(100 * max(of_flops, of_memory) / seconds),
    }


def _bytes_of(shapes: str) -> int:
    """The size of arguments such as ``float32[16, 128], int8[4]``."""
    total = 0
    for kind, extents in _ARGUMENT.findall(shapes):
        count = int(np.prod([int(extent) for extent in extents.split(",") if extent.strip()]))
        total += count * max(as_dtype(kind).bits // 8, 1)
    return total
