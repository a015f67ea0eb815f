"""Run compiled models.

lib = relay.build(mod, target="llvm", params=params)
module = GraphModule(lib["default"](tvm.cpu()))
module.run(data=image)
scores = module.get_output(0).numpy()
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from tvm._ffi.registry import get_global_func
from tvm._ffi.runtime_ctypes import RPC_SESS_MASK, Device
from tvm.error import suggest
from tvm.runtime.benchmark import BenchmarkResult
from tvm.runtime.executor.inputs import as_tensor
from tvm.runtime.module import Module
from tvm.runtime.ndarray import NDArray
from tvm.runtime.packed_func import PackedFunc
from tvm.runtime.params import BytesLike, share_bytes
from tvm.support.dtype import dtype as as_dtype


def create(graph_json_str: str, libmod: Module, device: Device | Sequence[Device]) -> GraphModule:
    """An executor of a graph.

    Parameters
    ----------
    graph_json_str : str
        The graph.
    libmod : Module
        The library with its functions.
    device : Device or list of Device
        Where it runs.
    """
    if not isinstance(graph_json_str, str):
        raise ValueError(
            f"create needs the graph as JSON text, got {type(graph_json_str).__name__}; "
            'for the result of relay.build use GraphModule(lib["default"](device))'
        )
    native = getattr(libmod, "module", libmod)
    _, flat = get_device(native, device)
    return GraphModule(get_global_func("tvm.graph_executor.create")(graph_json_str, native, *flat))


def get_device(libmod: Module, device: Device | Sequence[Device]) -> tuple[list[Device], list[int]]:
    """The devices as a list, and their kinds and numbers."""
    devices = [device] if isinstance(device, Device) else list(device)
    for item in devices:
        if not isinstance(item, Device):
            raise ValueError(f"a Device is needed, got {type(item).__name__}")
    return devices, [part for item in devices for part in (item.device_type, item.device_id)]


class GraphModule:
    """A model that is ready to run.

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
                f'GraphModule needs lib["default"](device), got {type(module).__name__}'
            )
        self.module = module
        self._set_input: PackedFunc = module["set_input"]
        self._set_input_zero_copy: PackedFunc = module["set_input_zero_copy"]
        self._set_output_zero_copy: PackedFunc = module["set_output_zero_copy"]
        self._run: PackedFunc = module["run"]
        self._get_output: PackedFunc = module["get_output"]
        self._get_input: PackedFunc = module["get_input"]
        self._get_num_outputs: PackedFunc = module["get_num_outputs"]
        self._get_num_inputs: PackedFunc = module["get_num_inputs"]
        self._get_input_index: PackedFunc = module["get_input_index"]
        self._load_params: PackedFunc = module["load_params"]
        self._share_params: PackedFunc = module["share_params"]
        info = json.loads(module["get_input_info_json"]())
        self._shapes = {name: tuple(shape) for name, shape in info["shape"].items()}
        self._dtypes: dict[str, str] = info["dtype"]

    def set_input(self, key: str | int | None = None, value: Any = None, **params: Any) -> None:
        """Copy values into inputs.

        Parameters
        ----------
        key : str or int, optional
            The input's name or number.
        value : NDArray or array_like
            Its value, of exactly the input's shape. Numbers, lists and numpy arrays of another width
            are converted, as from float64 to float32; other arrays need the input's dtype.
        params : dict
            More inputs by name; names that the graph does not use are ignored, since compilation
            may have folded them away.
        """
        if key is not None:
            self._set_input(self._check_key(key), self._as_tensor(key, value))
        for name, param in params.items():
            if name in self._shapes:
                self._set_input(name, self._as_tensor(name, param))

    def set_input_zero_copy(
        self, key: str | int | None = None, value: Any = None, **params: Any
    ) -> None:
        """Let inputs use the memory of the given arrays, which must stay unchanged while it runs."""
        if key is not None:
            self._set_input_zero_copy(self._check_key(key), value)
        for name, param in params.items():
            self._set_input_zero_copy(self._check_key(name), param)

    def set_output_zero_copy(self, key: int, value: NDArray) -> None:
        """Let an output be written into the given array."""
        self._set_output_zero_copy(key, value)

    def _check_key(self, key: str | int) -> str | int:
        if isinstance(key, str) and key not in self._shapes:
            self._fail_unknown(key)
        return key

    def _fail_unknown(self, key: str) -> None:
        hint = suggest(key, self._shapes)
        try:
            self._set_input(key, None)
        except ValueError as error:
            raise ValueError(f"{error}; {hint}" if hint else str(error)) from None

    def _as_tensor(self, key: str | int, value: Any) -> NDArray:
        """The value as an array, without a copy where that is possible."""
        if isinstance(value, NDArray):
            return value
        return as_tensor(key, value, self._element_of(key))

    def _element_of(self, key: str | int) -> np.dtype[Any]:
        if isinstance(key, str):
            return as_dtype(self._dtypes[key]).numpy  # type: ignore[no-any-return]
        dtypes = list(self._dtypes.values())
        if not 0 <= key < len(dtypes):
            raise ValueError(f"the graph has {len(dtypes)} inputs, got index {key}")
        return as_dtype(dtypes[key]).numpy  # type: ignore[no-any-return]

    def run(self, **input_dict: Any) -> None:
        """Set the inputs, if any are given, and compute the outputs."""
        if input_dict:
            self.set_input(**input_dict)
            unknown = [name for name in input_dict if name not in self._shapes]
            if unknown and self._unset_inputs():
                self._fail_unknown(unknown[0])
        self._run()

    def _unset_inputs(self) -> list[str]:
        return json.loads(self.module["get_unset_inputs_json"]())  # type: ignore[no-any-return]

    def get_num_outputs(self) -> int:
        """The number of outputs."""
        return self._get_num_outputs()  # type: ignore[no-any-return]

    def get_num_inputs(self) -> int:
        """The number of inputs, parameters included."""
        return self._get_num_inputs()  # type: ignore[no-any-return]

    def get_input(self, index: int | str, out: NDArray | None = None) -> NDArray | None:
        """An input's array; None if there is none of that name."""
        if out is not None:
            self._get_input(index, out)
            return out
        return self._get_input(index)  # type: ignore[no-any-return]

    def get_input_index(self, name: str) -> int:
        """The number of an input, -1 if there is none of that name."""
        return self._get_input_index(name)  # type: ignore[no-any-return]

    def get_input_info(self) -> tuple[dict[str, tuple[int, ...]], dict[str, str]]:
        """The shapes and the dtypes of the inputs, by name."""
        return dict(self._shapes), dict(self._dtypes)

    def get_output(self, index: int, out: NDArray | None = None) -> NDArray:
        """An output: the executor's own array, which the next run overwrites, or a copy in ``out``."""
        if out is not None:
            self._get_output(index, out)
            return out
        return self._get_output(index)  # type: ignore[no-any-return]

    def debug_get_output(self, node: str | int, out: NDArray) -> None:
        """Only the debugging executor can tell intermediate results."""
        raise NotImplementedError(
            "use tvm.contrib.debugger.debug_executor for intermediate results"
        )

    def load_params(self, params_bytes: BytesLike) -> None:
        """Set the parameters that ``save_param_dict`` has written; a mapped file will do."""
        self._load_params(share_bytes(params_bytes))

    def share_params(self, other: GraphModule, params_bytes: BytesLike) -> None:
        """Use the parameters of another executor; the bytes tell which."""
        if not isinstance(other, GraphModule):
            raise TypeError(f"share_params needs a GraphModule, got {type(other).__name__}")
        self._share_params(other.module, share_bytes(params_bytes))

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
        return measure(device.device_type % RPC_SESS_MASK, device.device_id, *inputs)
