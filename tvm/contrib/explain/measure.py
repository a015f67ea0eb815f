"""How long each call takes, measured by the debug executor, and what the machine could do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tvm._ffi.runtime_ctypes import Device
from tvm.contrib.debugger import debug_executor
from tvm.error import TVMError
from tvm.relay.backend.executor_factory import GraphExecutorFactoryModule
from tvm.relay.backend.graph import NOP, TensorInfo
from tvm.relay.backend.lowering import LoweredModel
from tvm.runtime.device import cpu
from tvm.runtime.device import device as find_device
from tvm.runtime.module import num_threads
from tvm.support.dtype import dtype as as_dtype
from tvm.target import Target
from tvm.target.cpu import cpu_info
from tvm.target.triple import runs_here
from tvm.utils.roofline.roof import Roof, measured_roof

from .record import Graph, Kernel, Machine

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


def call_seconds(
    factory: GraphExecutorFactoryModule,
    model: LoweredModel,
    dev: Device,
    inputs: Mapping[str, Any],
    repeat: int,
) -> dict[int, float]:
    """The shortest time of each call in several runs, by the node of the execution graph."""
    module = debug_executor.create(factory.get_graph_json(), factory.lib, dev)
    given = {**factory.get_params(), **random_inputs(model), **inputs}
    for key, value in given.items():
        module.set_input(key, value)
    runs = [
        [call["Duration (us)"].value / 1e6 for call in module.profile().calls]  # type: ignore[union-attr]
        for _ in range(repeat)
    ]
    module.exit()
    calls = [i for i, n in enumerate(model.graph.graph.nodes) if not n.is_input and n.func != NOP]
    return dict(zip(calls, np.min(runs, axis=0).tolist(), strict=True))


def random_inputs(model: LoweredModel) -> dict[str, Any]:
    """Values for the inputs that are no constants, the same ones each time."""
    random = np.random.default_rng(0)
    found: dict[str, Any] = {}
    for node in model.graph.graph.nodes:
        if node.is_input and node.name not in model.graph.params:
            found[node.name] = _random_array(node.outputs[0], random)
    return found


def _random_array(info: TensorInfo, random: np.random.Generator) -> Any:
    dtype = as_dtype(str(info.dtype)).numpy
    if np.dtype(dtype).kind in "iub":
        return random.integers(0, _INTEGERS, info.shape).astype(dtype)
    return random.normal(size=info.shape).astype(dtype)


def enter_times(
    kernels: Sequence[Kernel],
    built: Graph,
    index: Sequence[int],
    model: LoweredModel,
    seconds: Mapping[int, float],
    roof: Roof | None,
) -> None:
    """Tell calls and kernels their times, bytes and roofs."""
    graph = model.graph.graph
    for number, source in enumerate(graph.nodes):
        if source.is_input or source.func == NOP:
            continue
        node = built.nodes[index[number]]
        node.seconds = seconds.get(number, 0.0)
        if node.kernel < 0:
            continue
        kernel = kernels[node.kernel]
        kernel.calls += 1
        kernel.seconds += node.seconds
        kernel.nodes.append(index[number])
        read = sum([graph.info(ref).nbytes for ref in source.inputs])
        kernel.bytes = float(read + sum([info.nbytes for info in source.outputs]))
    for kernel in kernels:
        if roof is not None:
            kernel.roof_seconds = roof.seconds(kernel.flops, kernel.bytes)
            kernel.bound = roof.bound(kernel.flops, kernel.bytes)
