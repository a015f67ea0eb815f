"""Graphs of TorchDynamo: a back end of ``torch.compile`` that runs them through relax.

model = torch.compile(model, backend=relax_dynamo())
model = torch.compile(model, backend="tvm")             # the same, in PyTorch 2.14
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import tvm
from tvm.error import OpNotImplemented
from tvm.ir.module import IRModule
from tvm.ir.transform import Pass
from tvm.relax.expr import PrimValue, Var
from tvm.relax.pipeline import get_pipeline
from tvm.relax.struct_info import PrimStructInfo, TensorStructInfo
from tvm.relax.vm_build import build
from tvm.runtime import ndarray as nd
from tvm.runtime.relax_vm import VirtualMachine
from tvm.target import Target

from .aten import run_nodes
from .base_fx_graph_translator import dtype_name
from .exported_program_translator import ExportedProgramImporter
from .fx_translator import TorchFXImporter


def device_from_inputs(example_inputs: Sequence[Any]) -> Any:
    """PyTorch's device of the first tensor; that of the processor if there is none.

    Parameters
    ----------
    example_inputs : sequence of torch.Tensor
    """
    import torch

    found = (x.device for x in example_inputs if hasattr(x, "device"))
    return next(found, torch.device("cpu"))


def llvm_target() -> str:
    """The target of compiled graphs: the machine that this runs on."""
    return "llvm -mcpu=native"


def relax_dynamo(pipeline: Pass | str | None = None) -> Callable[..., Any]:
    """A back end of ``torch.compile``.

    Parameters
    ----------
    pipeline : Pass or str, optional
        What optimises the modules before they are built, a pass or the name of a pipeline (see
        `relax.get_pipeline`). By default `relax.build` alone does.

    Returns
    -------
    callable
        From a graph of TorchDynamo and example inputs to a callable on tensors of PyTorch. Where
        gradients are needed, the graph and that of its gradients are compiled. Sizes that
        TorchDynamo leaves open are symbolic variables: one program serves them all.

    Raises
    ------
    OpNotImplemented
        In the first call of a model, for operators that neither relax nor relay's importer has, and
        for tensors that are not in the processor's memory.
    """

    def compile_graph(graph_module: Any, example_inputs: Sequence[Any]) -> Callable[..., Any]:
        from torch._dynamo.backends.common import aot_autograd

        if (device := device_from_inputs(example_inputs)).type != "cpu":
            raise OpNotImplemented(f"relax_dynamo requires tensors on the CPU, got {device}")

        def compiler_with(weights: Mapping[int, Any]) -> Callable[..., Any]:
            def compile_aten(module: Any, inputs: Sequence[Any]) -> Callable[..., Any]:
                from torch._functorch._aot_autograd.utils import make_boxed_func
                from torch._subclasses.fake_tensor import unset_fake_temporarily

                # where inputs were merged, positions are not those of TorchDynamo's graph
                known = weights if len(inputs) == len(example_inputs) else {}
                with unset_fake_temporarily():  # the weights are no fakes
                    boxed: Callable[..., Any] = make_boxed_func(_Compiled(module, pipeline, known))
                return boxed

            return compile_aten

        weights = lifted_weights(graph_module, example_inputs)
        compile_both = aot_autograd(
            fw_compiler=compiler_with({}), inference_compiler=compiler_with(weights)
        )
        made: Callable[..., Any] = compile_both(graph_module, example_inputs)
        return made

    return compile_graph


def lifted_weights(graph_module: Any, example_inputs: Sequence[Any]) -> dict[int, Any]:
    """The inputs that TorchDynamo made of parameters and buffers of a model, by position."""
    placeholders = [node for node in graph_module.graph.nodes if node.op == "placeholder"]
    return {
        i: tensor
        for i, (node, tensor) in enumerate(zip(placeholders, example_inputs, strict=True))
        if "_parameters_" in node.name or "_buffers_" in node.name
    }


class _Compiled:
    """A graph of ATen's operators without writes, as a program of the virtual machine.

    Weights are constants for as long as nobody writes to them.
    """

    def __init__(
        self, module: Any, pipeline: Pass | str | None, weights: Mapping[int, Any]
    ) -> None:
        self._module, self._pipeline = module, pipeline
        self._build(weights)

    def _build(self, weights: Mapping[int, Any]) -> None:
        self._weights = {i: _state(tensor) for i, tensor in weights.items()}
        mod, self._are_sizes, self._returned = import_aten(self._module, weights)
        target = Target(llvm_target())
        if self._pipeline is not None:
            passes = self._pipeline
            with target:
                mod = (get_pipeline(passes) if isinstance(passes, str) else passes)(mod)
        self._run = VirtualMachine(build(mod, target), tvm.cpu())["main"]

    def __call__(self, *args: Any) -> list[Any]:
        if any([_state(args[i]) != state for i, state in self._weights.items()]):
            self._build({})
        given = [
            int(arg) if is_size else _as_array(arg)
            for i, (arg, is_size) in enumerate(zip(args, self._are_sizes, strict=True))
            if i not in self._weights
        ]
        results = iter(_as_tensors(self._run(*given)))
        return [next(results) if is_computed else None for is_computed in self._returned]


def _state(tensor: Any) -> tuple[int, int]:
    """Changes when the tensor is written to or has other memory."""
    return tensor.data_ptr(), 0 if tensor.is_inference() else tensor._version


def import_aten(module: Any, weights: Mapping[int, Any]) -> tuple[IRModule, list[bool], list[bool]]:
    """A graph of ATen's operators as a module of relax, with some inputs as constants.

    Returns
    -------
    (IRModule, list of bool, list of bool)
        The module, whose main function returns a tuple; which inputs are sizes; and which outputs are
        tensors, the others being None.
    """
    importer = ExportedProgramImporter()
    placeholders = [node for node in module.graph.nodes if node.op == "placeholder"]
    inputs: list[Any] = []
    params: list[Var] = []
    for position, node in enumerate(placeholders):
        meta = node.meta["val"]
        if position in weights:
            inputs.append(importer.constant(weights[position]))
        elif hasattr(meta, "shape"):
            info = [importer.dimension(dim) for dim in meta.shape]
            params.append(Var(node.name, TensorStructInfo(info, dtype_name(meta.dtype))))
            inputs.append(params[-1])
        else:
            size = importer.dimension(meta)
            params.append(Var(node.name, PrimStructInfo(value=size)))
            inputs.append(size)
    builder = importer.block_builder
    with builder.function("main", params):
        with builder.dataflow():
            results = run_nodes(importer, module, inputs)
            tensors = [_as_result(value) for value in results if value is not None]
            output = importer.output(tensors, False, False)
        builder.emit_func_output(output)
    are_sizes = [not hasattr(node.meta["val"], "shape") for node in placeholders]
    return builder.get(), are_sizes, [value is not None for value in results]


def _as_result(value: Any) -> Any:
    return value if hasattr(value, "struct_info") else PrimValue(value)


def _as_array(tensor: Any) -> Any:
    """A tensor of PyTorch in its own memory, if kernels can read it as it lies there."""
    tensor = tensor.detach().contiguous()
    return nd.from_dlpack(tensor if tensor.data_ptr() % _ALIGNMENT == 0 else tensor.clone())


_ALIGNMENT = 64  # of the memory that kernels read


def _as_tensors(results: Any) -> list[Any]:
    import torch

    return [
        torch.utils.dlpack.from_dlpack(result) if isinstance(result, nd.NDArray) else result
        for result in results
    ]


def dynamo_capture_subgraphs(model: Any, *params: Any, **kwargs: Any) -> IRModule:
    """The graphs that TorchDynamo makes of a model, each as a function of a module.

    Parameters
    ----------
    model : torch.nn.Module or callable
        What is captured.
    params
        Arguments of the model.
    kwargs
        Keyword arguments of the model; ``keep_params_as_input`` is none of them: with it the model's
        parameters are parameters of the functions, rather than constants.

    Returns
    -------
    IRModule
        With the functions ``subgraph_0``, ``subgraph_1``, ...
    """
    import torch

    keep_params = bool(kwargs.pop("keep_params_as_input", False))
    functions: dict[str, Any] = {}

    def capture(graph_module: Any, example_inputs: Sequence[Any]) -> Callable[..., Any]:
        graph_module.graph.eliminate_dead_code()
        name = f"subgraph_{len(functions)}"
        functions[name] = _captured(graph_module, example_inputs, keep_params, name)
        forward: Callable[..., Any] = graph_module.forward
        return forward

    torch._dynamo.reset()
    with torch.no_grad():
        compiled: Callable[..., Any] = torch.compile(model, backend=capture)
        compiled(*params, **kwargs)
    return IRModule(functions)


def _captured(
    graph_module: Any, example_inputs: Sequence[Any], keep_params: bool, name: str
) -> Any:
    """A graph as a function; what TorchDynamo lifted out of the model's modules goes back."""
    weights = lifted_weights(graph_module, example_inputs)
    info = [
        (tuple(tensor.shape), tensor.dtype)
        for i, tensor in enumerate(example_inputs)
        if i not in weights and hasattr(tensor, "shape")
    ]
    importer = TorchFXImporter()
    mod = importer.from_fx(
        graph_module, info, keep_params, unwrap_unit_return_tuple=True, no_bind_return_tuple=False,
        bound=weights,
    )  # fmt: skip
    return mod["main"].with_attr("global_symbol", name)
