"""Running an FX graph of ATen operators with the converters: each node's value as an expression."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tvm.error import OpNotImplemented, TVMError, suggest
from tvm.ir.expr import RelayExpr
from tvm.relay.frontend.common import (
    ExprFolder,
    Unsupported,
    constant,
    set_span,
    static_or,
    unsupported_operators,
)
from tvm.relay.op.packed_call import OPEN
from tvm.runtime.foreign.torch_call import to_numpy

from .complex_tensors import Complex, complex_constant
from .fallback import torch_call
from .folding import folded
from .higher_order import higher_order, is_higher_order
from .nodes import tensors_in
from .registry import Converter, dtype_number, is_tensor, kind_of
from .strided import in_memory_order

_HINT = (
    "pass custom_convert_map={name: function(inputs, types) -> expr}, or let PyTorch compute them "
    "with fallback=True"
)
# from an operator of torch without a converter and its arguments: its results
Decompose = Callable[[Any, Sequence[Any]], Any]


def find_converter(converters: Mapping[str, Converter], overload: Any) -> Converter | None:
    """The converter of an overload, or that of all overloads; views and copies are the same."""
    kind = kind_of(overload)
    name = overload._schema.overload_name
    for candidate in (f"{kind}.{name}", kind, kind.removesuffix("_copy"), f"{kind}_"):
        if candidate in converters:
            return converters[candidate]
    if kind.endswith("_") and not kind.endswith("__"):
        return converters.get(kind[:-1])
    return None


def writes(module: Any) -> bool:
    """Whether operators of a graph write to tensors in place."""
    return any(
        node.op == "call_function" and _is_overload(node.target) and node.target._schema.is_mutable
        for node in module.graph.nodes
    )


def full_arguments(overload: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[Any]:
    """All arguments in the order of the schema, defaults filled in, as converters take them."""
    return [_plain(value) for value in ordered_arguments(overload, args, kwargs)]


def ordered_arguments(overload: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[Any]:
    """All arguments in the order of the schema, defaults filled in, as torch takes them."""
    result = []
    for index, argument in enumerate(overload._schema.arguments):
        if index < len(args) and not argument.kwarg_only:
            value = args[index]
        elif argument.name in kwargs:
            value = kwargs[argument.name]
        else:
            value = argument.default_value if argument.has_default_value() else None
        result.append(value)
    return result


def _plain(value: Any) -> Any:
    """Element types as torch's numbers; what says nothing about values is None."""
    if is_tensor(value) or value is None:
        return value
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    kind = type(value)
    if kind.__module__.startswith("torch") and kind.__name__ in ("layout", "memory_format"):
        return None
    if kind.__name__ == "device":
        return None
    return dtype_number(value) if kind.__name__ == "dtype" else value


@dataclass
class FxRunner:
    """Values of the nodes of FX graphs."""

    converters: Mapping[str, Converter]
    decompose: Decompose
    folder: ExprFolder
    knows: Callable[[Any], bool]  # what decompose takes
    fallback: bool = False  # whether torch computes what is unknown
    left: set[str] = field(default_factory=set)  # operators that it computes

    def run(self, module: Any, inputs: Sequence[Any]) -> Any:
        """The outputs of a graph module, nested as it nests them."""
        self._check(module.graph)
        values: dict[Any, Any] = {}
        remaining = iter(inputs)
        for node in module.graph.nodes:
            if node.op == "placeholder":
                values[node] = next(remaining)
            elif node.op == "get_attr":
                values[node] = self._attribute(module, node.target)
            elif node.op == "output":
                return _mapped(node.args[0], values)
            else:
                values[node] = self._call(node, values)
                for tensor in tensors_in(values[node]):
                    set_span(tensor, _span_of(node))
        return None

    def _check(self, graph: Any) -> None:
        """Refuse the graph with one error if operators are unknown."""
        unknown = [
            node for node in graph.nodes
            if node.op == "call_function" and _is_overload(node.target)
            and find_converter(self.converters, node.target) is None
            and not self.knows(node.target) and not self._leaves_to_torch(node)
        ]  # fmt: skip
        if unknown:
            raise unsupported_operators("PyTorch", [
                Unsupported(
                    kind_of(n.target), n.name, [_input_text(a) for a in n.all_input_nodes],
                    suggest(kind_of(n.target), self.converters),
                )
                for n in unknown
            ], _HINT)  # fmt: skip

    def _attribute(self, module: Any, target: str) -> Any:
        found = module
        for part in target.split("."):
            found = getattr(found, part)
        return as_constant(found) if hasattr(found, "detach") else found

    def _call(self, node: Any, values: Mapping[Any, Any]) -> Any:
        args, kwargs = _mapped(node.args, values), _mapped(node.kwargs, values)
        try:
            if not _is_overload(node.target):
                return self.fold_results(self._python_call(node, args, kwargs))
            arguments = full_arguments(node.target, args, kwargs)
            if kind_of(node.target) == "aten::as_strided":
                arguments = _strided_arguments(node, arguments)
            if wants_no_indices(node):
                pool = self.converters[kind_of(node.target).removesuffix("_with_indices")]
                return [self.fold_results(pool(*arguments)), None]
            return self.fold_results(self.convert(node.target, arguments))
        except OpNotImplemented as error:
            if self._leaves_to_torch(node):
                return self._torch_results(node, ordered_arguments(node.target, args, kwargs))
            raise error.add_context(f"PyTorch node {node.name} ({node.target})") from None
        except TVMError as error:
            raise error.add_context(f"PyTorch node {node.name} ({node.target})") from None
        except (TypeError, RuntimeError) as error:
            text = f"{node.target} cannot be imported: {error}"
            raise TVMError(text).add_context(f"PyTorch node {node.name}") from error

    def _python_call(self, node: Any, args: Any, kwargs: Any) -> Any:
        """Python's own functions: items of lists, and arithmetic on sizes."""
        if node.op != "call_function":
            raise TVMError(
                f"node {node.name} is a {node.op} of {node.target}, an ATen operator is required",
                hint="export the model with torch.export.export",
            )
        if str(node.target) == "with_effects":
            return self._ordered_call(args, kwargs)
        if is_higher_order(node.target):
            return higher_order(self.run, str(node.target), [*args, *kwargs.values()])
        if node.target is operator.getitem or not any(is_tensor(a) for a in args):
            return node.target(*args, **kwargs)
        if (name := _ON_SIZES.get(node.target.__name__)) is not None:
            return self.converters[f"aten::{name}"](*args)
        raise TVMError(f"node {node.name} calls {node.target} on a tensor, an operator is required")

    def _ordered_call(self, args: Sequence[Any], kwargs: Any) -> list[Any]:
        """An operator that torch keeps in order with others by tokens, which stay None."""
        token, overload, *operands = args
        results = self.convert(overload, full_arguments(overload, operands, kwargs))
        count = len(overload._schema.returns)
        return [token, *(results if count > 1 else [results][:count])]

    def _leaves_to_torch(self, node: Any) -> bool:
        """Whether torch may compute a node, and its results are tensors."""
        made = node.meta.get("val")
        results = made if isinstance(made, (list, tuple)) else [made]
        return self.fallback and all(hasattr(result, "shape") for result in results)

    def _torch_results(self, node: Any, arguments: Sequence[Any]) -> Any:
        made = node.meta["val"]
        results = list(made) if isinstance(made, (list, tuple)) else [made]
        types = [
            (
                static_or(result.shape, OPEN),
                str(result.dtype).removeprefix("torch."),
            )
            for result in results
        ]
        found = self.fold_results(torch_call(node.target, arguments, types, self.left))
        return found if isinstance(made, (list, tuple)) else found[0]

    def convert(self, overload: Any, arguments: Sequence[Any]) -> Any:
        """The results of an operator."""
        found = find_converter(self.converters, overload)
        return self.decompose(overload, arguments) if found is None else found(*arguments)

    def fold_results(self, result: Any) -> Any:
        """Constant parts computed, types inferred, tuples as lists."""
        return folded(result, self.folder)


def _span_of(node: Any) -> str:
    """The path of the module that a node belongs to, and its name: ``layer1.conv/convolution``."""
    modules = node.meta.get("nn_module_stack") or {}
    path = next(reversed([str(path) for path, _ in modules.values()]), "")
    return f"{path}/{node.name}" if path else str(node.name)


def as_constant(tensor: Any) -> RelayExpr | Complex:
    """A tensor of torch as a constant."""
    array = to_numpy(tensor)
    return complex_constant(array) if array.dtype.kind == "c" else constant(array)


def wants_no_indices(node: Any) -> bool:
    """Whether only the maxima of a pooling with indices are used."""
    return kind_of(node.target).endswith("d_with_indices") and all(
        user.target is operator.getitem and user.args[1] == 0 for user in node.users
    )


def _is_overload(target: Any) -> bool:
    return hasattr(target, "_schema")


def _strided_arguments(node: Any, arguments: Sequence[Any]) -> list[Any]:
    data = node.args[0].meta["val"]
    strides = data.stride()
    is_dynamic = any(type(step) is not int for step in strides)
    layout = None if is_dynamic and data.is_contiguous() else strides
    return in_memory_order(arguments, layout, not data.storage_offset())


_ON_SIZES = {
    "add": "add", "sub": "sub", "mul": "mul", "floordiv": "floor_divide", "mod": "remainder",
    "truediv": "div", "pow": "pow", "neg": "neg", "sym_max": "maximum", "sym_min": "minimum",
    "sym_float": "Float", "eq": "eq", "ne": "ne", "lt": "lt", "le": "le", "gt": "gt", "ge": "ge",
    "sym_not": "logical_not", "and_": "logical_and", "or_": "logical_or",
}  # fmt: skip


def _mapped(value: Any, values: Mapping[Any, Any]) -> Any:
    if isinstance(value, (list, tuple)):
        return [_mapped(item, values) for item in value]
    if isinstance(value, dict):
        return {key: _mapped(item, values) for key, item in value.items()}
    if isinstance(value, slice):
        return slice(*[_mapped(v, values) for v in (value.start, value.stop, value.step)])
    return values[value] if type(value).__name__ == "Node" else value


def _input_text(node: Any) -> str:
    found = node.meta.get("val")
    return f"{found.dtype}{list(found.shape)}" if hasattr(found, "shape") else node.name
