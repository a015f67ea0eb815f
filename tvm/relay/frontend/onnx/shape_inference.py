"""What ONNX's shape inference tells where relay's types leave dimensions dynamic."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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


def shapes_by_symbols(
    model: Any, given: Mapping[str, Sequence[Any]]
) -> dict[str, Sequence[int | None]]:
    """Shapes of inputs that share named dimensions with the given ones, None where still dynamic.

    A name that two given shapes disagree about tells nothing.
    """
    weights = {tensor.name for tensor in model.graph.initializer}
    found: dict[str, set[int]] = {}
    for value in model.graph.input:
        dims = value.type.tensor_type.shape.dim
        for dim, extent in zip(dims, given.get(value.name, ()), strict=False):
            if isinstance(extent, int) and dim.dim_param not in _NAMELESS:
                found.setdefault(dim.dim_param, set()).add(extent)
    known = {name: extents.pop() for name, extents in found.items() if len(extents) == 1}
    others = [v for v in model.graph.input if v.name not in given and v.name not in weights]
    return {
        value.name: [
            d.dim_value if d.HasField("dim_value") and d.dim_value >= 0 else known.get(d.dim_param)
            for d in value.type.tensor_type.shape.dim
        ]
        for value in others
        if any(dim.dim_param in known for dim in value.type.tensor_type.shape.dim)
    }


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
