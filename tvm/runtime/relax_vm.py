"""Relax's virtual machine: compiled programs with symbolic shapes, control flow and closures.

executable = relax.build(mod, target="llvm")
vm = VirtualMachine(executable, tvm.cpu())
result = vm["main"](data)

executable.export_library("model.so")                    # runs without Python, too
vm = VirtualMachine(tvm.runtime.load_module("model.so"), tvm.cpu())
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import IntEnum
from pathlib import Path
from typing import Any

import numpy as np

from tvm._ffi.runtime_ctypes import Device
from tvm.runtime.benchmark import BenchmarkResult
from tvm.runtime.executable import Executable as _Executable
from tvm.runtime.module import Module
from tvm.runtime.ndarray import NDArray, array
from tvm.runtime.object import Object
from tvm.runtime.packed_func import PackedFunc
from tvm.runtime.profiling import Report
from tvm.runtime.remote import on_machine_of, own_device_type, own_type_key, remote_host
from tvm.runtime.vm_devices import ALLOCATORS, as_devices, with_allocators


class VMInstrumentReturnKind(IntEnum):
    """What an instrument wants done with the call that it was shown."""

    NO_OP = 0
    SKIP_RUN = 1


class Executable(_Executable):
    """A compiled program: functions, constants and the library with the kernels.

    Parameters
    ----------
    mod : Module
        The native executable, as :func:`tvm.relax.build` makes it.
    """

    def __getitem__(self, name: str) -> PackedFunc:
        return self.mod[name]

    def stats(self) -> str:
        """How many constants and functions there are, and which."""
        return str(self.mod["stats"]())

    def as_text(self) -> str:
        """The instructions of all functions."""
        return str(self.mod["as_text"]())

    def as_python(self) -> str:
        """The program of :class:`tvm.relax.ExecBuilder` calls that makes this executable."""
        return str(self.mod["as_python"]())

    def save_to_file(self, path: str | Path) -> None:
        """Write functions and constants, without the library, to a file.

        Parameters
        ----------
        path : str
            The file, which ``tvm.runtime.load_module(path, "relax.Executable")`` reads.
        """
        self.mod["save_to_file"](str(path))


def is_relax_program(value: Any) -> bool:
    """Whether a value is an executable of relax."""
    if isinstance(value, Module):
        return own_type_key(value) == "relax.Executable"
    return isinstance(value, Executable)


class VirtualMachine:
    """Runs an executable, one run at a time; threads wait for each other.

    Parameters
    ----------
    rt_mod : Executable or Module
        The program.
    device : Device or list of Device
        Where it runs.
    memory_cfg : str or dict of Device to str, optional
        "pooled" (the default) keeps freed memory for the next tensors, "naive" does not.
    profile : bool
        Whether :meth:`profile` is wanted.
    """

    NAIVE_ALLOCATOR = ALLOCATORS["naive"]
    POOLED_ALLOCATOR = ALLOCATORS["pooled"]

    def __init__(
        self,
        rt_mod: Executable | Module,
        device: Device | Sequence[Device],
        memory_cfg: str | Mapping[Device, str] | None = None,
        profile: bool = False,
    ) -> None:
        if isinstance(rt_mod, Executable):
            rt_mod = rt_mod.jit()
        if not isinstance(rt_mod, Module):
            raise ValueError(
                f"VirtualMachine needs an Executable or a Module, got {type(rt_mod).__name__}"
            )
        if not isinstance(memory_cfg, (str, Mapping, type(None))):
            raise TypeError(f"memory_cfg must be text or a dict, got {type(memory_cfg).__name__}")
        name = "vm_profiler_load_executable" if profile else "vm_load_executable"
        if not rt_mod.is_runnable and not is_relax_program(rt_mod):
            raise ValueError(f"a module of type {rt_mod.type_key} is no executable of relax")
        self.module: Module = rt_mod[name]()
        self._host = remote_host(rt_mod)
        devices = as_devices(device)
        if not devices or own_device_type(devices[-1]) != Device.kDLCPU:
            devices.append(Device(Device.kDLCPU, 0))  # shapes are computed on the host
        self.module["vm_initialization"](*with_allocators(devices, memory_cfg))

    def __getitem__(self, key: str) -> PackedFunc:
        """The function of that name; its parameters are those of the program."""
        return self.module[key]

    def invoke_closure(self, closure: Object, *args: Any) -> Any:
        """Call a closure that the program returned."""
        return self.module["invoke_closure"](closure, *args)

    def save_function(
        self,
        func_name: str,
        saved_name: str,
        *args: Any,
        include_return: bool = True,
        **kwargs: Any,
    ) -> None:
        """Name a call: ``vm[saved_name]()`` calls the function with these arguments.

        Parameters
        ----------
        func_name : str
            The function.
        saved_name : str
            The name, which no function has.
        include_return : bool
            Whether the call returns the result; measurements over RPC do without.
        args, kwargs : values
            The arguments.
        """
        values = self._ordered(func_name, args, kwargs)
        self.module["save_function"](func_name, saved_name, include_return, *values)

    def set_input(self, func_name: str, *args: Any, **kwargs: Any) -> None:
        """Set the inputs of a function, by position or name, for :meth:`invoke_stateful`."""
        self.module["set_input"](func_name, *self._ordered(func_name, args, kwargs))

    def invoke_stateful(self, func_name: str) -> None:
        """Run a function on the inputs that were set, and keep the result for :meth:`get_outputs`."""
        self.module["invoke_stateful"](func_name)

    def get_outputs(self, func_name: str) -> Any:
        """The result of :meth:`invoke_stateful`: an array, or nested tuples of arrays."""
        get, arity = self.module["get_output"], self.module["get_output_arity"]

        def part(*indices: int) -> Any:
            count = arity(func_name, *indices)
            if count == -1:
                return get(func_name, *indices)
            return tuple([part(*indices, i) for i in range(count)])

        return part()

    def set_instrument(self, instrument: Callable[..., Any] | None) -> None:
        """Show every call to a function.

        Parameters
        ----------
        instrument : function
            ``instrument(func, name, before_run, ret_value, *args)`` is called before and after each call
            of a kernel or of the machine's own functions; if it returns
            ``VMInstrumentReturnKind.SKIP_RUN`` before a call, that is left out. None for no instrument.
        """
        self.module["set_instrument"](instrument)

    def time_evaluator(
        self,
        func_name: str,
        dev: Device,
        number: int = 10,
        repeat: int = 1,
        min_repeat_ms: int = 0,
        cooldown_interval_ms: int = 0,
        repeats_to_cooldown: int = 1,
        f_preproc: str = "",
    ) -> Callable[..., BenchmarkResult]:
        """A function that measures calls; parameters as of :meth:`tvm.runtime.Module.time_evaluator`."""
        return self.module.time_evaluator(
            func_name,
            dev,
            number=number,
            repeat=repeat,
            min_repeat_ms=min_repeat_ms,
            cooldown_interval_ms=cooldown_interval_ms,
            repeats_to_cooldown=repeats_to_cooldown,
            f_preproc=f_preproc,
        )

    def profile(self, func_name: str, *args: Any) -> Report:
        """Run a function once to warm up and once measured; the times of its calls.

        Parameters
        ----------
        func_name : str
            The function.
        args : values
            Its arguments.
        """
        if not self.module.implements_function("profile"):
            raise ValueError("profile needs a machine made by VirtualMachine(..., profile=True)")
        return Report.from_json(self.module["profile"](func_name, *self._values(args)))

    def _ordered(self, func_name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[Any]:
        """The arguments in the order of the function's parameters."""
        if not kwargs:
            return self._values(args)
        name = self.module["get_function_param_name"]
        params = [name(func_name, i) for i in range(self.module["get_function_arity"](func_name))]
        if unknown := [key for key in kwargs if key not in params]:
            raise ValueError(f"{func_name!r} has the parameters {params}, got also {unknown}")
        rest = [param for param in params if param not in kwargs]
        if len(rest) != len(args):
            raise ValueError(
                f"{func_name!r} requires values for {rest} besides {list(kwargs)}, got {len(args)}"
            )
        values = {**dict(zip(rest, args, strict=True)), **kwargs}
        return self._values([values[param] for param in params])

    def _values(self, args: Sequence[Any]) -> list[Any]:
        return [on_machine_of(self._host, _convert(arg)) for arg in args]


def _convert(arg: Any) -> Any:
    """A value as the machine takes it: numbers become arrays."""
    if isinstance(arg, (NDArray, str)):
        return arg
    if isinstance(arg, (np.ndarray, np.generic)):
        return array(np.asarray(arg))
    if isinstance(arg, (bool, int)):
        return array(np.array(arg, "int32"))
    if isinstance(arg, float):
        return array(np.array(arg, "float32"))
    if isinstance(arg, (list, tuple)) and not isinstance(arg, Object):
        return [_convert(item) for item in arg]
    if isinstance(arg, Object) or hasattr(arg, "__dlpack__") or callable(arg):
        return arg
    raise TypeError(
        f"the virtual machine takes arrays, numbers, text, shapes and tuples, got {type(arg).__name__}"
    )
