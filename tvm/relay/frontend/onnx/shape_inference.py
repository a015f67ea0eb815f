"""What ONNX's shape inference tells where relay's types leave dimensions dynamic."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any

Dims = tuple[int | str | None, ...]  # extents, names of those that are equal, or nothing known

_SMALL = 64  # elements of constants that may be shapes


def named_dims(model: Any, shapes: Mapping[str, Sequence[Any]]) -> dict[str, Dims]:
    """The dimensions of the values of the main graph, as far as ONNX can infer them."""
    import onnx

    found = onnx.ModelProto()
    found.CopyFrom(without_weights(model))
    if any([_with_shape(v, shapes[v.name]) for v in found.graph.input if v.name in shapes]):
        del found.graph.value_info[:]  # what held for the shapes that the model declares
        for value in found.graph.output:
            value.type.tensor_type.ClearField("shape")
    graph = inferred(found, data_prop=True).graph
    values = (*graph.input, *graph.value_info, *graph.output)
    return {
        v.name: _dims(v.type.tensor_type) for v in values if v.type.tensor_type.HasField("shape")
    }


# what exporters write where they know no name
_NAMELESS = ("", "?", "*", "-1", "None", "unknown")


def is_open(dim: Any) -> bool:
    """Whether a model leaves a dimension to the run."""
    return not dim.HasField("dim_value") or dim.dim_value < 0


def is_named(dim: Any) -> bool:
    """Whether an open dimension has a name."""
    return dim.dim_param not in _NAMELESS  # which is empty where there is an extent


def extents_by_name(model: Any, given: Mapping[str, Sequence[Any]]) -> dict[str, Any]:
    """Extents of the dimensions that the model names, by the shapes that are given.

    A name that two given shapes disagree about tells nothing.
    """
    found: dict[str, list[Any]] = {}
    for value in model.graph.input:
        dims = value.type.tensor_type.shape.dim
        for dim, extent in zip(dims, given.get(value.name, ()), strict=False):
            if dim.dim_param not in _NAMELESS:
                found.setdefault(dim.dim_param, []).append(extent)
    return {name: e[0] for name, e in found.items() if all([_same(e[0], x) for x in e])}


def _same(a: Any, b: Any) -> bool:
    return a is b or (isinstance(a, int) and isinstance(b, int) and a == b)


_OPERATIONS: Mapping[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}


def named_extent(name: str, known: Mapping[str, Any]) -> Any:
    """The extent of a name, which may be a formula such as ``past + sequence``; None if unknown."""
    if name in known:
        return known[name]
    try:
        return _evaluated(ast.parse(name.strip(), mode="eval").body, known)
    except (SyntaxError, ValueError, RecursionError, MemoryError):  # any text may be a name
        return None


def _evaluated(formula: ast.expr, known: Mapping[str, Any]) -> Any:
    match formula:
        case ast.Name(id=name):
            return known.get(name)
        case ast.Constant(value=int(number)):
            return number
        case ast.BinOp(left, op, right) if type(op) in _OPERATIONS:
            a, b = _evaluated(left, known), _evaluated(right, known)
            if a is None or b is None or (isinstance(op, (ast.FloorDiv, ast.Mod)) and _same(b, 0)):
                return None
            return _OPERATIONS[type(op)](a, b)
    return None


def shapes_by_symbols(
    model: Any, given: Mapping[str, Sequence[Any]]
) -> dict[str, Sequence[int | None]]:
    """Shapes of inputs that share named dimensions with the given ones, None where still dynamic."""
    weights = {tensor.name for tensor in model.graph.initializer}
    extents = extents_by_name(model, given)
    known = {name: extent for name, extent in extents.items() if isinstance(extent, int)}
    found: dict[str, Sequence[int | None]] = {}
    for value in model.graph.input:
        dims = value.type.tensor_type.shape.dim
        if value.name in given or value.name in weights:
            continue
        told = [named_extent(dim.dim_param, known) if is_named(dim) else None for dim in dims]
        if any([extent is not None for extent in told]):
            found[value.name] = [
                extent if is_open(dim) else dim.dim_value
                for dim, extent in zip(dims, told, strict=True)
            ]
    return found


def _with_shape(value: Any, shape: Sequence[Any]) -> bool:
    """Let an input have the shape of the user's; whether the declared one said otherwise."""
    is_other = False
    for dim, extent in zip(value.type.tensor_type.shape.dim, shape, strict=False):
        if isinstance(extent, int):
            is_other |= dim.HasField("dim_value") and dim.dim_value != extent
            dim.dim_value = extent
        elif dim.HasField("dim_value"):
            is_other = True
            dim.Clear()
    return is_other


def inferred(model: Any, data_prop: bool = False) -> Any:
    """The model with the types that ONNX infers; as it is if it breaks rules of ONNX's.

    Parameters
    ----------
    model : onnx.ModelProto
        Without large weights, which would be copied.
    data_prop : bool
        Follow the elements of computed shapes too.
    """
    import onnx

    errors = (
        onnx.shape_inference.InferenceError, onnx.checker.ValidationError, onnx.defs.SchemaError,
        RuntimeError, ValueError,
    )  # fmt: skip
    try:
        return onnx.shape_inference.infer_shapes(model, data_prop=data_prop)
    except errors:
        return model


def without_weights(model: Any) -> Any:
    """The model with types in place of weights that are no shapes."""
    import onnx

    bare = onnx.ModelProto(ir_version=model.ir_version)
    bare.opset_import.extend(model.opset_import)
    bare.functions.extend(model.functions)
    graph = model.graph
    bare.graph.name = graph.name
    for field in ("node", "input", "output", "value_info"):
        getattr(bare.graph, field).extend(getattr(graph, field))
    declared = {value.name for value in graph.input}
    for tensor in graph.initializer:
        if prod(tensor.dims) <= _SMALL and not tensor.external_data:
            bare.graph.initializer.append(tensor)
        elif tensor.name not in declared:
            bare.graph.input.append(
                onnx.helper.make_tensor_value_info(tensor.name, tensor.data_type, tensor.dims)
            )
    return bare


def _dims(tensor: Any) -> Dims:
    return tuple([
        d.dim_value if d.HasField("dim_value") else d.dim_param or None for d in tensor.shape.dim
    ])  # fmt: skip


def reshape_by(have: Dims | None, want: Dims | None) -> list[int] | None:
    """The static argument of ``reshape`` that gives ``want``; None if it takes a run-time value."""
    if want is None or 0 in want:
        return None
    known = [*(have or ()), *[None] * len(want)]
    copied = [d is not None and d == k for d, k in zip(want, known, strict=False)]
    spec = [
        d if isinstance(d, int) else 0 if same else -1 for d, same in zip(want, copied, strict=True)
    ]
    return spec if spec.count(-1) <= 1 else None
