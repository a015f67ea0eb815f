"""What a TorchScript graph and its user say about the types of values; the graph as text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np

from tvm.ir.expr import PrimExpr

SCALAR_TYPES = {
    "Float": "float32", "Double": "float64", "Half": "float16", "BFloat16": "bfloat16",
    "Long": "int64", "Int": "int32", "Short": "int16", "Char": "int8", "Byte": "uint8",
    "Bool": "bool", "ComplexFloat": "complex64", "ComplexDouble": "complex128",
}  # fmt: skip
PARTS_OF_COMPLEX = {"complex64": "float32", "complex128": "float64"}


def input_info(info: Any, value: Any, default_dtype: str) -> tuple[str, tuple[int, ...], str]:
    """Name, shape and element type of an input."""
    if not isinstance(info, (tuple, list)) or len(info) != 2 or not isinstance(info[0], str):
        raise TypeError(f"an input_info is (name, shape) or (name, (shape, dtype)), got {info!r}")
    name, rest = info
    if len(rest) == 2 and isinstance(rest[0], (tuple, list)):
        return name, _input_shape(name, rest[0]), _dtype_text(rest[1])
    is_tensor_type = value.type().kind() == "TensorType"
    scalar = value.type().scalarType() if is_tensor_type else None
    return name, _input_shape(name, rest), SCALAR_TYPES.get(scalar, default_dtype)


def script_defaults(module: Any) -> list[Any]:
    """The values that the last parameters of a scripted module or function have by default."""
    function = getattr(module, "forward", module)
    schema = getattr(function, "schema", None)
    found: list[Any] = []
    for argument in reversed(schema.arguments if schema is not None else []):
        if not argument.has_default_value():
            break
        found.insert(0, argument.default_value)
    return found


def _input_shape(name: str, shape: Sequence[Any]) -> tuple[Any, ...]:
    """The extents, open ones (`relay.Any()`) among them."""
    if wrong := [dim for dim in shape if not isinstance(dim, (int, np.integer, PrimExpr))]:
        raise TypeError(f"the shape of input {name!r} requires integers, got {wrong[0]!r}")
    return tuple(shape)


def _dtype_text(dtype: Any) -> str:
    text = str(dtype).removeprefix("torch.")
    return {"float": "float32", "double": "float64", "half": "float16", "long": "int64",
            "int": "int32"}.get(text, text)  # fmt: skip


def traced_shape(value: Any) -> tuple[int, ...] | None:
    """The shape that a trace saw, None if it is not known."""
    kind = value.type()
    sizes = kind.sizes() if kind.kind() == "TensorType" else None
    return None if sizes is None or None in sizes else tuple(sizes)


def type_text(value: Any) -> str:
    """``Float[1, 3]`` for a tensor of known shape, the type otherwise."""
    kind = value.type()
    if kind.kind() != "TensorType":
        return str(kind)
    sizes, scalar = kind.sizes(), kind.scalarType()
    return f"{scalar}{list(sizes)}" if sizes is not None else str(kind)


def write_graph(graph: Any, names: Mapping[str, str], folder: str) -> None:
    """Write a graph into a new file of a folder, its values under other names."""
    renamed = graph.copy()
    for node in renamed.nodes():
        outputs = list(node.outputs())
        for index, value in enumerate(outputs):
            if (name := names.get(value.debugName())) is not None:
                value.setDebugName(name if len(outputs) == 1 else f"{name}_{index}")
    stamp = datetime.now().strftime("%d_%m_%Y_%H_%M_%S")
    path = Path(folder) / f"tvm_exported_c_graph_{stamp}.txt"
    path.write_text(f"PyTorch model `C graph`:\n{renamed}")
