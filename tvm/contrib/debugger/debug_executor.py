"""Run a compiled model node by node: times, intermediate results, dumps.

module = debug_executor.create(lib.get_graph_json(), lib.get_lib(), tvm.cpu())
module.run(data=image)
print(module.profile(data=image))
"""

from __future__ import annotations

import shutil
import struct
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tvm._ffi.runtime_ctypes import Device
from tvm.contrib import graph_executor
from tvm.contrib.debugger.debug_result import DebugResult
from tvm.runtime.benchmark import BenchmarkResult
from tvm.runtime.module import Module
from tvm.runtime.ndarray import NDArray
from tvm.runtime.profiling import MetricCollector, Report
from tvm.runtime.remote import global_function_beside, own_device_type


def create(
    graph_json_str: str,
    libmod: Module,
    device: Device | Sequence[Device],
    dump_root: str | None = None,
) -> GraphModuleDebug:
    """A debugging executor of a graph.

    Parameters
    ----------
    graph_json_str : str
        The graph.
    libmod : Module
        The library with its functions.
    device : Device or list of Device
        Where it runs.
    dump_root : str, optional
        The folder for what :meth:`GraphModuleDebug.run` writes; a temporary one by default.
    """
    if not isinstance(graph_json_str, str):
        raise ValueError(
            f"create needs the graph as JSON text, got {type(graph_json_str).__name__}"
        )
    native = getattr(libmod, "module", libmod)
    devices, flat = graph_executor.get_device(native, device)
    make = global_function_beside(native, "tvm.graph_executor_debug.create")
    return GraphModuleDebug(make(graph_json_str, native, *flat), devices, graph_json_str, dump_root)


class GraphModuleDebug(graph_executor.GraphModule):
    """A model whose nodes run one by one; each tensor keeps its memory.

    Parameters
    ----------
    module : Module
        What ``lib["debug_create"]("default", device)`` returns.
    device : list of Device
        Where it runs.
    graph_json_str : str
        The graph.
    dump_root : str, optional
        The folder for dumps.
    """

    def __init__(
        self,
        module: Module,
        device: Device | Sequence[Device],
        graph_json_str: str,
        dump_root: str | None = None,
    ) -> None:
        super().__init__(module)
        self._devices = [device] if isinstance(device, Device) else list(device)
        self._temporary = None if dump_root else tempfile.mkdtemp(prefix="tvmdbg_")
        folder = Path(dump_root or self._temporary or "")
        first = self._devices[0]
        kind = Device.DEVICE_TYPE_TO_NAME[own_device_type(first)].upper()
        self._dump_path = folder / f"_tvmdbg_device_{kind}_{first.device_id}"
        self.debug_datum = DebugResult(graph_json_str, str(self._dump_path))
        self._execute_node = module["execute_node"]
        self._get_node_output = module["get_node_output"]
        self._next = 0

    @property
    def _nodes(self) -> list[dict[str, Any]]:
        return self.debug_datum.get_graph_nodes()

    def run(
        self,
        number: int = 10,
        repeat: int = 1,
        min_repeat_ms: int = 1,
        limit_zero_time_iterations: int = 100,
        cooldown_interval_ms: int = 0,
        repeats_to_cooldown: int = 1,
        sort_by_time: bool = True,
        **input_dict: Any,
    ) -> None:
        """Run and measure each node; print a table, write graph, tensors and times to the dump folder.

        Parameters
        ----------
        number, repeat, min_repeat_ms, limit_zero_time_iterations, cooldown_interval_ms,
        repeats_to_cooldown : int
            As for :meth:`Module.time_evaluator`.
        sort_by_time : bool
            Begin the table with the slowest node.
        input_dict : dict
            Inputs by name.
        """
        if input_dict:
            self.set_input(**input_dict)
        self.debug_datum.times = self.run_individual(
            number, repeat, min_repeat_ms, limit_zero_time_iterations, cooldown_interval_ms,
            repeats_to_cooldown,
        )  # fmt: skip
        count = self.debug_datum.get_graph_node_output_num
        tensors = [
            self.get_node_output(i, k)
            for i, node in enumerate(self._nodes)
            for k in range(count(node))
        ]
        self.debug_datum.update_output_tensors(tensors)
        self.debug_datum.dump_output_tensor()
        self.debug_datum.dump_chrome_trace()
        self.debug_datum.display_debug_result(sort_by_time)

    def run_individual(
        self,
        number: int,
        repeat: int = 1,
        min_repeat_ms: int = 0,
        limit_zero_time_iterations: int = 100,
        cooldown_interval_ms: int = 0,
        repeats_to_cooldown: int = 1,
    ) -> list[list[float]]:
        """Measure each node in order: seconds a call, for each repeat. Inputs take none."""
        blob = self.module["run_individual"](
            number, repeat, min_repeat_ms, limit_zero_time_iterations, cooldown_interval_ms,
            repeats_to_cooldown,
        )  # fmt: skip
        (count,) = struct.unpack_from("@q", blob)
        seconds = struct.unpack_from(f"@{count * repeat}d", blob, struct.calcsize("@q"))
        return [list(seconds[i * repeat : (i + 1) * repeat]) for i in range(count)]

    def run_individual_node(
        self,
        index: int,
        number: int = 10,
        repeat: int = 1,
        min_repeat_ms: int = 0,
        limit_zero_time_iterations: int = 100,
        cooldown_interval_ms: int = 0,
        repeats_to_cooldown: int = 1,
    ) -> BenchmarkResult:
        """Measure one node with what its inputs hold now."""
        blob = self.module["run_individual_node"](
            index, number, repeat, min_repeat_ms, limit_zero_time_iterations,
            cooldown_interval_ms, repeats_to_cooldown,
        )  # fmt: skip
        return BenchmarkResult(struct.unpack(f"@{repeat}d", blob))

    def execute_node(self, index: int) -> None:
        """Run one node with what its inputs hold now."""
        self._execute_node(index)

    def execute_next_node(self) -> int:
        """Run the node after the one that this ran before, from the first again at the end; its index."""
        index = self._next
        self._execute_node(index)
        self._next = (index + 1) % len(self._nodes)
        return index

    def get_node_output(self, index: int, out_index: int = 0) -> NDArray:
        """A node's output as it is now."""
        array: NDArray = self._get_node_output(index, out_index)
        return array

    def debug_get_output(  # type: ignore[override]  # the plain executor has none to return
        self, node: str | int, out: NDArray | None = None
    ) -> NDArray:
        """Run all nodes up to this one and return its output.

        Parameters
        ----------
        node : int or str
            The node's index or name.
        out : NDArray, optional
            Where to copy the output.
        """
        if isinstance(node, str):
            names = [each["name"] for each in self._nodes]
            if node not in names:
                raise AttributeError(f"could not find a node named {node!r} in this graph")
            node = names.index(node)
        if not isinstance(node, int):
            raise RuntimeError(
                f"debug_get_output needs a node's index or name, got {type(node).__name__}"
            )
        get = self.module["debug_get_output"]
        if out is None:
            array: NDArray = get(node)
            return array
        get(node, out)
        return out

    def profile(
        self, collectors: Sequence[MetricCollector] | None = None, **input_dict: Any
    ) -> Report:
        """Run the model once warm; the time of each operator.

        Parameters
        ----------
        collectors : list of MetricCollector, optional
            What else to measure around each operator.
        input_dict : dict
            Inputs by name.
        """
        if input_dict:
            self.set_input(**input_dict)
        if self._host is not None:
            if collectors:
                raise ValueError("collectors measure on their own machine: a remote model has none")
            return Report.from_json(self.module["profile_rpc"]())
        found: Report = self.module["profile"](collectors or [])
        return found

    def exit(self) -> None:
        """Delete the dump folder, if it is temporary."""
        if self._temporary:
            shutil.rmtree(self._temporary, ignore_errors=True)
