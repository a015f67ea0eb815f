"""Converters of PyTorch operators: one function each, called with the operator's arguments.

A tensor argument is a relay expression; numbers, lists, None and texts are Python values. The
numbers that tracing derives from shapes stay Python numbers throughout.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tvm.error import OpAttributeUnImplemented
from tvm.ir.expr import RelayExpr
from tvm.ir.type import TensorType
from tvm.relay.analysis.infer import infer_type_of
from tvm.relay.expr import Constant, const
from tvm.relay.frontend.common import infer_dtype, infer_shape
from tvm.relay.frontend.converters import Converters
from tvm.relay.op import cast

Converter = Callable[..., Any]

# ``add`` also serves ``add_``
CONVERTERS: Converters[Converter] = Converters("aten::")
torch_op, torch_ops = CONVERTERS.op, CONVERTERS.rows

# torch's numbers for element types in graphs
TORCH_DTYPES = {
    0: "uint8", 1: "int8", 2: "int16", 3: "int32", 4: "int64", 5: "float16", 6: "float32",
    7: "float64", 11: "bool", 15: "bfloat16",
}  # fmt: skip

_COMPLEX_NUMBERS = {"complex64": 9, "complex128": 10}
_CATEGORY = {"bool": 0, "uint": 1, "int": 1, "float": 2, "bfloat": 2}
_RANK = [
    "bool", "uint8", "int8", "int16", "int32", "int64", "bfloat16", "float16", "float32", "float64",
]  # fmt: skip


def adapted(converters: Mapping[str, Callable[..., Any]] | None) -> dict[str, Converter]:
    """Converters of users, ``f(inputs, input_types)``, as our own."""

    def adapt(convert: Callable[..., Any]) -> Converter:
        return lambda *args: convert(list(args), [_type_name(arg) for arg in args])

    return {name: adapt(convert) for name, convert in (converters or {}).items()}


_TYPE_NAMES = {bool: "bool", int: "int32", float: "float32", list: "ListType", tuple: "ListType"}


def _type_name(value: Any) -> str:
    """The element type of a tensor, as classic converters are told it; of others their kind."""
    if is_tensor(value):
        ty = infer_type_of(value)
        return str(ty.dtype) if isinstance(ty, TensorType) else "TupleType"
    return _TYPE_NAMES.get(type(value), type(value).__name__)


def kind_of(overload: Any) -> str:
    """The name of an operator without its overload: ``aten::add``."""
    return str(overload._schema.name)


def is_tensor(value: Any) -> bool:
    """Whether an argument is a tensor rather than a Python value."""
    return isinstance(value, RelayExpr)


def torch_dtype(number: int | None, default: str = "float32") -> str:
    """The element type of torch's number for it; ``default`` for None."""
    if number is None:
        return default
    if number not in TORCH_DTYPES:
        raise OpAttributeUnImplemented(f"element type number {number} of torch is not supported")
    return TORCH_DTYPES[number]


def dtype_or(number: int | None, like: RelayExpr) -> str:
    """The element type of torch's number for it; that of a tensor for None."""
    return torch_dtype(number, infer_dtype(like))


def dtype_number(dtype: Any) -> int:
    """Torch's number for one of its element types."""
    name = str(dtype).removeprefix("torch.")
    if name in _COMPLEX_NUMBERS:
        return _COMPLEX_NUMBERS[name]
    for number, known in TORCH_DTYPES.items():
        if known == name:
            return number
    raise OpAttributeUnImplemented(f"element type {dtype} is not supported")


def category(dtype: str) -> int:
    """0 for bool, 1 for integers, 2 for floats."""
    return _CATEGORY[dtype.rstrip("0123456789")]


def promote_dtypes(a: str, b: str) -> str:
    """The element type of an operation on tensors of two element types."""
    if a == b:
        return a
    if {a, b} == {"uint8", "int8"}:
        return "int16"
    if {a, b} == {"float16", "bfloat16"}:
        return "float32"
    if category(a) != category(b):
        return a if category(a) > category(b) else b
    return max(a, b, key=_RANK.index)


def result_dtype(*operands: Any) -> str:
    """PyTorch's type promotion: tensors with axes, then 0-d tensors, then numbers.

    A lower group counts only if its category (bool, integer, float) is higher.
    """
    groups: list[str | None] = [None, None, None]
    for operand in operands:
        if _is_traced_number(operand):
            group, dtype = 2, "float32"
        elif is_tensor(operand):
            group, dtype = (0 if infer_shape(operand) else 1), infer_dtype(operand)
        else:
            group, dtype = 2, _number_dtype(operand)
        known = groups[group]
        groups[group] = dtype if known is None else promote_dtypes(known, dtype)
    result: str | None = None
    for dtype_ in groups:
        if dtype_ is not None and (result is None or category(dtype_) > category(result)):
            result = dtype_
    return result or "float32"


def _is_traced_number(value: Any) -> bool:
    """Tracing writes Python floats as 0-d tensors of float64."""
    if not isinstance(value, Constant):
        return False
    array = value.data.numpy()
    return array.ndim == 0 and array.dtype == "float64"


def _number_dtype(value: Any) -> str:
    if isinstance(value, bool):
        return "bool"
    return "int64" if isinstance(value, int) else "float32"


def as_dtype(value: Any, dtype: str) -> RelayExpr:
    """A tensor, or a number as 0-d constant, of an element type."""
    if not is_tensor(value):
        return const(value, dtype)
    return value if infer_dtype(value) == dtype else cast(value, dtype)


def promoted(*operands: Any) -> list[RelayExpr]:
    """The operands as tensors of their common element type."""
    dtype = result_dtype(*operands)
    return [as_dtype(operand, dtype) for operand in operands]


def as_float(value: Any) -> RelayExpr:
    """Integers become float32, as true division and transcendental functions do."""
    dtype = infer_dtype(value) if is_tensor(value) else _number_dtype(value)
    return as_dtype(value, dtype if category(dtype) == 2 else "float32")


def promoted_floats(*operands: Any) -> list[RelayExpr]:
    """The operands as tensors of their common element type, float32 for integers."""
    dtype = result_dtype(*operands)
    return [as_dtype(operand, dtype if category(dtype) == 2 else "float32") for operand in operands]


def as_number(value: Any) -> Any:
    """A 0-d constant as a Python number; other values as they are."""
    if isinstance(value, Constant):
        array = value.data.numpy()
        return array.reshape(()).item() if array.size == 1 else value
    return value


def as_ints(values: Any) -> list[int]:
    """A list of Python integers, from a list, a number or a constant tensor."""
    if isinstance(values, Constant):
        return [int(v) for v in values.data.numpy().reshape(-1)]
    items = values if isinstance(values, (list, tuple)) else [values]
    result = [as_number(item) for item in items]
    if unknown := [item for item in result if is_tensor(item)]:
        raise OpAttributeUnImplemented(
            f"a shape or axis has to be known at import, {len(unknown)} of {len(result)} are not",
            hint="trace the model with inputs of the shapes that it will be used with",
        )
    return [int(item) for item in result]


def axes_of(axes: Any, rank: int) -> list[int]:
    """Non-negative axes; all of them for None or an empty list."""
    if axes is None or (isinstance(axes, (list, tuple)) and not axes):
        return list(range(rank))
    return [axis % rank for axis in as_ints(axes)] if rank else []


def spread(values: Any, count: int, default: Sequence[int] | None = None) -> tuple[int, ...]:
    """One number for each of ``count`` axes."""
    found = as_ints(values) if values is not None and values != [] else list(default or ())
    return tuple(found * count if len(found) == 1 else found)
