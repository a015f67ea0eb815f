"""What the executors of compiled models have in common, from Python."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn, TypeAlias

import numpy as np

from tvm._ffi.runtime_ctypes import Device
from tvm.error import RuntimeValueError, suggest
from tvm.runtime.benchmark import BenchmarkResult
from tvm.runtime.executor.inputs import as_tensor
from tvm.runtime.executor.mistakes import warn_of_unknown
from tvm.runtime.loan import shared
from tvm.runtime.module import Module
from tvm.runtime.ndarray import NDArray
from tvm.runtime.packed_func import PackedFunc
from tvm.runtime.remote import on_machine_of, own_device_type, remote_host
from tvm.support.dtype import dtype as as_dtype

# shapes and dtypes by name
TensorInfo: TypeAlias = tuple[dict[str, tuple[int, ...]], dict[str, str]]


class ModelExecutor:
    """A model that is ready to run, one run at a time.

    Threads that share it wait for each other's calls. Between ``set_input``, ``run`` and
    ``get_output`` of one thread another may set other inputs, or run: the thread whose inputs or
    outputs are lost gets an error, never another's answer. An executor for each thread,
    ``GraphModule(lib["default"](device))``, shares the weights and needs none of this.

    Parameters
    ----------
    module : Module
        What ``lib["default"](device)`` returns.

    Attributes
    ----------
    module : Module
        The native executor.
    """

    def __init__(self, module: Module) -> None:
        if not isinstance(module, Module):
            raise TypeError(
                f'{type(self).__name__} needs lib["default"](device), got {type(module).__name__}'
            )
        self.module = module
        self._host = remote_host(module)
        self._set_input: PackedFunc = module["set_input"]
        self._set_input_zero_copy: PackedFunc = module["set_input_zero_copy"]
        self._set_output_zero_copy: PackedFunc = module["set_output_zero_copy"]
        self._run: PackedFunc = module["run"]
        self._run_with_inputs: PackedFunc = module["run_with_inputs"]
        self._get_output: PackedFunc = module["get_output"]
        self._get_input: PackedFunc = module["get_input"]
        self._get_num_outputs: PackedFunc = module["get_num_outputs"]
        self._get_num_inputs: PackedFunc = module["get_num_inputs"]
        self._get_input_index: PackedFunc = module["get_input_index"]
        self._shapes, self._dtypes = self._info_of("get_input_info_json")

    def _info_of(self, getter: str, *options: bool) -> TensorInfo:
        info = json.loads(self.module[getter](*options))
        return {name: tuple(shape) for name, shape in info["shape"].items()}, info["dtype"]

    def set_input(self, key: str | int | None = None, value: Any = None, **params: Any) -> None:
        """Copy values into inputs.

        Parameters
        ----------
        key : str or int, optional
            The input's name or number.
        value : NDArray or array_like
            Its value, of exactly the input's shape. Numbers, lists and numpy arrays of another width
            are converted, as from float64 to float32, integers of the other sign where they fit;
            other arrays need the input's dtype.
        params : dict
            More inputs by name; names that the model does not use are ignored, since compilation
            may have folded them away. Of those that resemble an input's, a warning says so.
        """
        if key is not None:
            self._set_input(self._check_key(key), self._as_tensor(key, value))
        for name, param in params.items():
            if name in self._shapes:
                self._set_input(name, self._as_tensor(name, param))
        if unknown := [name for name in params if name not in self._shapes]:
            self._warn_of_mistakes(unknown)

    def set_input_zero_copy(
        self, key: str | int | None = None, value: Any = None, **params: Any
    ) -> None:
        """Let inputs use the memory of the given arrays, which must stay unchanged while it runs.

        Tensors of other packages need memory that is aligned to 64 bytes.
        """
        if key is not None:
            self._set_input_zero_copy(self._check_key(key), shared(value))
        for name, param in params.items():
            self._set_input_zero_copy(self._check_key(name), shared(param))

    def set_output_zero_copy(self, key: str | int, value: Any) -> None:
        """Let an output be written into the given array, which may be one of another package."""
        target = shared(value)
        if isinstance(target, NDArray):
            target.require_writable(f"output {key!r}")
        self._set_output_zero_copy(key, target)

    def _check_key(self, key: str | int) -> str | int:
        if isinstance(key, str) and key not in self._shapes:
            self._reject(key)
        return key

    def _reject(self, key: str | int) -> NoReturn:
        """Raise what the native executor says of an input that it does not have."""
        try:
            self._set_input(key, None)
        except ValueError as error:
            hint = suggest(key, self._shapes) if isinstance(key, str) else ""
            raise RuntimeValueError(f"{error}; {hint}" if hint else str(error)) from None
        raise AssertionError(f"there is an input {key!r}")

    def _as_tensor(self, key: str | int, value: Any) -> NDArray:
        """The value as an array where the model is, without a copy where that is possible."""
        tensor = value
        if not isinstance(value, NDArray):
            tensor = as_tensor(key, value, self._element_of(key))
        array: NDArray = on_machine_of(self._host, tensor)
        return array

    def _element_of(self, key: object) -> np.dtype[Any]:
        if isinstance(key, str):
            return self._numpy_dtype(self._dtypes[key])
        if not isinstance(key, (int, np.integer)):
            raise TypeError(f"an input has a name or a number, got {key!r}")
        dtypes = list(self._dtypes.values())
        if not 0 <= key < len(dtypes):
            self._reject(int(key))
        return self._numpy_dtype(dtypes[key])

    @staticmethod
    def _numpy_dtype(name: str) -> np.dtype[Any]:
        dtype: np.dtype[Any] = as_dtype(name).numpy
        return dtype

    def run(self, **input_dict: Any) -> None:
        """Set the inputs, if any are given, and compute the outputs.

        No other thread's call comes between the two. An input that was never set is zero, which a
        warning says before the first run; it is an error under ``TVM_STRICT_INPUTS=1``.
        """
        if not input_dict:
            self._run()
            return
        unknown = [name for name in input_dict if name not in self._shapes]
        if unknown:
            self._check_unused(unknown, input_dict)
        self._run_with_inputs(
            *[
                part
                for name, value in input_dict.items()
                if name in self._shapes
                for part in (name, self._as_tensor(name, value))
            ]
        )

    def _check_unused(self, unknown: list[str], given: Mapping[str, Any]) -> None:
        """Reject names of no inputs if they leave inputs unset; warn of those that look mistaken."""
        unset = json.loads(self.module["get_unset_inputs_json"]())
        if any(name not in given for name in unset):
            self._reject(unknown[0])
        self._warn_of_mistakes(unknown)

    def _warn_of_mistakes(self, unknown: Sequence[str]) -> None:
        known = list(self._info_of("get_input_info_json", False)[0])
        warn_of_unknown("the model has no inputs", unknown, known, only_similar=True)

    def get_num_outputs(self) -> int:
        """The number of outputs."""
        return int(self._get_num_outputs())

    def get_num_inputs(self) -> int:
        """The number of inputs, parameters included."""
        return int(self._get_num_inputs())

    def get_input(self, index: int | str, out: NDArray | None = None) -> NDArray | None:
        """An input's array; None if there is none of that name."""
        if out is not None and self._host is None:
            self._get_input(index, out)
            return out
        found: NDArray | None = self._get_input(index)
        return found if found is None or out is None else found.copyto(out)

    def get_input_index(self, name: str) -> int:
        """The number of an input, -1 if there is none of that name."""
        return int(self._get_input_index(name))

    def get_input_info(self) -> TensorInfo:
        """The shapes and the dtypes of the inputs, by name, parameters not among them."""
        return self._info_of("get_input_info_json", False)

    def get_output_info(self) -> TensorInfo:
        """The shapes and the dtypes of the outputs, by name."""
        return self._info_of("get_output_info_json")

    def get_output_name(self, index: int) -> str:
        """The name of an output: that of the imported model, if it has one."""
        return str(self.module["get_output_name"](index))

    def get_output(self, index: str | int, out: NDArray | None = None) -> NDArray:
        """An output, by number or name.

        It is the executor's own array, or a copy in ``out``. The next run of this thread overwrites
        the executor's array; another thread's run leaves it as it is. If another thread has run
        since this one did, without this output having been read, it is gone, and that is an error.
        """
        if out is not None and self._host is None:
            self._get_output(index, out)
            return out
        array: NDArray = self._get_output(index)
        return array if out is None else array.copyto(out)

    def __getitem__(self, key: str) -> PackedFunc:
        """A function of the native executor."""
        return self.module[key]

    def benchmark(
        self,
        device: Device,
        func_name: str = "run",
        repeat: int = 5,
        number: int = 5,
        min_repeat_ms: int | None = None,
        limit_zero_time_iterations: int = 100,
        end_to_end: bool = False,
        cooldown_interval_ms: int = 0,
        repeats_to_cooldown: int = 1,
        **kwargs: Any,
    ) -> BenchmarkResult:
        """Measure the model.

        Parameters
        ----------
        device : Device
            Where it runs.
        func_name : str
            What to measure.
        repeat, number, min_repeat_ms, limit_zero_time_iterations, cooldown_interval_ms,
        repeats_to_cooldown : int
            As for :meth:`Module.time_evaluator`.
        end_to_end : bool
            Include the copies of inputs to the device and of outputs back.
        kwargs : dict
            Inputs by name.
        """
        options = (
            min_repeat_ms or 0, limit_zero_time_iterations, cooldown_interval_ms,
            repeats_to_cooldown,
        )  # fmt: skip
        self.set_input(**kwargs)
        if not end_to_end:
            return self.module.time_evaluator(func_name, device, number, repeat, *options)()
        inputs = [
            part
            for name, value in kwargs.items()
            if name in self._shapes
            for part in (name, self._as_tensor(name, value))
        ]
        measure = self.module.time_evaluator("run_from_inputs", device, number, repeat, *options)
        return measure(own_device_type(device), device.device_id, *inputs)
