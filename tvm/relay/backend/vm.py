"""The compiler for the virtual machine: `relay.vm.compile`.

optimise the graph -> fuse -> A-normal form -> global functions only -> explicit memory -> code
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from tvm._ffi import get_global_func
from tvm._ffi.runtime_ctypes import Device
from tvm.codegen.llvm.parts import INDEPENDENT_FUNCTIONS
from tvm.error import TVMError
from tvm.ir.module import IRModule
from tvm.ir.structural import structural_hash
from tvm.ir.transform import Sequential
from tvm.relay.analysis.symbolic import (
    DimensionPool,
    SymbolicKernel,
    is_dynamic_kernel,
    symbolic_kernel,
)
from tvm.relay.backend.executors import Executor, as_array
from tvm.relay.backend.external import ExternalCode, outline_external
from tvm.relay.backend.kernels import KernelCompiler, build_kernels
from tvm.relay.backend.machines import Machines
from tvm.relay.backend.shape_function import ShapeFunctions
from tvm.relay.backend.summary import report
from tvm.relay.backend.target_hooks import external_targets
from tvm.relay.backend.vm_codegen import FunctionCompiler, Tables, VMFunction, flat_code
from tvm.relay.function import Function, is_external_function, output_names, relay_functions
from tvm.relay.pipeline import memory_passes, vm_optimization
from tvm.relay.program import Params, as_module
from tvm.relay.transform.common import map_relay_functions
from tvm.relay.ty import TensorType, leaf_types, plain_dims
from tvm.runtime.module import Module
from tvm.runtime.ndarray import NDArray
from tvm.runtime.vm import Executable, VirtualMachine
from tvm.support.scope import compiling


def compile(
    mod: IRModule | Function,
    target: Any = None,
    target_host: Any = None,
    params: Params | None = None,
) -> Executable:
    """Compile a module for the virtual machine.

    Parameters
    ----------
    mod : the module; `main` is its entry, and its other functions can be invoked too.
    target : the machine; by default the current target.
    target_host : the machine of the host code, if it is another one.
    params : values of parameters of `main`, by name.
    """
    compiler = VMCompiler()
    if params:
        compiler.set_params(params)
    compiler.lower(mod, target, target_host)
    compiler.codegen()
    return compiler.get_exec()


class VMCompiler:
    """The steps of :func:`compile`, one by one."""

    def __init__(self) -> None:
        self._params: dict[str, Any] = {}
        self._lowered: _Lowered | None = None
        self._executable: Executable | None = None

    def set_params(self, params: Params) -> None:
        """Set values of parameters of `main`, by name."""
        self._params = dict(params)

    def get_params(self) -> dict[str, NDArray]:
        """The values that were set, and the constants that other compilers' code asks for."""
        given = {name: as_array(value) for name, value in self._params.items()}
        return given if self._lowered is None else {**given, **self._lowered.external.claimed}

    def optimize(
        self,
        mod: IRModule | Function,
        target: Any = None,
        target_host: Any = None,
        params: Params | None = None,
    ) -> tuple[IRModule, dict[str, NDArray]]:
        """Run the passes only; the module, and the parameters that are not inside of it.

        Functions have the attribute `hash`, which is equal for those of the same structure.
        """
        if params:
            self.set_params(params)
        optimized = _optimized(mod, self._params, Machines.of(target, target_host))
        return map_relay_functions(optimized, _labelled), {}

    def lower(self, mod: IRModule | Function, target: Any = None, target_host: Any = None) -> None:
        """Optimise a module, and find its instructions and kernels."""
        machines = Machines.of(target, target_host)
        optimized = _optimized(mod, self._params, machines)
        with compiling(), external_targets(target):
            self._lowered = _Lowered(optimized, machines)
        self._executable = None

    def codegen(self) -> None:
        """Compile the kernels."""
        if self._lowered is None:
            raise TVMError("nothing was lowered yet: call lower first")
        with compiling():
            self._executable = self._lowered.executable()

    def get_exec(self) -> Executable:
        """The program."""
        if self._executable is None:
            raise TVMError("nothing was compiled yet: call lower and codegen first")
        return self._executable


def _labelled(func: Function) -> Function:
    return func.with_attr("hash", f"{structural_hash(func):x}")


def _optimized(mod: IRModule | Function, params: Params, machines: Machines) -> IRModule:
    with compiling(), machines.main:
        copied = machines.copied(outline_external(as_module(mod, params)))
        module = Sequential(vm_optimization(copied), name="relay.vm")(copied)
        module = machines.assigned(module, copied)
        for lower in memory_passes():  # at every optimisation level
            module = lower(module)
        return module


class _Lowered:
    """The instructions of a module, and the loops of its kernels."""

    def __init__(self, mod: IRModule, machines: Machines) -> None:
        self.mod = mod
        self.target = target = machines.main
        host = machines.config.host_virtual_device.target
        self.host = target if host is None or target.get_target_device_type() == 1 else host
        self.compiler = KernelCompiler(target, prefix="vm_mod_")
        self.pool = DimensionPool()
        self._names: dict[int, str] = {}
        self._symbolic: dict[str, SymbolicKernel] = {}
        self.shape_functions = ShapeFunctions(self.host)
        functions = {
            gvar.name_hint: func
            for gvar, func in relay_functions(mod).items()
            if not is_external_function(func)
        }
        numbers = {name: i for i, name in enumerate(functions)}
        place = target.get_target_device_type(), 0
        self.tables = Tables(mod, numbers, self._kernel_name, self._shape_name, [place])
        self.external = ExternalCode.of(mod, target)
        self.functions: list[VMFunction] = [
            FunctionCompiler(self.tables).run(name, func) for name, func in functions.items()
        ]
        self.signatures = [_signature(func) for func in functions.values()]
        report(self.compiler.kernels, target)

    def _kernel_name(self, func: Function) -> str:
        name = self._names.get(id(func))
        if name is None:
            if is_dynamic_kernel(func):
                symbolic = symbolic_kernel(func, self.pool)
                name = self.compiler.lower(symbolic.func).name
                self._symbolic.setdefault(name, symbolic)
            else:
                name = self.compiler.lower(func).name
            self._names[id(func)] = name
        return name

    def _shape_name(self, func: Function) -> str:
        if func.attrs.get("relay.reshape_only") or func.attrs.get("Compiler"):
            symbolic = symbolic_kernel(func, self.pool)
            kernel = f"other{len(self.shape_functions.functions)}"
        else:
            kernel = self._kernel_name(func)
            symbolic = self._symbolic[kernel]
        return self.shape_functions.name_of(symbolic, f"shape_func_{kernel}")

    def executable(self) -> Executable:
        """The program with its library."""
        kernels, elsewhere = self.compiler.module(), self.compiler.elsewhere()
        for name, func in self.shape_functions.functions.items():
            own = (
                kernels if self.host is self.target else elsewhere.setdefault(self.host, IRModule())
            )
            own[name] = func
        kernels = kernels.with_attrs({INDEPENDENT_FUNCTIONS: True})
        lib = self.external.link(build_kernels(kernels, self.target, elsewhere))
        return Executable(self._native(lib))

    def _native(self, lib: Module) -> Module:
        tables = self.tables
        host = tables.device_index(1)
        hashes = {kernel.name: f"{kernel.digest:016x}" for kernel in self.compiler.kernels}
        attrs = [{"hash": hashes[name]} if name in hashes else {} for name in tables.kernels]
        for number, func in enumerate(self.functions):
            for place, sources in func.sources.items():
                attrs[func.code[place][1][0]][f"sources {number} {place}"] = sources
        description = {
            "devices": tables.devices,
            "host_device": host,
            "kernels": list(tables.kernels),
            "kernel_attrs": attrs,
            "constant_devices": tables.constant_devices,
            "functions": [
                {
                    "name": f.name,
                    "params": f.params,
                    "param_devices": f.param_devices,
                    "registers": f.registers,
                    "count": len(f.code),
                    "signature": signature,
                }
                for f, signature in zip(self.functions, self.signatures, strict=True)
            ],
        }
        create = get_global_func("vm.CreateExecutable")
        module: Module = create(
            lib, json.dumps(description), flat_code(self.functions), *tables.constants
        )
        return module


def _signature(func: Function) -> str:
    """What :meth:`Executable.get_input_info` and :meth:`Executable.get_output_names` tell, in JSON."""
    inputs = {
        param.name_hint: (plain_dims(param.type_annotation), str(param.type_annotation.dtype))
        for param in func.params
        if isinstance(param.type_annotation, TensorType)
    }
    count = 0 if func.ret_type is None else len(leaf_types(func.ret_type))
    return json.dumps({"inputs": inputs, "outputs": output_names(func, count)})


class VMExecutor(Executor):
    """Compiles functions for the virtual machine and calls them.

    Parameters
    ----------
    mod : the module with the functions that expressions may call.
    device, target : where to run.
    """

    def __init__(self, mod: IRModule, device: Device, target: Any) -> None:
        self.mod = mod
        self.device = device
        self.target = target
        self.executable: Executable | None = None
        self.vm: VirtualMachine | None = None

    def _make_executor(self, func: Function) -> Callable[..., Any]:
        mod = self.mod.with_functions(self.mod.functions).clone()
        mod["main"] = func
        self.executable = compile(mod, self.target)
        machine = self.vm = VirtualMachine(self.executable, self.device)

        def run(*args: Any) -> Any:
            return machine.run(*args)

        return run
