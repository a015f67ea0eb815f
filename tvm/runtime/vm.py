"""The virtual machine of relay: programs with control flow, data types and dynamic shapes.

exe = relay.vm.compile(mod, target="llvm", params=params)
machine = VirtualMachine(exe, tvm.cpu())
result = machine.run(data)                      # of "main"

code, lib = exe.save()                          # or exe.mod.export_library("model.so")
machine = VirtualMachine(Executable.load_exec(code, lib), tvm.cpu())
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from tvm._ffi.registry import get_global_func
from tvm._ffi.runtime_ctypes import Device
from tvm.runtime.benchmark import BenchmarkResult, time_function
from tvm.runtime.container import ADT
from tvm.runtime.module import Module
from tvm.runtime.ndarray import NDArray, array, empty, from_dlpack
from tvm.runtime.object import Object
from tvm.runtime.relax_vm import VirtualMachine as _RelaxVirtualMachine
from tvm.runtime.relax_vm import VMInstrumentReturnKind as VMInstrumentReturnKind
from tvm.runtime.relax_vm import is_relax_program
from tvm.runtime.remote import (
    global_function_beside,
    on_machine_of,
    own_device_type,
    remote_host,
)
from tvm.runtime.vm_devices import ALLOCATORS, as_devices, with_allocators
from tvm.runtime.vm_executable import Executable


def convert(args: Iterable[Any]) -> list[Any]:
    """Values as the machine takes them: arrays of numbers, tuples of lists, native data types."""
    return [_convert(arg) for arg in args]


def _convert(arg: Any) -> Any:
    if isinstance(arg, NDArray):
        return arg
    if isinstance(arg, (list, tuple)):
        return _native_adt(0, arg)
    if isinstance(arg, ADT):
        return arg if arg._native is not None else _native_adt(arg.tag, arg.fields)
    if isinstance(arg, (bool, int, float, np.ndarray, np.generic)):
        return array(_typed(arg))
    if isinstance(arg, Object) or hasattr(arg, "handle"):
        return arg
    if hasattr(arg, "__dlpack__"):
        return from_dlpack(arg)
    raise TypeError(
        f"the virtual machine takes arrays, numbers, tuples and data types, got {type(arg).__name__}"
    )


def _native_adt(tag: int, fields: Iterable[Any]) -> ADT:
    found: ADT = get_global_func("runtime.NativeADT")(tag, *convert(fields))
    return found


def _typed(arg: Any) -> np.ndarray:
    """Python's numbers in the types that programs mean by them."""
    if type(arg) is float:
        return np.array(arg, "float32")
    if type(arg) is int:
        if not -(2**31) <= arg < 2**31:
            raise ValueError(f"a Python number is an int32 here, got {arg}")
        return np.array(arg, "int32")
    return np.asarray(arg)


def _check_outputs(arrays: Iterable[Any]) -> None:
    for i, array_ in enumerate(arrays):
        if isinstance(array_, NDArray):
            array_.require_writable(f"output {i}")


class VirtualMachine:
    """Runs an executable, one run at a time.

    Of an executable of relax, as programs of later releases give it, this makes a
    :class:`tvm.relax.VirtualMachine`.

    Threads may share a machine: they wait for each other, and the results of :meth:`invoke` and
    :meth:`run` belong to the caller. Of inputs or results that a thread has left in the machine
    (:meth:`set_input`, :meth:`invoke_stateful`) and another has replaced, the first gets an error.

    Parameters
    ----------
    exe : Executable or Module
        The program.
    device : Device or list of Device
        Where it runs.
    memory_cfg : str or dict of Device to str, optional
        "pooled" (the default) keeps freed memory for the next tensors, "naive" does not.
    profile : bool
        Of an executable of relax, whether `profile` is wanted.
    """

    NAIVE_ALLOCATOR = ALLOCATORS["naive"]
    POOLED_ALLOCATOR = ALLOCATORS["pooled"]
    _create = "runtime._VirtualMachine"

    def __new__(cls, exe: Any, device: Any, memory_cfg: Any = None, profile: bool = False) -> Any:
        if cls is VirtualMachine and is_relax_program(exe):
            return _RelaxVirtualMachine(exe, device, memory_cfg, profile)
        return super().__new__(cls)

    def __init__(
        self,
        exe: Executable | Module,
        device: Device | Sequence[Device],
        memory_cfg: str | Mapping[Device, str] | None = None,
    ) -> None:
        if not isinstance(exe, (Executable, Module)):
            raise TypeError(f"VirtualMachine needs an Executable, got {type(exe).__name__}")
        if isinstance(exe, Module):
            exe = Executable(exe)
        self._exec = exe
        self._host = remote_host(exe.mod)
        self.module: Module = global_function_beside(exe.mod, self._create)(exe.mod)
        self._init = self.module["init"]
        self._invoke = self.module["invoke"]
        self._invoke_with = self.module["invoke_with"]
        self._invoke_stateful = self.module["invoke_stateful"]
        self._invoke_stateful_with = self.module["invoke_stateful_with"]
        self._invoke_with_outputs = self.module["invoke_with_outputs"]
        self._get_output = self.module["get_output"]
        self._get_num_outputs = self.module["get_num_outputs"]
        self._get_input_index = self.module["get_input_index"]
        self._set_input = self.module["set_input"]
        self._set_one_input = self.module["set_one_input"]
        self._set_outputs = self.module["set_outputs"]
        self._setup_device(device, memory_cfg)

    def _setup_device(
        self, device: Device | Sequence[Device], memory_cfg: str | Mapping[Device, str] | None
    ) -> None:
        devices = as_devices(device)
        if all(own_device_type(item) != Device.kDLCPU for item in devices):
            devices.append(Device(Device.kDLCPU, 0))  # shapes are computed on the host
        self._init(*with_allocators(devices, memory_cfg))

    def _ordered(self, func_name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[Any]:
        """The arguments in the order of the function's parameters."""
        if not kwargs:
            return list(args)
        params = self._exec.get_function_params(func_name)
        if unknown := [name for name in kwargs if name not in params]:
            raise ValueError(f"{func_name!r} has the parameters {params}, got also {unknown}")
        rest = [name for name in params if name not in kwargs]
        if len(args) != len(rest):
            raise ValueError(
                f"{func_name!r} requires values for {rest} besides {list(kwargs)}, got {len(args)}"
            )
        values = dict(zip(rest, args, strict=True))
        return [kwargs[name] if name in kwargs else values[name] for name in params]

    def _values(self, args: Iterable[Any]) -> list[Any]:
        """The arguments as the machine takes them, where it runs."""
        if self._host is None:
            return convert(args)
        return [self._sent(value) for value in args]

    def _sent(self, value: Any) -> Any:
        """A value on the machine of the session; tuples are made there."""
        if isinstance(value, (list, tuple)):
            make = global_function_beside(self.module, "runtime.NativeADT")
            return make(0, *[self._sent(each) for each in value])
        return on_machine_of(self._host, _convert(value))

    def _received(self, value: Any) -> Any:
        """A result; tuples of another machine become those of its arrays."""
        if self._host is None or value is None or isinstance(value, NDArray):
            return value
        size = global_function_beside(self.module, "runtime.NativeADTSize")(value)
        field = global_function_beside(self.module, "runtime.NativeADTField")
        tag = global_function_beside(self.module, "runtime.NativeADTTag")(value)
        return ADT(tag, [self._received(field(value, i)) for i in range(size)])

    def set_input(self, func_name: str, *args: Any, **kwargs: Any) -> None:
        """Set all inputs of a function.

        Parameters
        ----------
        func_name : str
            The function.
        args, kwargs : NDArray, array_like, tuple or number
            Its arguments, by position or name. A Python float is a float32, an int an int32.

        Raises
        ------
        ValueError
            If an argument is missing, or there is none of that name.
        """
        self._set_input(func_name, *self._values(self._ordered(func_name, args, kwargs)))

    def set_one_input(self, func_name: str, *args: Any, **kwargs: Any) -> None:
        """Set one input: ``set_one_input("main", 0, value)`` or ``set_one_input("main", x=value)``.

        Parameters
        ----------
        func_name : str
            The function.
        args, kwargs : int or str, and array_like
            The input's number or name and its value, or the value under its name.
        """
        if len(kwargs) + len(args) // 2 != 1 or len(args) % 2:
            raise ValueError("set_one_input takes one input and its value")
        key, value = args if args else next(iter(kwargs.items()))
        self._set_one_input(func_name, key, *self._values([value]))

    def invoke(self, func_name: str, *args: Any, **kwargs: Any) -> Any:
        """Run a function.

        Parameters
        ----------
        func_name : str
            The function.
        args, kwargs : NDArray, array_like, tuple or number
            As of :meth:`set_input`; without any, those that it has set are used.

        Returns
        -------
        NDArray or ADT
            The result, or a tuple of results, which belongs to the caller.
        """
        if args or kwargs:
            values = self._values(self._ordered(func_name, args, kwargs))
            return self._received(self._invoke_with(func_name, *values))
        return self._received(self._invoke(func_name))

    def run(self, *args: Any, **kwargs: Any) -> Any:
        """Run ``main``.

        Parameters
        ----------
        args, kwargs : NDArray, array_like, tuple or number
            As of :meth:`invoke`.

        Returns
        -------
        NDArray or ADT
            As of :meth:`invoke`.
        """
        return self.invoke("main", *args, **kwargs)

    def invoke_stateful(self, func_name: str, *args: Any, **kwargs: Any) -> None:
        """Run a function and keep its result for :meth:`get_outputs`.

        Parameters
        ----------
        func_name : str
            The function.
        args, kwargs : NDArray, array_like, tuple or number
            As of :meth:`invoke`.
        """
        if args or kwargs:
            values = self._values(self._ordered(func_name, args, kwargs))
            self._invoke_stateful_with(func_name, *values)
        else:
            self._invoke_stateful(func_name)

    def invoke_with_outputs(
        self,
        func_name: str,
        input_args: Mapping[str, Any] | Sequence[Any],
        output_args: Sequence[NDArray],
    ) -> None:
        """Run a function whose results are left in the given arrays.

        Parameters
        ----------
        func_name : str
            The function.
        input_args : dict or sequence of array_like
            Its inputs, by name or in order.
        output_args : sequence of NDArray
            One array for each result, of its shape, data type and device.
        """
        _check_outputs(output_args)
        if not input_args:
            self._invoke_with_outputs(func_name, -1, *output_args)
            return
        given = input_args if isinstance(input_args, Mapping) else {}
        rest = () if isinstance(input_args, Mapping) else input_args
        values = self._values(self._ordered(func_name, rest, given))
        self._invoke_with_outputs(func_name, len(values), *values, *output_args)

    def set_outputs(self, func_name: str, *args: NDArray) -> None:
        """Let the next run of a function leave its results in these arrays.

        Parameters
        ----------
        func_name : str
            The function.
        args : NDArray
            One array for each result, of its shape, data type and device.
        """
        _check_outputs(args)
        self._set_outputs(func_name, *args)

    def get_outputs(self) -> list[NDArray]:
        """The results of :meth:`invoke_stateful`.

        Returns
        -------
        list of NDArray
            Tuples are taken apart.
        """
        return [self._get_output(i) for i in range(self._get_num_outputs())]

    def get_input_index(self, input_name: str, func_name: str = "main") -> int:
        """The place of an input among a function's parameters.

        Parameters
        ----------
        input_name : str
            The input's name.
        func_name : str
            The function.

        Returns
        -------
        int
            From 0 on, -1 if there is none of that name.
        """
        return int(self._get_input_index(input_name, func_name))

    def benchmark(
        self,
        device: Device,
        *args: Any,
        func_name: str = "main",
        repeat: int = 5,
        number: int = 5,
        min_repeat_ms: int | None = None,
        limit_zero_time_iterations: int = 100,
        end_to_end: bool = False,
        cooldown_interval_ms: int = 0,
        repeats_to_cooldown: int = 1,
        **kwargs: Any,
    ) -> BenchmarkResult:
        """Measure a function.

        Parameters
        ----------
        device : Device
            Where it runs.
        args, kwargs : values
            Its inputs; those of :meth:`set_input` if there are none.
        func_name : str
            The function.
        repeat, number, min_repeat_ms, limit_zero_time_iterations, cooldown_interval_ms, repeats_to_cooldown :
            As of :meth:`tvm.runtime.Module.time_evaluator`.
        end_to_end : bool
            Whether copies of inputs to the device and of results back to the host count.

        Returns
        -------
        BenchmarkResult
            Seconds a run: mean, median, extremes, deviation, and all repeats.
        """
        given = self._ordered(func_name, args, kwargs)
        if given:
            self.set_input(func_name, *given)
        options = (number, repeat, min_repeat_ms or 0, limit_zero_time_iterations,
                   cooldown_interval_ms, repeats_to_cooldown)  # fmt: skip
        if end_to_end:
            return self._benchmark_end_to_end(device, func_name, given, options)
        return self.module.time_evaluator("invoke", device, *options)(func_name)

    def _benchmark_end_to_end(
        self, device: Device, func_name: str, given: Sequence[Any], options: Sequence[int]
    ) -> BenchmarkResult:
        """Arrays are copied to new ones on the device, and results to new ones on the host."""
        native = self._values(given)

        def once() -> None:
            copies = [a.copyto(device) if isinstance(a, NDArray) else a for a in native]
            self._set_input(func_name, *copies)
            self._invoke_stateful(func_name)
            for output in self.get_outputs():
                output.copyto(empty(output.shape, output.dtype))

        return time_function(once, device, *options)


__all__ = ["Executable", "VirtualMachine"]
