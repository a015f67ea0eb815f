"""Run models that were compiled to one function, ahead of time.

lib = relay.build(mod, target="llvm", executor=relay.backend.Executor("aot"))
module = tvm.runtime.executor.AotModule(lib["default"](tvm.cpu()))
module.run(data=image)
scores = module.get_output(0).numpy()
"""

from __future__ import annotations

import json
from typing import Any

from tvm._ffi.runtime_ctypes import Device
from tvm.error import suggest
from tvm.runtime.benchmark import BenchmarkResult
from tvm.runtime.executor.inputs import as_tensor
from tvm.runtime.module import Module
from tvm.runtime.ndarray import NDArray
from tvm.runtime.packed_func import PackedFunc
from tvm.support.dtype import dtype as as_dtype


class AotModule:
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
            raise TypeError(f'AotModule needs lib["default"](device), got {type(module).__name__}')
        self.module = module
        self._set_input: PackedFunc = module["set_input"]
        self._run: PackedFunc = module["run"]
        self._get_output: PackedFunc = module["get_output"]
        self._get_input: PackedFunc = module["get_input"]
        self._get_num_outputs: PackedFunc = module["get_num_outputs"]
        self._get_num_inputs: PackedFunc = module["get_num_inputs"]
        self._get_input_index: PackedFunc = module["get_input_index"]
        self._get_input_name: PackedFunc = module["get_input_name"]
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
            Its value, of exactly the input's shape.
        params : dict
            More inputs by name; those of the model's names that it does not have are ignored, since
            compilation may have folded them away.
        """
        if key is not None:
            self._set_input(self._checked(key), self._as_tensor(key, value))
        for name, param in params.items():
            if name in self._shapes:
                self._set_input(name, self._as_tensor(name, param))

    def set_input_zero_copy(
        self, key: str | int | None = None, value: Any = None, **params: Any
    ) -> None:
        """Let inputs use the memory of the given arrays, which must stay unchanged while it runs."""
        share = self.module["set_input_zero_copy"]
        if key is not None:
            share(self._checked(key), value)
        for name, param in params.items():
            share(self._checked(name), param)

    def set_output_zero_copy(self, key: str | int, value: NDArray) -> None:
        """Let an output be written into the given array."""
        self.module["set_output_zero_copy"](key, value)

    def _checked(self, key: str | int) -> str | int:
        if isinstance(key, str) and key not in self._shapes:
            hint = suggest(key, self._shapes)
            names = ", ".join([repr(name) for name in self._shapes]) or "none"
            text = f"the model has no input {key!r}; its inputs are {names}"
            raise ValueError(f"{text}; {hint}" if hint else text)
        return key

    def _as_tensor(self, key: str | int, value: Any) -> NDArray:
        dtypes = self._dtypes
        name = key if isinstance(key, str) else self._get_input_name(key)
        return as_tensor(key, value, as_dtype(dtypes[name]).numpy)

    def run(self, **input_dict: Any) -> None:
        """Set the inputs, if any are given, and compute the outputs."""
        if input_dict:
            self.set_input(**input_dict)
        self._run()

    def get_num_outputs(self) -> int:
        """The number of outputs."""
        return self._get_num_outputs()  # type: ignore[no-any-return]

    def get_num_inputs(self) -> int:
        """The number of inputs."""
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

    def get_input_name(self, index: int) -> str:
        """The name of an input."""
        return self._get_input_name(index)  # type: ignore[no-any-return]

    def get_input_info(self) -> tuple[dict[str, tuple[int, ...]], dict[str, str]]:
        """The shapes and the dtypes of the inputs, by name."""
        return dict(self._shapes), dict(self._dtypes)

    def get_output_info(self) -> tuple[dict[str, tuple[int, ...]], dict[str, str]]:
        """The shapes and the dtypes of the outputs, by name."""
        info = json.loads(self.module["get_output_info_json"]())
        return {name: tuple(shape) for name, shape in info["shape"].items()}, info["dtype"]

    def get_output(self, index: int | str, out: NDArray | None = None) -> NDArray:
        """An output: the executor's own array, which the next run overwrites, or a copy in ``out``."""
        if out is not None:
            self._get_output(index, out)
            return out
        return self._get_output(index)  # type: ignore[no-any-return]

    def __getitem__(self, key: str) -> PackedFunc:
        """A function of the native executor."""
        return self.module[key]

    def benchmark(
        self,
        device: Device,
        func_name: str = "run",
        repeat: int = 5,
        number: int = 5,
        min_repeat_ms: int = 0,
        limit_zero_time_iterations: int = 100,
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
        kwargs : dict
            Inputs by name.
        """
        self.set_input(**kwargs)
        return self.module.time_evaluator(
            func_name, device, number, repeat, min_repeat_ms, limit_zero_time_iterations,
            cooldown_interval_ms, repeats_to_cooldown,
        )()  # fmt: skip
