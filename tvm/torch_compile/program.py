"""A graph of TorchDynamo compiled for certain shapes: built, and run on PyTorch's tensors."""

from __future__ import annotations

import json
import operator
from collections.abc import Callable, Sequence
from typing import Any

import torch

import tvm
from tvm import relay
from tvm.contrib.graph_executor import GraphModule
from tvm.error import OpNotImplemented, RuntimeValueError
from tvm.ir.module import IRModule
from tvm.relay.analysis.infer import tensor_type_of
from tvm.relay.backend.executor_factory import GraphExecutorFactoryModule
from tvm.relay.expr import Var, var
from tvm.relay.frontend.pytorch.complex_tensors import Complex, as_pairs, from_pairs
from tvm.relay.frontend.pytorch.exported import as_expr, run_fx
from tvm.relay.frontend.pytorch.fx import as_constant
from tvm.relay.frontend.pytorch.graph_types import PARTS_OF_COMPLEX
from tvm.relay.frontend.pytorch.registry import CONVERTERS, is_tensor

from .graph import flatten
from .options import Options
from .tuning import tuned

_ALIGNMENT = 64  # of the memory that kernels read and write


class Program:
    """A graph compiled for certain shapes and weights."""

    def __init__(
        self,
        module: torch.fx.GraphModule,
        args: Sequence[Any],
        are_weights: Sequence[bool],
        options: Options,
    ) -> None:
        self._flat = flat = flatten(module, args)
        are_weights = [*are_weights, *[False for _ in flat.draws]]
        args = [*args, *[draw.like for draw in flat.draws]]
        self._weights = {
            i: _state(arg) for i, arg in enumerate(args)
            if are_weights[i] and isinstance(arg, torch.Tensor) and i not in flat.written
        }  # fmt: skip
        self._variables = {
            f"in{i}": _variable(i, arg) for i, arg in enumerate(args)
            if isinstance(arg, torch.Tensor)
        }  # fmt: skip
        inputs = [self._input(i, arg) for i, arg in enumerate(args)]
        first = len(flat.written)
        results = [
            None if place - first in flat.shared else result
            for place, result in enumerate(_results(flat.module, inputs))
        ]
        # where a result comes from: None if the compiled code computes it
        self._sources = [_source_of(result, inputs) for result in results]
        self._are_complex = [isinstance(result, Complex) for result in results]
        values = [r for r, s in zip(results, self._sources, strict=True) if s is None]
        self._names: dict[int, str] = {}
        self._executor: GraphModule | None = None
        if values:
            self._build(values, args, options)

    @property
    def gives_views(self) -> bool:
        """Whether outputs share memory with inputs."""
        return any(shared.of_input for shared in self._flat.shared.values())

    def _input(self, position: int, value: Any) -> Any:
        if not isinstance(value, torch.Tensor):
            return value
        variable = self._variables[f"in{position}"]
        return from_pairs(variable) if value.is_complex() else variable

    def _build(self, values: list[Any], args: Sequence[Any], options: Options) -> None:
        """Make the executor, and note its inputs and the shapes and types of its outputs."""
        body = as_expr([as_pairs(v) if isinstance(v, Complex) else v for v in values])
        mod = IRModule.from_expr(relay.Function(list(self._variables.values()), body))
        params = {
            f"in{i}": tvm.nd.from_dlpack(_real(args[i].detach()).contiguous())
            for i in self._weights
        }
        with tvm.transform.PassContext(opt_level=options.opt_level), tuned(mod, params, options):
            library = relay.build(mod, target=options.target, params=params)
        self._executor = GraphModule(library["default"](tvm.cpu()))
        used = self._executor.get_input_info()[0]
        self._names = {
            i: f"in{i}" for i in range(len(args)) if i not in self._weights and f"in{i}" in used
        }
        assert isinstance(body, relay.Tuple)
        types = [tensor_type_of(v) for v in body.fields]
        self._makers = [(ty.concrete_shape, getattr(torch, ty.dtype)) for ty in types]
        assert isinstance(library, GraphExecutorFactoryModule)
        # results that came out equal are one in the graph, which writes to one place
        heads = [tuple(head) for head in json.loads(library.get_graph_json())["heads"]]
        self._copied = [
            heads.index(head) != i or not self._is_settable(i) for i, head in enumerate(heads)
        ]

    def _is_settable(self, output: int) -> bool:
        """Whether kernels write an output: it may be an input or a constant under another name."""
        assert self._executor is not None
        shape, dtype = self._makers[output]
        try:
            self._executor.set_output_zero_copy(
                output, tvm.nd.from_dlpack(torch.empty(shape, dtype=dtype))
            )
        except RuntimeValueError:
            return False
        return True

    def is_valid(self, args: Sequence[Any]) -> bool:
        """Whether the weights are still those that were compiled in."""
        return all([_state(args[i]) == state for i, state in self._weights.items()])

    def takes(self, args: Sequence[Any]) -> bool:
        """Whether each input that is written has memory of its own."""
        if not self._flat.written:
            return True
        owners = [a.untyped_storage().data_ptr() for a in args if isinstance(a, torch.Tensor)]
        written = [args[i].untyped_storage().data_ptr() for i in self._flat.written]
        return all([owners.count(owner) == 1 for owner in written if owner])

    def run(self, args: Sequence[Any]) -> Any:
        """The outputs of the graph for inputs of these shapes."""
        args = [*args, *[draw() for draw in self._flat.draws]]
        computed = iter(self._compute(args))
        values = [next(computed) if s is None else s(args) for s in self._sources]
        values = [
            torch.view_as_complex(value) if is_complex else value
            for value, is_complex in zip(values, self._are_complex, strict=True)
        ]
        for position, value in zip(self._flat.written, values, strict=False):
            args[position].copy_(value)
        outputs = values[len(self._flat.written) :]
        for i, strides in self._flat.strides.items():
            if i not in self._flat.shared:
                outputs[i] = _laid_out(outputs[i], strides)
        for i, shared in self._flat.shared.items():
            outputs[i] = shared.of((args if shared.of_input else outputs)[shared.source])
        return torch.utils._pytree.tree_unflatten(outputs, self._flat.structure)

    def _compute(self, args: Sequence[Any]) -> list[torch.Tensor]:
        if self._executor is None:
            return []
        kept = [_readable(args[i]) for i in self._names]
        for name, tensor in zip(self._names.values(), kept, strict=True):
            self._executor.set_input_zero_copy(name, tvm.nd.from_dlpack(tensor))
        outputs = [torch.empty(shape, dtype=dtype) for shape, dtype in self._makers]
        for i, (tensor, is_copied) in enumerate(zip(outputs, self._copied, strict=True)):
            if not is_copied:
                self._executor.set_output_zero_copy(i, tvm.nd.from_dlpack(tensor))
        self._executor.run()
        for i, (tensor, is_copied) in enumerate(zip(outputs, self._copied, strict=True)):
            if is_copied:
                self._executor.get_output(i, tvm.nd.from_dlpack(tensor))
        return outputs


def _results(module: torch.fx.GraphModule, inputs: Sequence[Any]) -> list[Any]:
    """The outputs as expressions."""
    (output,) = [node for node in module.graph.nodes if node.op == "output"]
    results = run_fx(module, inputs, CONVERTERS)
    return [_computed(n, r) for n, r in zip(output.args[0], results, strict=True)]


def _computed(node: Any, result: Any) -> Any:
    """A result of a node: converters leave out what only gradients need."""
    value = node.meta.get("val") if isinstance(node, torch.fx.Node) else None
    if result is not None or not isinstance(value, torch.Tensor):
        return result
    if value.numel():
        source = node.args[0] if node.target is operator.getitem else node
        raise OpNotImplemented(f"a result of {source.target} that gradients need is not computed")
    return as_constant(torch.zeros(value.shape, dtype=value.dtype))


def _source_of(result: Any, inputs: Sequence[Any]) -> Callable[[Sequence[Any]], Any] | None:
    """How to make a result that is a copy of an input, or no tensor."""
    if not is_tensor(result) and not isinstance(result, Complex):
        return lambda args: result
    place = next((i for i, given in enumerate(inputs) if result is given), None)
    return None if place is None else lambda args: _real(args[place]).clone()


def _variable(position: int, value: torch.Tensor) -> Var:
    dtype = str(value.dtype).removeprefix("torch.")
    pairs = PARTS_OF_COMPLEX.get(dtype)
    shape = (*value.shape, 2) if pairs else tuple(value.shape)
    return var(f"in{position}", shape=shape, dtype=pairs or dtype)


def _state(tensor: torch.Tensor) -> tuple[int, int]:
    """Changes when the tensor is written to or has other memory."""
    version = 0 if tensor.is_inference() else tensor._version
    return tensor.data_ptr(), version


def _laid_out(tensor: torch.Tensor, strides: Sequence[int]) -> torch.Tensor:
    """The tensor with its elements in another order in memory."""
    made = torch.empty_strided(tensor.shape, strides, dtype=tensor.dtype)
    return made.copy_(tensor)


def _real(tensor: torch.Tensor) -> torch.Tensor:
    """Complex numbers as pairs."""
    return torch.view_as_real(tensor.resolve_conj()) if tensor.is_complex() else tensor


def _readable(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor itself if kernels can read it as it lies in memory."""
    tensor = _real(tensor.detach()).contiguous()
    return tensor if tensor.data_ptr() % _ALIGNMENT == 0 else tensor.clone()
