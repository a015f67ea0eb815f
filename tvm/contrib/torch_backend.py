"""``torch.compile(model, backend="pytvm")``: graphs of TorchDynamo, compiled for each shape.

Weights are constants of the compiled code for as long as nobody writes to them. Inputs and
outputs share the memory of PyTorch's tensors.
"""

from __future__ import annotations

import threading
import warnings
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.proxy_tensor import make_fx

import tvm
from tvm import relay
from tvm.contrib.graph_executor import GraphModule
from tvm.error import TVMError, suggest
from tvm.ir.module import IRModule
from tvm.relay.expr import Var, var
from tvm.relay.frontend.pytorch.exported import as_expr, run_fx
from tvm.relay.frontend.pytorch.registry import CONVERTERS, is_tensor

_ALIGNMENT = 64  # of the memory that kernels read and write


@dataclass(frozen=True)
class Options:
    """What ``torch.compile(..., options={...})`` takes."""

    target: str = "llvm -mcpu=native"
    opt_level: int = 3
    max_shapes: int = 16  # of each graph; the oldest is dropped


def pytvm(
    module: torch.fx.GraphModule,
    example_inputs: Sequence[Any],
    *,
    options: Mapping[str, Any] | None = None,
    mode: str | None = None,
) -> Callable[..., Any]:
    """Compile a graph of TorchDynamo.

    Parameters
    ----------
    module : torch.fx.GraphModule
        The graph.
    example_inputs : sequence of tensors and numbers
        What it is called with first.
    options : dict, optional
        ``target``, ``opt_level`` and ``max_shapes``.
    mode : str, optional
        Only "default".

    Returns
    -------
    Callable
        The compiled graph. Each new shape is compiled at its first call.

    Raises
    ------
    TVMError
        If gradients are needed, or tensors are not on the CPU.
    """
    if mode not in (None, "default"):
        raise TVMError(f'backend pytvm has the mode "default", got {mode!r}')
    tensors = [value for value in example_inputs if isinstance(value, torch.Tensor)]
    if torch.is_grad_enabled() and any(tensor.requires_grad for tensor in tensors):
        raise TVMError(
            "backend pytvm requires graphs without gradients, an input or weight needs one",
            hint="call the model under torch.no_grad() or torch.inference_mode()",
        )
    if elsewhere := {str(t.device) for t in tensors if t.device.type != "cpu"}:
        raise TVMError(f"backend pytvm requires tensors on the CPU, got {', '.join(elsewhere)}")
    return CompiledGraph(module, _options(options))


def _options(given: Mapping[str, Any] | None) -> Options:
    known = Options.__dataclass_fields__
    if unknown := [name for name in given or {} if name not in known]:
        hint = suggest(unknown[0], known)
        raise TVMError(
            f"backend pytvm has the options {', '.join(known)}, got {unknown[0]!r}", hint=hint
        )
    return Options(**(given or {}))


class CompiledGraph:
    """A graph, compiled once for each combination of shapes."""

    def __init__(self, module: torch.fx.GraphModule, options: Options) -> None:
        self.module = module
        self.options = options
        self._programs: OrderedDict[Any, Program] = OrderedDict()
        self._lock = threading.Lock()
        self._eager = False
        self._are_weights = [_is_weight(node) for node in module.graph.nodes
                             if node.op == "placeholder"]  # fmt: skip

    def __call__(self, *args: Any) -> Any:
        """Run the graph; what cannot be compiled runs in PyTorch."""
        if self._eager:
            return self.module.forward(*args)
        with self._lock:
            try:
                program = self._program(args)
            except Exception as error:
                self._eager = True
                reason = str(error).strip().splitlines()[0] if str(error) else repr(error)
                warnings.warn(f"pytvm leaves a graph to PyTorch: {reason}", stacklevel=2)
            else:
                return program.run(args)
        return self.module.forward(*args)

    def _program(self, args: Sequence[Any]) -> Program:
        key = tuple([_signature(arg) for arg in args])
        found = self._programs.get(key)
        if found is not None and found.is_valid(args):
            self._programs.move_to_end(key)
            return found
        if found is not None:  # somebody trains the weights: they become inputs
            self._are_weights = [False] * len(self._are_weights)
        self._programs[key] = made = Program(self.module, args, self._are_weights, self.options)
        if len(self._programs) > self.options.max_shapes:
            self._programs.popitem(last=False)
        return made


def _is_weight(placeholder: Any) -> bool:
    """Whether TorchDynamo made an input of a parameter or buffer of a module."""
    return any(kind in placeholder.name for kind in ("_parameters_", "_buffers_"))


def _signature(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return (tuple(value.shape), value.dtype)
    return value


class Program:
    """A graph compiled for certain shapes and weights."""

    def __init__(
        self, module: torch.fx.GraphModule, args: Sequence[Any], are_weights: Sequence[bool],
        options: Options,
    ) -> None:  # fmt: skip
        flat, written, self._structure = _traced(module, args)
        self._weights = {
            i: _state(arg) for i, arg in enumerate(args)
            if are_weights[i] and isinstance(arg, torch.Tensor) and i not in written
        }  # fmt: skip
        inputs = [_variable(i, arg) for i, arg in enumerate(args)]
        results = run_fx(flat, inputs, CONVERTERS)
        self._results = [_Result.of(r, inputs) for r in results]
        self._written = written
        self._executor, self._names, self._makers = self._build(
            inputs, [r.value for r in self._results if r.source is None], args, options
        )

    def _build(
        self, inputs: Sequence[Any], values: Sequence[Any], args: Sequence[Any], options: Options
    ) -> tuple[Any, dict[int, str], list[tuple[Any, Any]]]:
        """An executor, its inputs by position, and shapes and types of its outputs."""
        if not values:
            return None, {}, []
        variables = [v for v in inputs if isinstance(v, Var)]
        body = as_expr(list(values))
        mod = IRModule.from_expr(relay.Function(variables, body))
        params = {f"in{i}": tvm.nd.from_dlpack(args[i].detach().contiguous())
                  for i in self._weights}  # fmt: skip
        with tvm.transform.PassContext(opt_level=options.opt_level):
            library = relay.build(mod, target=options.target, params=params)
        executor = GraphModule(library["default"](tvm.cpu()))
        used = executor.get_input_info()[0]
        names = {
            i: f"in{i}" for i, arg in enumerate(args)
            if isinstance(arg, torch.Tensor) and i not in self._weights and f"in{i}" in used
        }  # fmt: skip
        types = [relay.frontend.common.infer_type(v) for v in body.fields]
        makers = [(tuple(int(d) for d in ty.shape), getattr(torch, ty.dtype)) for ty in types]
        return executor, names, makers

    def is_valid(self, args: Sequence[Any]) -> bool:
        """Whether the weights are still those that were compiled in."""
        return all([_state(args[i]) == state for i, state in self._weights.items()])

    def run(self, args: Sequence[Any]) -> Any:
        """The outputs of the graph for inputs of these shapes."""
        computed = iter(self._compute(args))
        values = [next(computed) if r.source is None else r.source_of(args) for r in self._results]
        for position, value in zip(self._written, values, strict=False):
            args[position].copy_(value)
        return torch.utils._pytree.tree_unflatten(values[len(self._written) :], self._structure)

    def _compute(self, args: Sequence[Any]) -> list[torch.Tensor]:
        if self._executor is None:
            return []
        kept = [_readable(args[i]) for i in self._names]
        for name, tensor in zip(self._names.values(), kept, strict=True):
            self._executor.set_input_zero_copy(name, tvm.nd.from_dlpack(tensor))
        outputs = [torch.empty(shape, dtype=dtype) for shape, dtype in self._makers]
        for i, tensor in enumerate(outputs):
            self._executor.set_output_zero_copy(i, tvm.nd.from_dlpack(tensor))
        self._executor.run()
        return outputs


@dataclass(frozen=True)
class _Result:
    """An output: an expression, or an input or a Python value that is passed through."""

    value: Any
    source: Callable[[Sequence[Any]], Any] | None = None

    @classmethod
    def of(cls, value: Any, inputs: Sequence[Any]) -> _Result:
        if not is_tensor(value):
            return cls(value, lambda args: value)
        place = next((i for i, given in enumerate(inputs) if value is given), None)
        return cls(value) if place is None else cls(value, lambda args: args[place])

    def source_of(self, args: Sequence[Any]) -> Any:
        assert self.source is not None
        return self.source(args)


def _traced(
    module: torch.fx.GraphModule, args: Sequence[Any]
) -> tuple[torch.fx.GraphModule, list[int], Any]:
    """The graph in ATen operators without writes; the inputs it writes, whose values come first."""
    structure: list[Any] = []

    def flat(*values: Any) -> list[Any]:
        leaves, spec = torch.utils._pytree.tree_flatten(module.forward(*values))
        structure.append(spec)
        return leaves

    with torch.no_grad(), FakeTensorMode(allow_non_fake_inputs=True) as mode:
        fakes = [mode.from_tensor(a.detach()) if isinstance(a, torch.Tensor) else a for a in args]
        pure = torch.func.functionalize(flat, remove="mutations_and_views")
        traced = make_fx(pure)(*fakes)
    return traced, _returned_writes(traced), structure[-1]


def _returned_writes(traced: torch.fx.GraphModule) -> list[int]:
    """Make values that are copied into inputs the first outputs instead."""
    placeholders = [node for node in traced.graph.nodes if node.op == "placeholder"]
    (output,) = [node for node in traced.graph.nodes if node.op == "output"]
    written, values = [], []
    for node in list(traced.graph.nodes):
        if node.target is torch.ops.aten.copy_.default and node.args[0] in placeholders:
            written.append(placeholders.index(node.args[0]))
            values.append(node.args[1])
            node.replace_all_uses_with(node.args[1])
            traced.graph.erase_node(node)
    output.args = ([*values, *output.args[0]],)
    return written


def _variable(position: int, value: Any) -> Any:
    if not isinstance(value, torch.Tensor):
        return value
    dtype = str(value.dtype).removeprefix("torch.")
    return var(f"in{position}", shape=tuple(value.shape), dtype=dtype)


def _state(tensor: torch.Tensor) -> tuple[int, int]:
    """Changes when the tensor is written to or has other memory."""
    version = 0 if tensor.is_inference() else tensor._version
    return tensor.data_ptr(), version


def _readable(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor itself if kernels can read it as it lies in memory."""
    tensor = tensor.detach().contiguous()
    return tensor if tensor.data_ptr() % _ALIGNMENT == 0 else tensor.clone()
