"""From an ONNX graph to relay expressions: names, inputs, nodes, functions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import Any, cast

import numpy as np

from tvm.error import (
    OpAttributeInvalid,
    OpAttributeUnImplemented,
    OpNotImplemented,
    TVMError,
    suggest,
)
from tvm.ir.expr import RelayExpr
from tvm.relay.analysis.infer import infer_type_of
from tvm.relay.expr import Var, var
from tvm.relay.frontend.common import ExprFolder, as_exprs, constant, set_span
from tvm.relay.frontend.dynamic_extents import with_inferred_extents, with_static_extents
from tvm.relay.ty import Any as AnyDim
from tvm.runtime import ndarray as nd

from .fallback import reference_call
from .functions import Attributes, function_of, type_proto_of
from .registry import (
    CONVERTERS,
    EmptyOptional,
    OnnxNode,
    StringTensor,
    TensorSequence,
    Value,
    ValueRequired,
    key_of,
)
from .shape_inference import Dims
from .strings import converted_strings, string_tensor
from .tensors import attribute_value, tensor_array, tensor_dtype

Opsets = Mapping[str, int]


@dataclass(frozen=True)
class _Unread:
    """A weight that becomes a constant when a node uses it."""

    tensor: Any


class UnknownInputError(TVMError, AssertionError):
    """A shape or data type is given for an input that the model does not have; once an assertion."""


@dataclass
class GraphImporter:
    """Names of an ONNX graph and the values they stand for."""

    shapes: Mapping[str, Sequence[int]]  # of inputs that the model leaves open
    dtype: str | Mapping[str, str]  # of inputs by name, or of those that the model has no type for
    opsets: Opsets  # the version of each domain
    freeze: bool  # make weights constants rather than parameters
    functions: Mapping[tuple[str, str], Any]  # the model's own, by domain and name
    bound: Mapping[str, Any]  # values of inputs that become constants
    like: Mapping[str, Any]  # values (arrays, lists of arrays, None) that inputs are shaped like
    folder_of: str  # the folder of external data
    fallback: bool  # let a reference compute what no converter can
    config: Mapping[str, Any]  # options of converters
    allow_dynamic: bool  # shapes may depend on values known only at run time
    dims: Mapping[str, Dims]  # of values of the main graph, as ONNX's shape inference knows them
    types: Mapping[str, int]  # ONNX's numbers of the types of values that are held wider

    def __post_init__(self) -> None:
        self.values: dict[str, Value | _Unread] = {}
        self.inputs: dict[str, Value] = {}
        self.params: dict[str, nd.NDArray] = {}
        self.folder = ExprFolder()
        self.attributes: Attributes = {}  # of the function that is being imported
        self.called: list[tuple[str, str]] = []  # the functions that are being imported
        self.left: set[str] = set()  # operators that a reference computes

    def run(self, graph: Any) -> list[Value]:
        """The outputs of the graph."""
        self._add_initializers(graph)
        self._add_inputs(graph)
        self._convert_nodes(graph)
        return [self._named(output.name) for output in graph.output]

    def subgraph(self, graph: Any, bound: Mapping[str, Value]) -> list[Value]:
        """The outputs of a subgraph; names of the outer graph stay visible."""
        with self._scope({**self.values, **bound}):
            self._add_initializers(graph)
            self._convert_nodes(graph)
            return [self._named(output.name) for output in graph.output]

    def _call(self, function: Any, view: OnnxNode) -> list[Value]:
        """The outputs of a function's body; of the outer graph it sees its inputs alone."""
        key = function.domain, function.name
        if key in self.called:
            raise TVMError(f"the ONNX function {function.name} calls itself, which none may")
        self.called.append(key)
        absent = [None] * (len(function.input) - len(view.inputs))
        inputs = zip(function.input, [*view.inputs, *absent], strict=False)
        opsets = {entry.domain: entry.version for entry in function.opset_import}
        defaults = {a.name: attribute_value(a) for a in function.attribute_proto}
        outer = self.opsets, self.attributes, self.dims, self.types
        with self._scope({name: value for name, value in inputs if value is not None}):
            self.opsets = {**self.opsets, **opsets}
            self.attributes = {**defaults, **view.attrs}
            self.dims, self.types = {}, {}  # its names are its own
            self._convert_nodes(function)
            results = [
                self._named(name) if name in self.values else EmptyOptional()
                for name in function.output
            ]
        self.opsets, self.attributes, self.dims, self.types = outer
        self.called.pop()
        return results

    @contextmanager
    def _scope(self, values: dict[str, Value | _Unread]) -> Iterator[None]:
        outer, self.values = self.values, values
        try:
            yield
        finally:
            self.values = outer

    def _named(self, name: str) -> Value:
        if name not in self.values:
            raise TVMError(f"the ONNX graph uses {name!r} before anything computes it")
        value = self.values[name]
        if isinstance(value, _Unread):
            value = self.values[name] = self._initializer(value.tensor)
        return value

    def _optional(self, name: str) -> Value | None:
        """An input of a node: None if it is left out, or left out of the function around."""
        if not name or (name not in self.values and self.called):
            return None
        return self._named(name)

    def _add_initializers(self, graph: Any) -> None:
        for tensor in graph.initializer:
            weight = _Unread(tensor) if self.freeze else self._initializer(tensor)
            self.values[tensor.name] = weight

    def _initializer(self, tensor: Any) -> Value:
        try:
            array = tensor_array(tensor, self.folder_of)
        except OpAttributeUnImplemented:
            raise
        except Exception as error:  # whatever the package or the file system says
            raise TVMError(f"the ONNX weight {tensor.name!r} cannot be read: {error}") from error
        if array.dtype.kind == "O":
            return string_tensor(array)
        if self.freeze or array.dtype.kind not in "fV":
            weight = constant(array)
        else:
            value = self.params[tensor.name] = nd.array(array)
            weight = var(tensor.name, shape=value.shape, dtype=value.dtype)
        set_span(weight, tensor.name)
        return weight

    def _add_inputs(self, graph: Any) -> None:
        weights = {tensor.name for tensor in graph.initializer}
        declared = [value for value in graph.input if value.name not in weights]
        names = [value.name for value in declared]
        for name in self.shapes:
            if name not in names and name not in self.values:
                raise UnknownInputError(
                    f"from_onnx got a shape for {name!r}, the model's inputs are {names}",
                    hint=suggest(name, names),
                )
        for name in self.dtype if isinstance(self.dtype, Mapping) else ():
            if name not in names:
                raise UnknownInputError(
                    f"from_onnx got a dtype for {name!r}, the model's inputs are {names}",
                    hint=suggest(name, names),
                )
        for value in declared:
            given = self.values[value.name] = self.inputs[value.name] = self._input(value)
            _set_spans(given, value.name)

    def _input(self, value: Any) -> Value:
        if value.name in self.bound:
            return _bound(self.bound[value.name])
        kind = value.type.WhichOneof("value")
        if value.name in self.like:
            return self._input_like(value.name, self.like[value.name])
        if kind not in ("tensor_type", None):
            raise TVMError(
                f"from_onnx requires tensors as inputs, {value.name!r} is a {kind[:-5]}",
                hint="its length has to be known: run it by tvm.contrib.onnx_backend",
            )
        return self._input_var(value)

    def _input_like(self, name: str, example: Any) -> Value:
        if example is None:
            return EmptyOptional()
        if isinstance(example, (list, tuple)):
            return TensorSequence(tuple([
                self._input_like(f"{name}.{i}", item) for i, item in enumerate(example)
            ]))  # fmt: skip
        found = nd.array(np.zeros((), example.dtype)).dtype
        return var(name, shape=example.shape, dtype=found)

    def _input_var(self, value: Any) -> Var:
        tensor = value.type.tensor_type
        dims = [
            d.dim_value if d.HasField("dim_value") and d.dim_value >= 0 else AnyDim()
            for d in tensor.shape.dim
        ]
        if not tensor.HasField("shape") and value.name not in self.shapes:
            raise TVMError(
                f"from_onnx requires the number of dimensions of the input {value.name!r}, which "
                "the model leaves open",
                hint=f"from_onnx(model, shape={{{value.name!r}: (...)}})",
            )
        shape = list(self.shapes.get(value.name, dims))
        is_number = not dims and len(shape) == 1  # which programs pass as a vector, too
        if tensor.HasField("shape") and len(shape) != len(dims) and not is_number:
            raise TVMError(
                f"from_onnx requires {len(dims)} dimensions for the input {value.name!r}, "
                f"got the shape {tuple(shape)}"
            )
        return var(value.name, shape=shape, dtype=self._input_dtype(value.name, tensor.elem_type))

    def _input_dtype(self, name: str, declared: int) -> str:
        """What the user says of this input, what the model says, or what the user says of all."""
        if isinstance(self.dtype, Mapping) and name in self.dtype:
            return self.dtype[name]
        if declared:
            return tensor_dtype(declared)
        return self.dtype if isinstance(self.dtype, str) else "float32"

    def _convert_nodes(self, graph: Any) -> None:
        """Convert in order; a weight that only one node uses is let go after it."""
        uses = Counter(name for node in graph.node for name in names_read(node))
        uses.update(getattr(value, "name", value) for value in graph.output)
        for node in in_order(graph.node):
            single = [
                name
                for name in node.input
                if uses[name] == 1 and isinstance(self.values.get(name), _Unread)
            ]
            for name in names_read(node):
                if name in self.values:
                    self._named(name)  # here, so that the scopes of subgraphs share it
            outputs = self._convert(node)
            for name, value in zip(node.output, outputs, strict=False):
                if name and not (
                    isinstance(value, EmptyOptional) and node.op_type not in _OPTIONALS
                ):
                    self.values[name] = value
            self.folder.forget([self.values.pop(name) for name in single])

    def _view(self, node: Any) -> OnnxNode:
        domain = "" if node.domain == "ai.onnx" else node.domain
        attrs = {}
        for attr in node.attribute:
            if not attr.ref_attr_name:
                attrs[attr.name] = attribute_value(attr)
            elif attr.ref_attr_name in self.attributes:
                attrs[attr.name] = self.attributes[attr.ref_attr_name]
        return OnnxNode(
            op_type=node.op_type,
            name=node.name or next((name for name in node.output if name), ""),
            inputs=[self._optional(name) for name in node.input],
            attrs=attrs,
            opset=self.opsets.get(domain, self.opsets.get("ai.onnx", 1) if not domain else 1),
            output_count=len(node.output),
            values=self.params,
            import_graph=self.subgraph,
            domain=domain,
            allow_dynamic=self.allow_dynamic,
            input_dims=[self.dims.get(name) for name in node.input],
            output_dims=[self.dims.get(name) for name in node.output],
            config=self.config,
            input_types=[self.types.get(name) for name in node.input],
        )

    def _convert(self, node: Any) -> list[Value]:
        view = self._view(node)
        try:
            local = self.functions.get((node.domain, node.op_type))
            if local is not None:
                return self._call(local, view)
            results = self._converted(node, view)
        except TVMError as error:
            raise error.add_context(f"ONNX node {view.name} ({node.op_type})") from None
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
            raise OpAttributeInvalid(
                f"{node.op_type} {view.name} cannot be imported: {error!r}",
                hint="its attributes or inputs do not fit the operator, if ONNX Runtime refuses "
                "the model too",
            ) from error

        for value in results:
            _set_spans(value, view.name)
        return results

    def _converted(self, node: Any, view: OnnxNode) -> list[Value]:
        """By a converter, by ONNX's own definition, or by a reference."""
        try:
            strings = converted_strings(node, view, self.opsets, self.attributes)
            if strings is not None:
                return self._fold_all(as_values(strings), view)
            if convert := CONVERTERS.get(key_of(node)):
                return self._fold_all(as_values(convert(view)), view)
            inputs = [type_proto_of(value) for value in view.inputs]
            return self._call(function_of(node, view, inputs, self.attributes), view)
        except (OpNotImplemented, OpAttributeUnImplemented) as error:
            if not self.fallback or isinstance(error, ValueRequired):
                raise
            results = iter(reference_call(node, view, self.opsets, self.attributes, self.left))
            return [self._fold(next(results)) if name else EmptyOptional() for name in node.output]

    def _fold_all(self, values: list[Value], view: OnnxNode) -> list[Value]:
        known = [*view.output_dims, *[None] * (len(values) - len(view.output_dims))]
        values = [
            _with_extents(v, dims) if isinstance(v, RelayExpr) else v
            for v, dims in zip(values, known, strict=False)
        ]
        tensors = iter(self.folder.fold_all([v for v in values if isinstance(v, RelayExpr)]))
        return [self._fold(next(tensors) if isinstance(v, RelayExpr) else v) for v in values]

    def _fold(self, value: Value) -> Value:
        """Constant parts computed, and the type inferred."""
        if isinstance(value, TensorSequence):
            return TensorSequence(tuple([self._fold(field) for field in value.fields]))
        if isinstance(value, EmptyOptional):
            return value
        if isinstance(value, StringTensor):
            return StringTensor(value.table, cast(RelayExpr, self._fold(value.indices)))
        result = self.folder.fold(value)
        infer_type_of(result)
        return result


def _with_extents(value: RelayExpr, dims: Dims | None) -> RelayExpr:
    """The value with what its operands and ONNX's shape inference tell of its extents."""
    told = with_inferred_extents(value)
    return with_static_extents(told, dims) if dims else told


def _set_spans(value: Value, name: str) -> None:
    """Say which node or input a value comes from."""
    if isinstance(value, TensorSequence):
        for field in value.fields:
            _set_spans(field, name)
    elif isinstance(value, StringTensor):
        set_span(value.indices, name)
    elif isinstance(value, RelayExpr):
        set_span(value, name)


# operators whose result may be an optional without a value
_OPTIONALS = ("Optional", "Identity", "If", "Loop")


def names_read(node: Any) -> list[str]:
    """The names that a node reads, those that its subgraphs read of the graph around included."""
    names = list(node.input)
    for attr in node.attribute:
        for graph in (attr.g, *attr.graphs) if attr.HasField("g") or attr.graphs else ():
            for inner in graph.node:
                names += names_read(inner)
            names += [value.name for value in graph.output]
    return names


def in_order(nodes: Sequence[Any]) -> Sequence[Any]:
    """The nodes, each behind those that it reads: converters of models append what they add."""
    maker = {name: i for i, node in enumerate(nodes) for name in node.output if name}
    needs = [
        dict.fromkeys([maker[name] for name in names_read(node) if name in maker]) for node in nodes
    ]
    if all(before < i for i, found in enumerate(needs) for before in found):
        return nodes
    readers: list[list[int]] = [[] for _ in nodes]
    for i, found in enumerate(needs):
        for before in found:
            readers[before].append(i)
    missing = [len(found) for found in needs]
    ready = [i for i, count in enumerate(missing) if not count]
    order = []
    while ready:
        order.append(first := heappop(ready))
        for reader in readers[first]:
            missing[reader] -= 1
            if not missing[reader]:
                heappush(ready, reader)
    # nodes of a cycle stay where they are, for the error that names them
    return [nodes[i] for i in order] if len(order) == len(nodes) else nodes


def as_values(result: Any) -> list[Value]:
    """The outputs of a converter."""
    if isinstance(result, (TensorSequence, EmptyOptional, StringTensor)):
        return [result]
    if isinstance(result, list) and any(isinstance(value, StringTensor) for value in result):
        return result
    return [*as_exprs(result)]


def _bound(value: Any) -> Value:
    if value is None:
        return EmptyOptional()
    if isinstance(value, (list, tuple)):
        return TensorSequence(tuple([_bound(item) for item in value]))
    return string_tensor(value) if value.dtype.kind == "O" else constant(value)
