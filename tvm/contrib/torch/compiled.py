"""Models of PyTorch compiled as a whole, as modules of PyTorch."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
from torch.utils.dlpack import from_dlpack

from tvm import autotvm
from tvm._ffi.runtime_ctypes import Device
from tvm.contrib.graph_executor import GraphModule
from tvm.error import TVMError, suggest
from tvm.ir.module import IRModule
from tvm.ir.pass_context import PassContext
from tvm.relay.build_module import build
from tvm.relay.frontend import from_pytorch
from tvm.runtime import ndarray as nd
from tvm.runtime.device import cpu
from tvm.torch_compile.options import Options
from tvm.torch_compile.tuning import tuned

THIS_MACHINE = "llvm -mcpu=native"
_OPTIONS = (
    "input_infos", "default_dtype", "export_dir", "num_outputs", "tuning_n_trials",
    "tuning_log_file", "target", "device",
)  # fmt: skip


class CompiledModule(torch.nn.Module):
    """A compiled model on tensors.

    Parameters
    ----------
    executor : GraphModule
        The model.
    num_outputs : int
        How many tensors it returns; one is no tuple.
    """

    def __init__(self, executor: GraphModule, num_outputs: int) -> None:
        super().__init__()
        self.executor, self.num_outputs = executor, num_outputs

    def forward(self, *inputs: torch.Tensor) -> Any:
        """The model's outputs, in memory of their own."""
        for position, value in enumerate(inputs):
            self.executor.set_input(position, nd.array(value.detach().cpu().numpy()))
        self.executor.run()
        outputs = [
            from_dlpack(self.executor.get_output(index).to_dlpack()).clone()
            for index in range(self.num_outputs)
        ]
        return outputs[0] if len(outputs) == 1 else tuple(outputs)


def compile(script_module: torch.jit.ScriptModule, option: Mapping[str, Any]) -> CompiledModule:
    """Compile a module of TorchScript.

    Parameters
    ----------
    script_module : torch.jit.ScriptModule
        The model.
    option : dict
        ``input_infos``: pairs of a name and a shape; ``default_dtype`` ("float32"); ``export_dir``:
        a folder for the library, ``mod.so``; ``num_outputs`` (1); ``tuning_n_trials`` (0):
        candidates of each kernel that AutoTVM measures; ``tuning_log_file``: AutoTVM's records;
        ``target`` (this machine) and ``device`` (the processor).
    """
    if unknown := [name for name in option if name not in _OPTIONS]:
        raise TVMError(
            f"compile takes the options {', '.join(_OPTIONS)}, got {unknown[0]!r}",
            hint=suggest(unknown[0], _OPTIONS),
        )
    if "input_infos" not in option:
        raise TVMError("compile requires the option input_infos: names and shapes of the inputs")
    infos = [(str(name), info) for name, info in option["input_infos"]]
    dtype = option.get("default_dtype", "float32")
    mod, params = from_pytorch(script_module, infos, default_dtype=dtype)
    target = option.get("target", THIS_MACHINE)
    options = Options(
        target=target,
        trials=option.get("tuning_n_trials", 0),
        tuning_records=option.get("tuning_log_file"),
    )
    device = option.get("device") or cpu()
    made = _compiled(mod, params, options, device, option.get("export_dir"))
    found, wanted = made.num_outputs, option.get("num_outputs", 1)
    if found != wanted:
        raise TVMError(f"the option num_outputs of compile is {wanted}, but the model has {found}")
    return made


def optimize_torch(
    func: Callable[..., Any] | torch.nn.Module,
    example_inputs: Any,
    *,
    max_trials_global: int = 0,
    work_dir: str | None = None,
    target: str = "cpu",
    max_trials_per_task: int | None = None,
) -> CompiledModule:
    """Compile a model, or a function on tensors, as it is traced with example inputs.

    Parameters
    ----------
    func : torch.nn.Module or function
        The model.
    example_inputs : tensor or tuple of tensors
        What it is traced with; later calls have the same shapes.
    max_trials_global : int
        Candidates that AutoTVM measures, of all kernels together; 0 leaves them to the cost model.
    work_dir : str, optional
        A folder for AutoTVM's records.
    target : str
        "cpu", which is this machine, or a target.
    max_trials_per_task : int, optional
        Candidates of one kernel.
    """
    inputs = (example_inputs,) if isinstance(example_inputs, torch.Tensor) else example_inputs
    trace: Any = torch.jit.trace
    traced = trace(func.eval() if isinstance(func, torch.nn.Module) else func, inputs)
    if not isinstance(traced, torch.jit.ScriptModule):
        traced = trace(_Function(func), inputs)
    infos = [
        (f"input{i}", (list(value.shape), str(value.dtype).removeprefix("torch.")))
        for i, value in enumerate(inputs)
    ]
    mod, params = from_pytorch(traced, infos)
    machine = THIS_MACHINE if target == "cpu" else target
    trials = _trials_of_each(mod, params, machine, max_trials_global, max_trials_per_task)
    records = None
    if work_dir is not None:
        Path(work_dir).mkdir(parents=True, exist_ok=True)
        records = str(Path(work_dir) / "records.json")
    options = Options(target=machine, trials=trials, tuning_records=records)
    return _compiled(mod, params, options, cpu(), None)


class _Function(torch.nn.Module):
    """A function as a module."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *args: Any) -> Any:
        return self.function(*args)


def _trials_of_each(mod: IRModule, params: Any, target: str, total: int, most: int | None) -> int:
    """Candidates of each kernel, of so many for all."""
    if total <= 0:
        return 0
    kernels = len(autotvm.task.extract_from_program(mod, params, target))
    each = max(total // max(kernels, 1), 1)
    return each if most is None else min(each, most)


def _compiled(
    mod: IRModule, params: Any, options: Options, device: Device, folder: str | None
) -> CompiledModule:
    with tuned(mod, params, options), PassContext(opt_level=options.opt_level):
        library = build(mod, target=options.target, params=params)
    if folder is not None:
        Path(folder).mkdir(parents=True, exist_ok=True)
        library.export_library(str(Path(folder) / "mod.so"))
    executor = GraphModule(library["default"](device))
    return CompiledModule(executor, executor.get_num_outputs())
