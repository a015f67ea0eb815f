"""Operators without a converter, written in simpler ones as torch itself decomposes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from typing import Any

from tvm.error import OpNotImplemented, TVMError
from tvm.relay.expr import Constant
from tvm.relay.frontend.common import ExprFolder, infer_dtype, infer_shape

from .complex_tensors import Complex
from .fx import FxRunner, as_constant, find_converter, writes
from .registry import Converter, as_number, is_tensor, kind_of, torch_dtype
from .symbolic_sizes import SymbolicSizes, traced_for_sizes
from .tree import mapped


def decomposing_runner(converters: Mapping[str, Converter], fallback: bool = False) -> FxRunner:
    """A runner of graphs that decomposes what has no converter."""
    folder = ExprFolder()
    decomposer = Decomposer(converters, folder)
    return FxRunner(converters, decomposer.apply, folder, decomposer.knows, fallback)


class Decomposer:
    """Traces torch's decompositions of operators for the shapes at hand."""

    def __init__(self, converters: Mapping[str, Converter], folder: ExprFolder) -> None:
        self.converters = converters
        self.runner = FxRunner(converters, self.apply, folder, self.knows)
        self._open: list[str] = []  # the operators being decomposed
        self._rules: dict[Any, Any] | None = None

    def knows(self, overload: Any) -> bool:
        """Whether torch can write an operator in simpler ones, or compute it now."""
        return _makes_constants(overload) or overload in self.rules() or overload._can_decompose()

    def rules(self) -> dict[Any, Any]:
        """Torch's decompositions of the operators that have no converter."""
        if self._rules is None:
            from torch._decomp import decomposition_table

            self._rules = {
                op: rule
                for op, rule in decomposition_table.items()
                if hasattr(op, "_schema") and find_converter(self.converters, op) is None
            }
        return self._rules

    def apply(self, overload: Any, arguments: Sequence[Any]) -> Any:
        """The results of an operator on expressions and numbers."""
        name = str(overload)
        if name in self._open or not self.knows(overload):
            raise OpNotImplemented(
                f"the PyTorch importer requires operators it knows, got {kind_of(overload)}",
                hint="pass custom_convert_map={name: function(inputs, types) -> expr}",
            )
        if _makes_constants(overload):
            return _computed(overload, arguments)
        self._open.append(name)
        try:
            module, tensors = self._traced(overload, arguments)
            return self.runner.run(module, tensors)
        finally:
            self._open.pop()

    def _traced(self, overload: Any, arguments: Sequence[Any]) -> tuple[Any, list[Any]]:
        """The decomposition as a graph of the tensors among the arguments."""
        from torch.utils import _pytree

        leaves, spec = _pytree.tree_flatten(_as_torch_takes(overload, arguments))
        positions = [
            i for i, leaf in enumerate(leaves) if is_tensor(leaf) or isinstance(leaf, Complex)
        ]

        def call(*tensors: Any) -> Any:
            filled = list(leaves)
            for position, tensor in zip(positions, tensors, strict=True):
                filled[position] = tensor
            return _called(overload, _pytree.tree_unflatten(filled, spec))

        tensors = [leaves[i] for i in positions]
        try:
            module = traced_for_sizes(lambda mode, sizes: self._graph(call, mode, tensors, sizes))
        except TVMError:
            raise
        except Exception as error:
            text = (str(error).strip().splitlines() or [""])[0]
            raise OpNotImplemented(
                f"{kind_of(overload)} has no converter, and torch cannot write it in simpler "
                f"operators here: {type(error).__name__}: {text}"
            ) from error
        return module, tensors

    def _graph(self, call: Any, mode: Any, tensors: Sequence[Any], sizes: SymbolicSizes) -> Any:
        """The graph of a function without writes to tensors."""
        import torch
        from torch._dispatch.python import enable_python_dispatcher
        from torch.fx.experimental.proxy_tensor import make_fx

        with torch.no_grad(), mode:
            fakes = [_fake(tensor, sizes) for tensor in tensors]
        # kernels in C++ take sizes as numbers, their equals in Python also symbols
        symbolic = enable_python_dispatcher() if sizes.count else nullcontext()
        with torch.no_grad(), mode, symbolic:
            module = make_fx(call, decomposition_table=self.rules())(*fakes)
            if writes(module):
                pure = torch.func.functionalize(lambda *values: module.forward(*values))
                module = make_fx(pure, decomposition_table=self.rules())(*fakes)
        return module


def _makes_constants(overload: Any) -> bool:
    """Whether an operator makes a tensor of numbers alone, the same one each time."""
    import torch

    schema = overload._schema
    return (
        [str(result.type) for result in schema.returns] == ["Tensor"]
        and not any("Tensor" in str(argument.type) for argument in schema.arguments)
        and torch.Tag.nondeterministic_seeded not in overload.tags
    )


def _computed(overload: Any, arguments: Sequence[Any]) -> Any:
    """The constant that torch makes of numbers."""
    values = _as_torch_takes(overload, arguments)
    if any(is_tensor(value) for value in values):
        raise OpNotImplemented(
            f"{kind_of(overload)} requires numbers that are known at import, got one that the run "
            "computes",
            hint="trace the model with inputs of the shapes that it will be used with",
        )
    return as_constant(_called(overload, values))


def _as_torch_takes(overload: Any, arguments: Sequence[Any]) -> list[Any]:
    schema = overload._schema.arguments
    return [_argument(a, value) for a, value in zip(schema, arguments, strict=False)]


def _called(overload: Any, values: Sequence[Any]) -> Any:
    """The results of an operator for arguments in the order of its schema."""
    schema = overload._schema.arguments
    count = sum(not argument.kwarg_only for argument in schema)
    keywords = {a.name: v for a, v in zip(schema, values, strict=False) if a.kwarg_only}
    return overload(*values[:count], **{k: v for k, v in keywords.items() if v is not None})


def _argument(argument: Any, value: Any) -> Any:
    """Numbers where the schema has numbers, element types where it has types."""
    kind = str(argument.type)
    if value is None:
        return None
    if "Tensor" not in kind:
        value = mapped(value, as_number)
    if argument.name == "dtype" and isinstance(value, int):
        import torch

        return getattr(torch, torch_dtype(value))
    return value


def _fake(tensor: Any, sizes: SymbolicSizes) -> Any:
    import torch

    if isinstance(tensor, Complex):
        part = _fake(tensor.real, sizes)
        return torch.empty(part.shape, dtype=part.dtype.to_complex())
    dtype = infer_dtype(tensor)
    if isinstance(tensor, Constant) and dtype == "float64" and not infer_shape(tensor):
        dtype = "float32"  # tracing writes numbers so
    return torch.empty(sizes.of(infer_shape(tensor)), dtype=getattr(torch, dtype))
