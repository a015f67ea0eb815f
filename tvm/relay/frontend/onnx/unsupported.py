"""One error for all nodes of a model that nothing can import, with what is known of each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tvm.error import suggest
from tvm.relay.frontend.common import Unsupported, unsupported_operators

from .checker import all_nodes
from .fallback import has_reference
from .functions import has_function
from .registry import CONVERTERS, key_of
from .shape_inference import inferred
from .tensors import numpy_type

_HINT = (
    "export with another opset, simplify the model so that these operators go away, or let a "
    "reference compute them: from_onnx(model, fallback=True), tvmc compile --fallback"
)
_NO_REFERENCE = (
    "neither ONNX's reference nor ONNX Runtime computes these: export with another opset, or "
    "simplify the model so that they go away"
)

Types = Mapping[str, Any]  # TypeProto by the name of a value


def check_operators(model: Any, opsets: Mapping[str, int], fallback: bool) -> None:
    """Refuse the model with one error if operators are unknown."""
    local = {(f.domain, f.name) for f in model.functions}

    def is_known(node: Any) -> bool:
        if (node.domain, node.op_type) in local or key_of(node) in CONVERTERS:
            return True
        opset = opsets.get(node.domain, 1)
        if has_function(node.op_type, node.domain, opset):
            return True
        return fallback and has_reference(node.op_type, node.domain, opset)

    parts = (model.graph, *model.functions)
    unknown = [[node for node in all_nodes(part) if not is_known(node)] for part in parts]
    if any(unknown):
        types = _types_of_graph(model)
        listed = [
            _unsupported(node, opsets, types if part is model.graph else _types_within(part, model))
            for part, nodes in zip(parts, unknown, strict=True)
            for node in nodes
        ]
        raise unsupported_operators("ONNX", listed, _NO_REFERENCE if fallback else _HINT)


def _unsupported(node: Any, opsets: Mapping[str, int], types: Types) -> Unsupported:
    return Unsupported(
        f"{key_of(node)} of opset {opsets.get(node.domain, 1)}",
        node.name or next((name for name in node.output if name), ""),
        [f"{name}: {_text(types.get(name))}" for name in node.input if name],
        _near(node),
    )


def _near(node: Any) -> str:
    """The operator of that name in another domain, or names like it."""
    same = [name for name in CONVERTERS if name.rpartition(".")[2] == node.op_type]
    return f"there is {' and '.join(same)}" if same else suggest(key_of(node), CONVERTERS)


def _text(proto: Any) -> str:
    """A type as ``float32[1, 3]``, with question marks for what is not known."""
    if proto is None or not proto.HasField("tensor_type"):
        return "?" if proto is None else (proto.WhichOneof("value") or "?").removesuffix("_type")
    tensor = proto.tensor_type
    dtype = str(numpy_type(tensor.elem_type)) if tensor.elem_type else "?"
    if not tensor.HasField("shape"):
        return f"{dtype}[...]"
    dims = [
        str(d.dim_value) if d.HasField("dim_value") else d.dim_param or "?"
        for d in tensor.shape.dim
    ]
    return f"{dtype}[{', '.join(dims)}]"


def _types_of_graph(model: Any) -> Types:
    """Types of values by name, as far as ONNX can infer them, those within subgraphs included."""
    import onnx

    model = inferred(_with_domains(model))
    found = {}
    for graph in _graphs(model.graph):
        for tensor in graph.initializer:
            found[tensor.name] = onnx.helper.make_tensor_type_proto(tensor.data_type, tensor.dims)
        for value in (*graph.input, *graph.value_info, *graph.output):
            found[value.name] = value.type
    return found


def _with_domains(model: Any) -> Any:
    """The model with a version for each domain, without which nothing is inferred."""
    import onnx

    known = {entry.domain for entry in model.opset_import}
    missing = {node.domain for node in all_nodes(model.graph)} - known - {"ai.onnx"}
    if not missing:
        return model
    made = onnx.ModelProto()
    made.CopyFrom(model)
    made.opset_import.extend([onnx.helper.make_opsetid(domain, 1) for domain in sorted(missing)])
    return made


def _graphs(graph: Any) -> Iterator[Any]:
    yield graph
    for node in graph.node:
        for attr in node.attribute:
            inner: Sequence[Any] = [attr.g] if attr.HasField("g") else attr.graphs
            for each in inner:
                yield from _graphs(each)


def _types_within(function: Any, model: Any) -> Types:
    """Types of the values in a function, for the first call of it in the graph."""
    from onnx import ValueInfoProto, helper

    key = (function.domain, function.name)
    call = next((n for n in all_nodes(model.graph) if (n.domain, n.op_type) == key), None)
    if call is None:
        return {}
    outer = _types_of_graph(model)
    inputs = [
        ValueInfoProto(name=name, type=outer.get(given))
        for name, given in zip(function.input, call.input, strict=False)
    ]
    outputs = [ValueInfoProto(name=name) for name in function.output]
    body = helper.make_graph(function.node, function.name, inputs, outputs)
    imports = list(function.opset_import)
    return _types_of_graph(
        helper.make_model(body, opset_imports=imports, ir_version=model.ir_version)
    )
