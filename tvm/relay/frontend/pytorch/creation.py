"""PyTorch operators that convert element types or create tensors."""

from __future__ import annotations

from typing import Any

import numpy as np

from tvm.ir.expr import RelayExpr
from tvm.relay import op as _op
from tvm.relay.frontend.common import constant, infer_dtype

from .dynamic_shapes import as_sizes, broadcast, filled, has_dynamic, sizes_of
from .nodes import tensors_in
from .registry import (
    Converter,
    as_dtype,
    as_number,
    category,
    dtype_number,
    dtype_or,
    is_tensor,
    promoted,
    result_dtype,
    torch_dtype,
    torch_op,
    torch_ops,
)


def _to_python(kind: type, dtype: str) -> Converter:
    """A number of Python's, or a cast of a run-time value."""

    def convert(x: Any) -> Any:
        value = as_number(x)
        return _op.cast(value, dtype) if is_tensor(value) else kind(value)

    return convert


torch_ops({
    "Int": _to_python(int, "int64"),
    "Float": _to_python(float, "float32"),
    "Bool": _to_python(bool, "bool"),
    "prim::NumToTensor ScalarImplicit item _local_scalar_dense": as_number,
    "type_as to.other": lambda x, other, *_: as_dtype(x, infer_dtype(other)),
    "prims::convert_element_type": lambda x, dtype: as_dtype(x, torch_dtype(dtype)),
    "_to_copy": lambda x, dtype=None, *_: as_dtype(x, dtype_or(dtype, x)),
    "prim::dtype": lambda x: dtype_number(infer_dtype(x)),
    "prim::device": lambda x: "cpu",
    (
        "contiguous clone detach detach_copy lift_fresh lift_fresh_copy lift requires_grad_ positive cpu alias "
        "alias_copy resolve_conj resolve_neg"
    ): lambda x, *_: x,
    "zeros empty": lambda shape, dtype=None, *_: _filled(shape, 0, dtype),
    "empty_permuted": lambda shape, order, dtype=None, *_: _filled(shape, 0, dtype),
    "ones": lambda shape, dtype=None, *_: _filled(shape, 1, dtype),
    "new_zeros new_empty": lambda x, shape, dtype=None, *_: _filled(shape, 0, dtype, x),
    "new_empty_strided": lambda x, shape, _, dtype=None, *__: _filled(shape, 0, dtype, x),
    "new_ones": lambda x, shape, dtype=None, *_: _filled(shape, 1, dtype, x),
    "new_full": lambda x, shape, value, dtype=None, *_: _filled(shape, value, dtype, x),
    "zeros_like empty_like": lambda x, dtype=None, *_: _filled(sizes_of(x), 0, dtype, x),
    "ones_like": lambda x, dtype=None, *_: _filled(sizes_of(x), 1, dtype, x),
    "full_like fill": lambda x, value, dtype=None, *_: _filled(sizes_of(x), value, dtype, x),
    "zero": lambda x: _filled(sizes_of(x), 0, None, x),
})  # fmt: skip


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


@torch_op(
    "_assert_tensor_metadata", "_assert_async", "_functional_assert_async", "_assert_scalar",
    "_functional_assert_scalar", "sym_constrain_range", "sym_constrain_range_for_size",
    "_functional_sym_constrain_range", "_functional_sym_constrain_range_for_size",
)  # fmt: skip
def _checked(*_: Any) -> None:
    """What was true when the model was traced."""


def _filled(shape: Any, value: Any, dtype: int | None, like: RelayExpr | None = None) -> RelayExpr:
    """A tensor of one number, of the element type of another one unless one is given."""
    sizes, number = as_sizes(shape), as_number(value)
    element = torch_dtype(dtype, "float32" if like is None else infer_dtype(like))
    if has_dynamic(sizes) or is_tensor(number):
        return filled(as_dtype(number, element), sizes, element)
    return constant(np.full(sizes, number), element)


@torch_op("full")
def _full(shape: Any, value: Any, dtype: Any = None, *_: Any) -> RelayExpr:
    default = {bool: "bool", int: "int64"}.get(type(as_number(value)), "float32")
    return _filled(shape, value, dtype_number(default) if dtype is None else dtype)


@torch_op("arange")
def _arange(*args: Any) -> RelayExpr:
    """Overloads with 1 to 3 numbers, then dtype, layout, device and pin_memory."""
    count = {5: 1, 6: 2, 7: 3}[len(args)]
    numbers = [as_number(arg) for arg in args[:count]]
    if has_dynamic(numbers):
        bounds = [0, *numbers] if count == 1 else numbers
        start, stop, step = [as_dtype(number, "int64") for number in (*bounds, 1)[:3]]
        dtype = torch_dtype(args[count], "int64")
        return as_dtype(_op.arange(start, stop, step, "int64"), dtype)
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


torch_ops({
    "tril": lambda x, diagonal=0: _op.trilu(x, constant(as_number(diagonal), "int64"), False),
    "triu": lambda x, diagonal=0: _op.trilu(x, constant(as_number(diagonal), "int64"), True),
    "copy copy_": lambda x, source, *_: broadcast(as_dtype(source, infer_dtype(x)), sizes_of(x)),
    "logspace": lambda start, end, steps, base=10.0, dtype=None, *_: as_dtype(
        _op.power(constant(float(as_number(base)), "float64"), _linspace(start, end, steps, 7)),
        torch_dtype(dtype),
    ),
})  # fmt: skip
