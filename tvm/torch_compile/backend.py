"""``torch.compile(model, backend="pytvm")``: graphs of TorchDynamo, compiled for each shape.

Where gradients are needed, the graph and that of its gradients are compiled. Weights are
constants of the compiled code for as long as nobody writes to them. Inputs and outputs share the
memory of PyTorch's tensors.
"""

from __future__ import annotations

import inspect
import threading
import warnings
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch._dynamo.backends.common import aot_autograd
from torch._dynamo.exc import TorchDynamoException
from torch._functorch._aot_autograd.utils import make_boxed_func
from torch.fx.experimental.symbolic_shapes import GuardOnDataDependentSymNode
from torch.nn.attention import SDPBackend, sdpa_kernel

from tvm.error import TVMError

from .graph import numbers_read, sampled_dropout, with_numbers
from .options import Options
from .program import Program


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
        ``target`` ("llvm -mcpu=native"), ``opt_level`` (3), ``max_shapes`` (16: programs that are
        kept of each graph), ``trials`` (0: candidates of each kernel that AutoTVM measures) and
        ``tuning_records`` (a file of AutoTVM's records, which decide and which new ones are added
        to).
    mode : str, optional
        "default"; "reduce-overhead", which is the same here, since calls run without Python and
        without copies already; "max-autotune" (or "max-autotune-no-cudagraphs"), which measures 64
        candidates of each kernel, in minutes.

    Returns
    -------
    Callable
        The compiled graph. Each new shape is compiled at its first call. A graph that cannot be
        compiled runs in PyTorch, with a warning that says why.

    Raises
    ------
    TVMError
        If an option is not known, or tensors are not on the CPU.
    """
    checked = Options.of(mode, options)
    tensors = [value for value in example_inputs if isinstance(value, torch.Tensor)]
    if elsewhere := {str(t.device) for t in tensors if t.device.type != "cpu"}:
        raise TVMError(f"backend pytvm requires tensors on the CPU, got {', '.join(elsewhere)}")
    if torch.is_grad_enabled() and any(tensor.requires_grad for tensor in tensors):
        return _with_gradients(module, example_inputs, checked)
    return CompiledGraph(module, checked, _weights_of(module))


def _with_gradients(
    module: torch.fx.GraphModule, example_inputs: Sequence[Any], options: Options
) -> Callable[..., Any]:
    """The graph and that of its gradients, each compiled."""
    # weights that are trained would be constants for one step only
    weights = [] if _is_training(module) else _weights_of(module)

    def forward(part: torch.fx.GraphModule, _: Sequence[Any]) -> Callable[..., Any]:
        count = len(_placeholders(part))
        found = weights if count == len(weights) else [False] * count
        return _boxed(CompiledGraph(part, options, found))

    def backward(part: torch.fx.GraphModule, _: Sequence[Any]) -> Callable[..., Any]:
        return _boxed(CompiledGraph(part, options, [False] * len(_placeholders(part))))

    with sdpa_kernel(SDPBackend.MATH):  # attention as operators that have gradients
        compile_both = aot_autograd(
            fw_compiler=forward,
            bw_compiler=backward,
            decompositions={torch.ops.aten.native_dropout.default: sampled_dropout},
        )
        try:
            both: Callable[..., Any] = compile_both(module, example_inputs)
        except TorchDynamoException:  # it wants to capture the graph again
            raise
        except Exception as error:  # an operator has no derivative
            _warn_of_fallback(error)
            return module.forward
    return both


def _boxed(graph: CompiledGraph) -> Callable[..., Any]:
    made: Callable[..., Any] = make_boxed_func(graph)
    return made


def _placeholders(module: torch.fx.GraphModule) -> list[torch.fx.Node]:
    return [node for node in module.graph.nodes if node.op == "placeholder"]


def _weights_of(module: torch.fx.GraphModule) -> list[bool]:
    """Which inputs TorchDynamo made of parameters and buffers of a module."""
    return [
        any(kind in node.name for kind in ("_parameters_", "_buffers_"))
        for node in _placeholders(module)
    ]


def _is_training(module: torch.fx.GraphModule) -> bool:
    """Whether a function that differs in training, as dropout does, is called so."""
    return any(_trains(node) for node in module.graph.nodes if node.op == "call_function")


def _trains(node: torch.fx.Node) -> bool:
    if isinstance(node.target, str):
        return False
    try:
        signature = inspect.signature(node.target)
    except (TypeError, ValueError):  # functions in C have none
        return False
    if "training" not in signature.parameters:
        return False
    bound = signature.bind(*node.args, **node.kwargs)
    bound.apply_defaults()
    return bound.arguments["training"] is True


class CompiledGraph:
    """A graph, compiled once for each combination of shapes."""

    def __init__(
        self, module: torch.fx.GraphModule, options: Options, are_weights: Sequence[bool]
    ) -> None:
        self.module = module
        self.options = options
        self._programs: OrderedDict[Any, Program] = OrderedDict()
        self._lock = threading.Lock()
        self._eager = False
        self._with_strides = False  # whether outputs are views of inputs
        self._numbers = numbers_read(module)  # positions of numbers that come as tensors
        self._with_numbers = False  # whether what is computed depends on them
        self._are_weights = list(are_weights)

    def __call__(self, *args: Any) -> Any:
        """Run the graph; what cannot be compiled runs in PyTorch."""
        if self._eager:
            return self.module.forward(*args)
        with self._lock:
            try:
                program = self._program(args)
            except Exception as error:
                self._eager = True
                _warn_of_fallback(error)
            else:
                if program.takes(args):
                    return program.run(args)
        return self.module.forward(*args)

    def _program(self, args: Sequence[Any]) -> Program:
        found = self._programs.get(key := self._key(args))
        if found is not None and found.is_valid(args):
            self._programs.move_to_end(key)
            return found
        if found is not None:  # somebody trains the weights: they become inputs
            self._are_weights = [False] * len(self._are_weights)
        try:
            made = self._made(args)
        except GuardOnDataDependentSymNode:
            if self._with_numbers or not self._numbers:
                raise
            self._with_numbers = True
            made = self._made(args)
        self._with_strides |= made.gives_views
        self._programs[self._key(args)] = made
        if len(self._programs) > self.options.max_shapes:
            self._programs.popitem(last=False)
        return made

    def _made(self, args: Sequence[Any]) -> Program:
        module = self.module
        if self._with_numbers:
            module = with_numbers(module, {i: args[i].item() for i in self._numbers})
        return Program(module, args, self._are_weights, self.options)

    def _key(self, args: Sequence[Any]) -> Any:
        numbers = [args[i].item() for i in self._numbers] if self._with_numbers else []
        return (*[_signature(arg, self._with_strides) for arg in args], *numbers)


def _warn_of_fallback(error: Exception) -> None:
    warnings.warn(f"pytvm leaves a graph to PyTorch: {_reason(error)}", stacklevel=3)


def _reason(error: Exception) -> str:
    """What an error says on its first line, and of which operator."""
    first = (str(error).strip().splitlines() or [repr(error)])[0]
    context = error.context if isinstance(error, TVMError) else []
    return f"{first} (in {', '.join(context)})" if context else first


def _signature(value: Any, with_strides: bool) -> Any:
    if not isinstance(value, torch.Tensor):
        return value
    return (tuple(value.shape), value.dtype, value.stride() if with_strides else None)
