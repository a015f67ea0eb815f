"""Compiled models that are loaded, on each of the executors."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from tvm._ffi.runtime_ctypes import Device
from tvm.contrib import graph_executor
from tvm.contrib.debugger import debug_executor
from tvm.driver.tvmc.errors import TVMCException, similar_or_all
from tvm.driver.tvmc.inputs import (
    Arrays,
    Shapes,
    check_shapes,
    checked_input,
    completed,
    generate_tensor_data,
    make_inputs_dict,
)
from tvm.driver.tvmc.model import TVMCPackage
from tvm.runtime.benchmark import BenchmarkResult
from tvm.runtime.executor.aot_executor import AotModule
from tvm.runtime.module import Module
from tvm.runtime.ndarray import NDArray, array
from tvm.runtime.profiler_vm import VirtualMachineProfiler
from tvm.runtime.remote import global_function_beside, own_type_key
from tvm.runtime.vm import Executable, VirtualMachine

# which session runs the module of a library that is a whole model
FACTORIES = {"GraphExecutorFactory": "graph", "AotExecutorFactory": "aot", "VMExecutable": "vm"}


def _module_name(lib: Module) -> str:
    """The name of a factory's only model, also of one on another machine."""
    item = global_function_beside(lib, "runtime.ArrayGetItem")
    return str(item(lib["list_module_names"](), 0))


class GraphSession:
    """A model on the graph executor."""

    kind = "graph"

    def __init__(self, package: TVMCPackage, lib: Module, device: Device, profile: bool) -> None:
        self.device = device
        is_whole = own_type_key(lib) in FACTORIES
        self._graph = str(lib["get_graph_json"]() if is_whole else package.graph)
        self.executor = self._created(package, lib, profile)
        self.inputs: Arrays = {}

    def _created(
        self, package: TVMCPackage, lib: Module, profile: bool
    ) -> graph_executor.GraphModule:
        executor = self._without_parameters(package, lib, profile)
        if package.params:
            executor.load_params(package.params)
        return executor

    def _without_parameters(
        self, package: TVMCPackage, lib: Module, profile: bool
    ) -> graph_executor.GraphModule:
        if own_type_key(lib) not in FACTORIES:
            create = debug_executor.create if profile else graph_executor.create
            return create(str(package.graph), lib, self.device)
        name = _module_name(lib)
        if not profile:
            return graph_executor.GraphModule(lib[name](self.device))
        debugger = lib["debug_create"](name, self.device)
        return debug_executor.GraphModuleDebug(debugger, self.device, lib["get_graph_json"]())

    def set_inputs(self, given: Mapping[str, Any] | None, fill_mode: str, asked: Shapes) -> None:
        """Set all inputs."""
        shapes, dtypes = self.executor.get_input_info()
        names = json.loads(self.executor["get_unset_inputs_json"]())
        known = {name: list(shapes[name]) for name in names}
        check_shapes(asked, known)
        self.inputs = make_inputs_dict(known, dtypes, given, fill_mode)
        for name, value in self.inputs.items():
            self.executor.set_input(name, value)

    def run(self) -> None:
        """Run once."""
        self.executor.module["run"]()

    def profile(self) -> Any:
        """The times of all operators."""
        assert isinstance(self.executor, debug_executor.GraphModuleDebug)
        return self.executor.profile()

    def measure(self, repeat: int, number: int, end_to_end: bool) -> BenchmarkResult:
        """How long it takes."""
        inputs: dict[str, Any] = self.inputs if end_to_end else {}
        return self.executor.benchmark(
            self.device, repeat=repeat, number=number, end_to_end=end_to_end, **inputs
        )

    def outputs(self) -> list[NDArray]:
        """What the last run gave."""
        return [self.executor.get_output(i) for i in range(self.executor.get_num_outputs())]

    def output_names(self) -> list[str]:
        """The names that the imported model gave its outputs; none if they are not known."""
        return list(json.loads(self._graph).get("metadata", {}).get("output_names", []))


class AotSession:
    """A model on the AOT executor."""

    kind = "aot"

    def __init__(self, package: TVMCPackage, lib: Module, device: Device, profile: bool) -> None:
        if profile:
            raise TVMCException(
                "a model for the AOT executor is one function, its operators cannot be measured: "
                "compile with --executor graph"
            )
        self.device = device
        self.executor = AotModule(lib[_module_name(lib)](device))
        self.inputs: Arrays = {}

    def set_inputs(self, given: Mapping[str, Any] | None, fill_mode: str, asked: Shapes) -> None:
        """Set all inputs."""
        shapes, dtypes = self.executor.get_input_info()
        check_shapes(asked, shapes)
        self.inputs = make_inputs_dict(shapes, dtypes, given, fill_mode)
        for name, value in self.inputs.items():
            self.executor.set_input(name, value)

    def run(self) -> None:
        """Run once."""
        self.executor.run()

    def profile(self) -> Any:
        """The times of operators, which there are not."""
        raise NotImplementedError

    def measure(self, repeat: int, number: int, end_to_end: bool) -> BenchmarkResult:
        """How long it takes."""
        if end_to_end:
            raise TVMCException("the AOT executor measures runs only: leave --end-to-end out")
        return self.executor.benchmark(self.device, repeat=repeat, number=number)

    def outputs(self) -> list[NDArray]:
        """What the last run gave."""
        return [self.executor.get_output(i) for i in range(self.executor.get_num_outputs())]

    def output_names(self) -> list[str]:
        """The names of the outputs."""
        count = self.executor.get_num_outputs()
        return [self.executor.get_output_name(i) for i in range(count)]


class VMSession:
    """A model on the virtual machine."""

    kind = "vm"

    def __init__(self, package: TVMCPackage, lib: Module, device: Device, profile: bool) -> None:
        create = VirtualMachineProfiler if profile else VirtualMachine
        self.device = device
        is_whole = own_type_key(lib) in FACTORIES
        self.executable = (
            Executable(lib) if is_whole else Executable.load_exec(bytes(package.code or b""), lib)
        )
        self.shapes, self.dtypes = self.executable.get_input_info()
        self.machine = create(self.executable, device)
        self.inputs: Arrays = {}
        self._arguments: list[NDArray] = []  # in the order of the parameters

    def set_inputs(self, given: Mapping[str, Any] | None, fill_mode: str, asked: Shapes) -> None:
        """Set all inputs; open dimensions of those that are not given are as asked for, or 1."""
        names = self.executable.get_function_params("main")
        found = dict(given or {})
        for name in (*found, *asked):
            if name not in names:
                raise TVMCException(
                    f"the model has no input {name!r}: {similar_or_all(name, names)}"
                )
        told = [name for name in (*found, *asked) if self._is_open(name)]
        self.inputs = {
            name: self._given(name, found[name])
            if name in found
            else self._filled(name, fill_mode, asked.get(name), told)
            for name in names
        }
        self._arguments = [array(value) for value in self.inputs.values()]

    def _is_open(self, name: str) -> bool:
        return None in self.shapes.get(name, ())

    def _given(self, name: str, value: Any) -> np.ndarray[Any, Any]:
        found = np.asarray(value)
        if name not in self.shapes:
            return found
        dims = completed(self.shapes[name], found.shape)
        return checked_input(name, found, dims, self.dtypes[name])

    def _filled(
        self, name: str, fill_mode: str, asked: Sequence[int] | None, told: Sequence[str]
    ) -> np.ndarray[Any, Any]:
        if name not in self.shapes:
            raise TVMCException(
                f"the model does not tell the type of its input {name!r}, which requires a value: "
                f"--inputs in.npz from np.savez('in.npz', {name}=array)"
            )
        dims, dtype = self.shapes[name], self.dtypes[name]
        text = ", ".join(["?" if dim is None else str(dim) for dim in dims])
        if asked is None and told and self._is_open(name):
            # ones would fit many shapes, and mean something else
            raise TVMCException(
                f"the input {name!r} of {dtype}[{text}] requires a shape as {told[0]!r} has one: "
                f'--input-shapes "{name}:[...]"'
            )
        shape = completed(dims, asked if asked is not None else [1] * len(dims))
        if asked is not None and list(asked) != shape:
            raise TVMCException(f"the input {name!r} is {dtype}[{text}], got the shape {asked}")
        return generate_tensor_data(shape, dtype, fill_mode)

    def run(self) -> None:
        """Run once."""
        self.machine.invoke_stateful("main", *self._arguments)

    def profile(self) -> Any:
        """The times of all kernels."""
        assert isinstance(self.machine, VirtualMachineProfiler)
        return self.machine.profile(*self._arguments)

    def measure(self, repeat: int, number: int, end_to_end: bool) -> BenchmarkResult:
        """How long it takes; the outputs are those of one more run."""
        times = self.machine.benchmark(
            self.device, *self._arguments, repeat=repeat, number=number, end_to_end=end_to_end
        )
        self.run()
        return times

    def outputs(self) -> list[NDArray]:
        """What the last run gave."""
        return self.machine.get_outputs()

    def output_names(self) -> list[str]:
        """The names that the imported model gave its outputs; none if they are not known."""
        return self.executable.get_output_names()


Session: TypeAlias = GraphSession | AotSession | VMSession
SESSIONS: dict[str, type[Session]] = {
    "graph": GraphSession,
    "aot": AotSession,
    "vm": VMSession,
}
