"""PyTorch operators that convert element types or create tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tvm.ir.expr import RelayExpr
from tvm.relay import op as _op
from tvm.relay.frontend.common import constant, infer_dtype, infer_shape

from .nodes import tensors_in
from .open_shapes import as_sizes, broadcast, filled, has_open, is_open, sizes_of
from .registry import (
    CONVERTERS,
    as_dtype,
    as_number,
    category,
    is_tensor,
    promoted,
    result_dtype,
    torch_dtype,
    torch_op,
)


@torch_op("Int")
def _int(x: Any) -> Any:
    value = as_number(x)
    return _op.cast(value, "int64") if is_tensor(value) else int(value)


@torch_op("Float")
def _float(x: Any) -> Any:
    value = as_number(x)
    return _op.cast(value, "float32") if is_tensor(value) else float(value)


@torch_op("Bool")
def _bool(x: Any) -> Any:
    value = as_number(x)
    return _op.cast(value, "bool") if is_tensor(value) else bool(value)


@torch_op("prim::NumToTensor", "ScalarImplicit", "item", "_local_scalar_dense")
def _number(x: Any) -> Any:
    return as_number(x)


@torch_op("tensor", "as_tensor", "scalar_tensor")
def _tensor(value: Any, dtype: Any = None, *_: Any) -> Any:
    if is_tensor(value):
        return value if dtype is None else _op.cast(value, torch_dtype(dtype))
    if isinstance(value, (list, tuple)) and any(tensors_in(value)):
        found = _stacked(value)
        return found if dtype is None else as_dtype(found, torch_dtype(dtype))
    default = {"f": "float32", "i": "int64", "b": "bool"}[np.asarray(value).dtype.kind]
    return constant(value, torch_dtype(dtype, default))


def _stacked(values: Any) -> RelayExpr:
    """Nested lists with numbers that are computed: torch gives them its default types."""
    if not isinstance(values, (list, tuple)):
        dtype = result_dtype(values)
        return as_dtype(values, "float32" if category(dtype) == 2 else dtype)
    return _op.stack(promoted(*[_stacked(value) for value in values]), 0)


@torch_op("to")
def _to(x: Any, *args: Any) -> Any:
    """``to(dtype)``, ``to(device, dtype)`` and ``to(other)``: only the element type matters."""
    for arg in args[:2]:
        if is_tensor(arg):
            return as_dtype(x, infer_dtype(arg))
        if isinstance(arg, int) and not isinstance(arg, bool):
            return as_dtype(x, torch_dtype(arg))
    return x


@torch_op("_to_copy")
def _to_copy(x: RelayExpr, dtype: Any = None, *_: Any) -> RelayExpr:
    return as_dtype(x, torch_dtype(dtype, infer_dtype(x)))


@torch_op("type_as", "to.other")
def _type_as(x: RelayExpr, other: RelayExpr, *_: Any) -> RelayExpr:
    return as_dtype(x, infer_dtype(other))


@torch_op("prim::dtype")
def _prim_dtype(x: RelayExpr) -> int:
    names = {"float32": 6, "float64": 7, "float16": 5, "int64": 4, "int32": 3, "bool": 11,
             "uint8": 0, "int8": 1, "int16": 2, "bfloat16": 15}  # fmt: skip
    return names[infer_dtype(x)]


@torch_op("prim::device")
def _prim_device(x: RelayExpr) -> str:
    return "cpu"


@torch_op(
    "contiguous", "clone", "detach", "lift_fresh", "lift_fresh_copy", "lift", "requires_grad_",
    "positive", "cpu", "alias", "alias_copy", "resolve_conj", "resolve_neg",
)  # fmt: skip
def _same(x: Any, *_: Any) -> Any:
    return x


@torch_op(
    "_assert_tensor_metadata", "_assert_async", "_functional_assert_async", "_assert_scalar",
    "_functional_assert_scalar", "sym_constrain_range", "sym_constrain_range_for_size",
    "_functional_sym_constrain_range", "_functional_sym_constrain_range_for_size",
)  # fmt: skip
def _checked(*_: Any) -> None:
    """What was true when the model was traced."""


@torch_op("copy", "copy_")
def _copy(x: RelayExpr, source: Any, *_: Any) -> RelayExpr:
    value = as_dtype(source, infer_dtype(x))
    return broadcast(value, sizes_of(x)) if is_open(x) else _op.broadcast_to(value, infer_shape(x))


def _filled(shape: Any, value: Any, dtype: str) -> RelayExpr:
    sizes = as_sizes(shape)
    if has_open(sizes) or is_tensor(value):
        return filled(as_dtype(value, dtype), sizes, dtype)
    return constant(np.full(sizes, value), dtype)


@torch_op("zeros", "empty")
def _zeros(shape: Any, dtype: Any = None, *_: Any) -> RelayExpr:
    return _filled(shape, 0, torch_dtype(dtype))


@torch_op("empty_permuted")
def _empty_permuted(shape: Any, order: Any, dtype: Any = None, *_: Any) -> RelayExpr:
    return _filled(shape, 0, torch_dtype(dtype))


@torch_op("ones")
def _ones(shape: Any, dtype: Any = None, *_: Any) -> RelayExpr:
    return _filled(shape, 1, torch_dtype(dtype))


@torch_op("full")
def _full(shape: Any, value: Any, dtype: Any = None, *_: Any) -> RelayExpr:
    default = {bool: "bool", int: "int64"}.get(type(as_number(value)), "float32")
    return _filled(shape, as_number(value), torch_dtype(dtype, default))


@torch_op("new_zeros", "new_empty")
def _new_zeros(x: RelayExpr, shape: Any, dtype: Any = None, *_: Any) -> RelayExpr:
    return _filled(shape, 0, torch_dtype(dtype, infer_dtype(x)))


@torch_op("new_empty_strided")
def _new_empty_strided(x: RelayExpr, shape: Any, _: Any, dtype: Any = None, *__: Any) -> RelayExpr:
    return _filled(shape, 0, torch_dtype(dtype, infer_dtype(x)))


@torch_op("new_ones")
def _new_ones(x: RelayExpr, shape: Any, dtype: Any = None, *_: Any) -> RelayExpr:
    return _filled(shape, 1, torch_dtype(dtype, infer_dtype(x)))


@torch_op("new_full")
def _new_full(x: RelayExpr, shape: Any, value: Any, dtype: Any = None, *_: Any) -> RelayExpr:
    return _filled(shape, as_number(value), torch_dtype(dtype, infer_dtype(x)))


@torch_op("zeros_like", "empty_like")
def _zeros_like(x: RelayExpr, dtype: Any = None, *_: Any) -> RelayExpr:
    return _filled(sizes_of(x), 0, torch_dtype(dtype, infer_dtype(x)))


@torch_op("ones_like")
def _ones_like(x: RelayExpr, dtype: Any = None, *_: Any) -> RelayExpr:
    return _filled(sizes_of(x), 1, torch_dtype(dtype, infer_dtype(x)))


@torch_op("full_like")
def _full_like(x: RelayExpr, value: Any, dtype: Any = None, *_: Any) -> RelayExpr:
    return _filled(sizes_of(x), as_number(value), torch_dtype(dtype, infer_dtype(x)))


@torch_op("fill")
def _fill(x: RelayExpr, value: Any) -> RelayExpr:
    return _filled(sizes_of(x), as_number(value), infer_dtype(x))


@torch_op("zero")
def _zero(x: RelayExpr) -> RelayExpr:
    return _filled(sizes_of(x), 0, infer_dtype(x))


@torch_op("arange")
def _arange(*args: Any) -> RelayExpr:
    """Overloads with 1 to 3 numbers, then dtype, layout, device and pin_memory."""
    count = {5: 1, 6: 2, 7: 3}[len(args)]
    numbers = [as_number(arg) for arg in args[:count]]
    if has_open(numbers):
        bounds = [
            as_dtype(number, "int64") for number in ([0, *numbers] if count == 1 else numbers)
        ]
        dtype = torch_dtype(args[count], "int64")
        return as_dtype(_op.arange(*bounds, dtype="int64"), dtype)
    floats = any(isinstance(number, float) for number in numbers)
    dtype = torch_dtype(args[count], "float32" if floats else "int64")
    return constant(np.arange(*numbers).astype(dtype))


@torch_op("linspace")
def _linspace(start: Any, end: Any, steps: Any, dtype: Any = None, *_: Any) -> RelayExpr:
    first, last, count = as_number(start), as_number(end), as_number(steps)
    element = torch_dtype(dtype)
    if not is_tensor(first) and not is_tensor(last):
        return constant(np.linspace(first, last, count).astype(element))
    begin, finish = as_dtype(first, "float64"), as_dtype(last, "float64")
    if count == 1:
        return as_dtype(_op.reshape(begin, (1,)), element)
    points = constant(np.linspace(0, 1, count), "float64")
    return as_dtype(begin + points * (finish - begin), element)


@torch_op("logspace")
def _logspace(
    start: Any, end: Any, steps: Any, base: Any = 10.0, dtype: Any = None, *_: Any
) -> RelayExpr:
    exponents = _linspace(start, end, steps, 7)
    return as_dtype(_op.power(constant(float(as_number(base)), "float64"), exponents),
                    torch_dtype(dtype))  # fmt: skip


@torch_op("eye")
def _eye(rows: Any, *args: Any) -> RelayExpr:
    square = len(args) == 4
    columns = as_number(rows) if square else as_number(args[0])
    return constant(np.eye(as_number(rows), columns), torch_dtype(args[0 if square else 1]))


def _triangle(keep: Callable[..., Any]) -> Callable[..., RelayExpr]:
    def convert(x: RelayExpr, diagonal: int = 0) -> RelayExpr:
        if is_open(x):
            k = constant(as_number(diagonal), "int32")
            return _op.trilu(x, k, upper=keep is np.triu)
        shape = infer_shape(x)
        mask = constant(keep(np.ones(shape[-2:], bool), as_number(diagonal)))
        return _op.where(mask, x, _op.zeros_like(x))

    return convert


CONVERTERS["aten::tril"], CONVERTERS["aten::triu"] = _triangle(np.tril), _triangle(np.triu)
