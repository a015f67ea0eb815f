"""Operators that ONNX itself defines by a function over simpler ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tvm.error import OpNotImplemented
from tvm.ir.expr import RelayExpr
from tvm.relay.frontend.common import infer_dtype, infer_shape, static_or

from .registry import OnnxNode, StringTensor, TensorSequence
from .tensors import element_type

Attributes = Mapping[str, Any]


def has_function(op_type: str, domain: str, opset: int) -> bool:
    """Whether ONNX has a definition of the operator."""
    schema = _schema(op_type, domain, opset)
    return schema is not None and bool(schema.has_function or schema.has_context_dependent_function)


def _schema(op_type: str, domain: str, opset: int) -> Any:
    import onnx

    domain = "" if domain == "ai.onnx" else domain
    try:
        return onnx.defs.get_schema(op_type, max_inclusive_version=opset, domain=domain)
    except onnx.defs.SchemaError:
        return None


def function_of(node: Any, view: OnnxNode, inputs: Sequence[Any], attributes: Attributes) -> Any:
    """The FunctionProto that defines a node."""
    import onnx

    schema = _schema(node.op_type, node.domain, view.opset)
    if schema is None or not has_function(node.op_type, node.domain, view.opset):
        raise OpNotImplemented(f"the ONNX importer has no operator {node.op_type}")
    function = onnx.FunctionProto()
    if schema.has_function:
        function.CopyFrom(schema.function_body)
    else:
        types = [proto.SerializeToString() for proto in inputs]
        plain = without_references(node, attributes, view)
        text = schema.get_context_dependent_function(plain.SerializeToString(), types)
        function.ParseFromString(text)
    for name, attr in schema.attributes.items():
        if attr.default_value.name and name not in view.attrs:
            function.attribute_proto.append(attr.default_value)
    return function


def without_references(node: Any, attributes: Attributes, view: OnnxNode) -> Any:
    """The node with the values of attributes that it takes from the function around it."""
    import onnx

    plain = onnx.NodeProto()
    plain.CopyFrom(node)
    del plain.attribute[:]
    for attr in node.attribute:
        if not attr.ref_attr_name:
            plain.attribute.append(attr)
        elif attr.ref_attr_name in attributes:
            plain.attribute.append(onnx.helper.make_attribute(attr.name, view.attrs[attr.name]))
    for i, found in enumerate(view.inputs):
        if found is None:
            plain.input[i] = ""
    return plain


def type_proto_of(value: Any) -> Any:
    """The ONNX type of a value."""
    import onnx

    if isinstance(value, TensorSequence) and value.fields:
        return onnx.helper.make_sequence_type_proto(type_proto_of(value.fields[0]))
    if isinstance(value, StringTensor):
        text = type_proto_of(value.indices)
        text.tensor_type.elem_type = onnx.TensorProto.STRING
        return text
    if not isinstance(value, RelayExpr):
        return onnx.TypeProto()
    shape = static_or(infer_shape(value), None)
    return onnx.helper.make_tensor_type_proto(element_type(infer_dtype(value)), shape)
