"""Tensors of strings: indices into a table that is known at import.

What computes with strings is computed at import, as ONNX's reference does it; what only moves them
moves the indices, which may be run-time values.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NoReturn

import numpy as np

from tvm.error import OpAttributeInvalid, OpAttributeUnImplemented
from tvm.ir.expr import RelayExpr
from tvm.relay.frontend.common import as_exprs, constant, infer_value

from .fallback import model_of
from .functions import Attributes, without_references
from .registry import (
    CONVERTERS,
    OnnxNode,
    Result,
    StringTensor,
    TensorSequence,
    Value,
    ValueRequired,
    key_of,
    onnx_op,
)

# those that take strings as they are
_OWN = (
    "Identity", "SequenceConstruct", "Optional", "OptionalGetElement", "OptionalHasElement",
    "ai.onnx.ml.LabelEncoder", "ai.onnx.ml.CategoryMapper", "ai.onnx.ml.OneHotEncoder",
)  # fmt: skip

# those whose results are elements of their first input
_MOVEMENTS = (
    "Compress", "DepthToSpace", "Expand", "Flatten", "Gather", "GatherElements", "GatherND",
    "Reshape", "Slice", "SpaceToDepth", "Split", "Squeeze", "Tile", "Transpose", "Unsqueeze",
)  # fmt: skip

# those whose results do not depend on the elements
_MEASURES = ("Shape", "Size")


def string_tensor(strings: Any) -> StringTensor:
    """Strings as a tensor."""
    array = np.asarray(strings, object)
    table, indices = np.unique(array.astype(str).reshape(-1), return_inverse=True)
    return StringTensor(tuple(table.tolist()), constant(indices.reshape(array.shape), "int64"))


def known_strings(tensor: StringTensor, values: Mapping[str, Any]) -> np.ndarray[Any, Any] | None:
    """The strings themselves, None if they are known only at run time."""
    indices = infer_value(tensor.indices, values)
    return None if indices is None else tensor.at(indices)


def converted_strings(
    node: Any, view: OnnxNode, opsets: Mapping[str, int], attributes: Attributes
) -> Result | None:
    """The results of a node, None if it has nothing to do with strings."""
    makes_strings = key_of(view) == "Cast" and view.attr("to") in (8, "STRING")
    if not makes_strings and not any(isinstance(value, StringTensor) for value in view.inputs):
        return None
    if key_of(view) in _OWN:
        return None
    given = view.inputs[0]
    if isinstance(given, StringTensor) and view.op_type in (*_MOVEMENTS, *_MEASURES):
        moved = replace(view, inputs=[given.indices, *view.inputs[1:]])
        results = CONVERTERS[view.op_type](moved)
        if view.op_type in _MEASURES:
            return results
        return [StringTensor(given.table, indices) for indices in as_exprs(results)]
    return _computed(node, view, opsets, attributes)


@onnx_op("RegexFullMatch", "StringConcat", "StringNormalizer", "StringSplit")
def _of_strings_alone(node: OnnxNode) -> NoReturn:
    raise OpAttributeInvalid(f"{node.op_type} {node.name} requires strings, got numbers")


def _computed(
    node: Any, view: OnnxNode, opsets: Mapping[str, int], attributes: Attributes
) -> list[Value]:
    from onnx.reference import ReferenceEvaluator

    plain = without_references(node, attributes, view)
    known = {
        name: _known(view, value)
        for name, value in zip(plain.input, view.inputs, strict=False)
        if name
    }
    made = ReferenceEvaluator(model_of(plain, {}, known, opsets)).run(None, {})
    return [_as_value(result) for result in made]


def _known(view: OnnxNode, value: Value) -> np.ndarray[Any, Any]:
    if isinstance(value, StringTensor):
        found, expr = known_strings(value, view.values), value.indices
    elif isinstance(value, RelayExpr):
        found, expr = infer_value(value, view.values), value
    else:
        raise OpAttributeUnImplemented(
            f"{view.op_type} {view.name} takes no {type(value).__name__}"
        )
    if found is None:
        raise ValueRequired(
            f"{view.op_type} {view.name} requires values known at import, since it computes with "
            "strings",
            expr,
        )
    return np.asarray(found)


def _as_value(result: Any) -> Value:
    if isinstance(result, (list, tuple)):
        return TensorSequence(tuple([_as_value(item) for item in result]))
    array = np.asarray(result)
    return string_tensor(array) if array.dtype.kind in "OUS" else constant(array)
