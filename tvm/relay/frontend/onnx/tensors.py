"""ONNX tensors, element types and attributes as ours."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from tvm.error import OpAttributeUnImplemented, RuntimeTypeError
from tvm.ir.expr import RelayExpr
from tvm.relay.frontend.common import infer_dtype
from tvm.support import dtype as as_dtype

# ours have other names, or numpy's differ
_NAMES = {"float8_e4m3fn": "e4m3_float8", "float8_e5m2": "e5m2_float8"}

# by ONNX's numbers: releases of the package before 1.18 hold their values in wider types
_NARROW_NUMBERS = {
    16: "bfloat16", 17: "float8_e4m3fn", 18: "float8_e4m3fnuz", 19: "float8_e5m2",
    20: "float8_e5m2fnuz", 21: "uint4", 22: "int4",
}  # fmt: skip

# types that relay lacks, and those that have all their values
HELD_AS = dict.fromkeys(
    ("float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e8m0fnu", "float6_e2m3fn", "float6_e3m2fn",
     "float4_e2m1fn"), "float32",
)  # fmt: skip


def numpy_type(number: int) -> np.dtype[Any]:
    """The type of numpy, or of ml_dtypes, that an ONNX element type is."""
    from onnx.helper import tensor_dtype_to_np_dtype

    name = _NARROW_NUMBERS.get(number)
    try:
        element = tensor_dtype_to_np_dtype(number) if name is None else getattr(ml_dtypes, name)
    except KeyError:
        raise RuntimeTypeError(f"ONNX has no element type of number {number}") from None
    found: np.dtype[Any] = np.dtype(element)
    return found


def tensor_dtype(element_type: int | str) -> str:
    """The name of an ONNX element type, which the first opsets give as a string."""
    from onnx import TensorProto

    number = (
        TensorProto.DataType.Value(element_type) if isinstance(element_type, str) else element_type
    )
    if number == TensorProto.STRING:
        raise OpAttributeUnImplemented(
            "tensors of strings have no type in relay",
            hint="models that take strings run by tvm.contrib.onnx_backend",
        )
    name = str(numpy_type(number))
    name = HELD_AS.get(name, _NAMES.get(name, name))
    try:
        as_dtype(name)
    except Exception:
        kind = TensorProto.DataType.Name(element_type).lower()
        raise OpAttributeUnImplemented(f"tensors of {kind} have no type in relay") from None
    return name


def dtype_or(element_type: int, like: RelayExpr) -> str:
    """The name of an ONNX element type, that of a tensor if none is given."""
    return tensor_dtype(element_type) if element_type else infer_dtype(like)


def tensor_array(tensor: Any, folder: str = "") -> np.ndarray[Any, Any]:
    """The values of a TensorProto."""
    from onnx import numpy_helper

    if any(dim < 0 for dim in tensor.dims):
        raise ValueError(f"its shape is {tuple(tensor.dims)}")
    array = numpy_helper.to_array(tensor, folder)
    if tensor.data_type in _NARROW_NUMBERS:
        array = array.astype(numpy_type(tensor.data_type), copy=False)
    return representable(array)


def representable(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The same values in a type that relay has, wider if need be: narrow numbers are exact there."""
    name = str(array.dtype)
    if not name.startswith(("float4", "float6", "float8", "int2", "uint2")):
        return array
    try:
        as_dtype(_NAMES.get(name, name))
    except ValueError:  # no type of relay's has the name
        wide = {"i": "int8", "u": "uint8"}.get(name[0], "float32")
        return array.astype(wide)
    return array


def attribute_value(attr: Any) -> Any:
    """An attribute's value; strings decoded, tensors as arrays, graphs as they are."""
    import onnx

    value = onnx.helper.get_attribute_value(attr)
    if isinstance(value, bytes):
        return value.decode("utf8", errors="replace")
    if isinstance(value, onnx.TensorProto):
        return tensor_array(value)
    if isinstance(value, (list, tuple)) or type(value).__name__.startswith("Repeated"):
        return [v.decode("utf8") if isinstance(v, bytes) else v for v in value]
    return value


def element_type(dtype: str) -> int:
    """ONNX's number of one of our element types."""
    from onnx.helper import np_dtype_to_tensor_dtype

    name = {ours: theirs for theirs, ours in _NAMES.items()}.get(dtype, dtype)
    narrow = {theirs: number for number, theirs in _NARROW_NUMBERS.items()}
    return narrow.get(name) or np_dtype_to_tensor_dtype(np.dtype(as_dtype(dtype).numpy))
