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
from torch.fx.experimental.symbolic_shapes import GuardOnDataDependentSymNode

from tvm.error import TVMError, suggest

from .torch_graph import numbers_read, with_numbers
from .torch_program import Program


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
        self._with_strides = False  # whether outputs are views of inputs
        self._numbers = numbers_read(module)  # positions of numbers that come as tensors
        self._with_numbers = False  # whether what is computed depends on them
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
        target, level = self.options.target, self.options.opt_level
        return Program(module, args, self._are_weights, target, level)

    def _key(self, args: Sequence[Any]) -> Any:
        numbers = [args[i].item() for i in self._numbers] if self._with_numbers else []
        return (*[_signature(arg, self._with_strides) for arg in args], *numbers)


def _is_weight(placeholder: Any) -> bool:
    """Whether TorchDynamo made an input of a parameter or buffer of a module."""
    return any(kind in placeholder.name for kind in ("_parameters_", "_buffers_"))


def _signature(value: Any, with_strides: bool) -> Any:
    if not isinstance(value, torch.Tensor):
        return value
    return (tuple(value.shape), value.dtype, value.stride() if with_strides else None)
