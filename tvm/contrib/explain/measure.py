"""What the machine could do, what it is given, and what calls and kernels took."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tvm._ffi.runtime_ctypes import Device
from tvm.error import TVMError
from tvm.runtime.device import cpu
from tvm.runtime.device import device as find_device
from tvm.runtime.module import num_threads
from tvm.support.dtype import dtype as as_dtype
from tvm.target import Target
from tvm.target.cpu import cpu_info
from tvm.target.triple import runs_here
from tvm.utils.roofline.roof import Roof, measured_roof

from .program import Program
from .record import Kernel, Machine, Tensor

_INTEGERS = 2  # random integers lie below: they are indices of most tables


def device_of(target: Target) -> Device | str:
    """Where code for a target runs here, or why it cannot."""
    if target.kind.name == "llvm":
        triple = cpu_info(target).triple
        if not runs_here(triple):
            return f"kernels were not measured: they are for {triple}, which is not this machine"
        return find_device("cpu")
    if target.kind.device_type == cpu().device_type:
        return f"kernels of target {target.kind} are measured where their text is compiled"
    try:
        dev = find_device(target.kind.name)
    except (TVMError, ValueError) as error:
        return f"kernels were not measured: {error}"
    return (
        dev if dev.exist else f"kernels were not measured: there is no device of {target.kind.name}"
    )


def describe_machine(target: Target, dev: Device | str) -> tuple[Machine, Roof | None]:
    """The machine's name and peaks."""
    if isinstance(dev, str):
        return Machine(target.kind.name, note=dev), None
    if target.kind.name != "llvm":
        note = "the peaks of this device are not measured, so that there is no roof"
        return Machine(str(dev.device_name or target.kind.name), threads=0, note=note), None
    info = cpu_info(target)
    name = f"{info.name} ({info.arch})"
    roof = measured_roof(target, dev)
    if roof is None:
        return Machine(name, note="kernels were not measured: this processor lacks features"), None
    return Machine(name, roof.flops, roof.bandwidth, num_threads()), roof


def random_arrays(tensors: Mapping[str, Tensor]) -> dict[str, Any]:
    """Values for inputs, the same ones each time."""
    random = np.random.default_rng(0)
    return {name: _random_array(tensor, random) for name, tensor in tensors.items()}


def _random_array(tensor: Tensor, random: np.random.Generator) -> Any:
    dtype = as_dtype(tensor.dtype).numpy
    if np.dtype(dtype).kind in "iub":
        return random.integers(0, _INTEGERS, tensor.shape).astype(dtype)
    return random.normal(size=tensor.shape).astype(dtype)


def enter_times(
    kernels: Sequence[Kernel], program: Program, seconds: Mapping[int, float], roof: Roof | None
) -> None:
    """Tell calls and kernels their times, bytes and roofs."""
    for number, node in enumerate(program.built.nodes):
        node.seconds = seconds.get(number, 0.0)
        if node.kernel < 0:
            continue
        kernel = kernels[node.kernel]
        kernel.calls += 1
        kernel.seconds += node.seconds
        kernel.nodes.append(number)
        kernel.bytes = float(program.traffic[number])
    for kernel in kernels:
        if roof is not None:
            kernel.roof_seconds = roof.seconds(kernel.flops, kernel.bytes)
            kernel.bound = roof.bound(kernel.flops, kernel.bytes)
