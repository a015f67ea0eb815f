"""Rows of the operators of relay that arrange elements, and of those on computed shapes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from operator import mul
from typing import Any, TypeAlias

from tvm import tir
from tvm.arith import Analyzer
from tvm.relax import op as _op
from tvm.relax.expr import PrimValue, const
from tvm.relay.expr import Call
from tvm.tir.expr import IntImm

Row: TypeAlias = Callable[[Any, Call, list[Any]], Any]


def _int(value: Any) -> int:
    return int(getattr(value, "value", value))


def _reshape(t: Any, call: Call, args: list[Any]) -> Any:
    dims = t.result_dims(call, args)
    return None if dims is None else _op.reshape(args[0], dims)


def _reshape_to(t: Any, call: Call, args: list[Any]) -> Any:
    """Zeros keep a dimension, -1 takes what is left."""
    want, have = t.elements(call.args[1]), t.dims(args[0])
    if want is None or have is None:
        return None
    if not call.attrs.allowzero:
        zeros = [isinstance(d, int) and d == 0 for d in want]
        if any([is_zero and i >= len(have) for i, is_zero in enumerate(zeros)]):
            return None
        want = [
            have[i] if is_zero else d
            for i, (d, is_zero) in enumerate(zip(want, zeros, strict=True))
        ]
    open_at = [i for i, d in enumerate(want) if isinstance(d, int) and d == -1]
    if len(open_at) > 1:
        return None
    for i in open_at:
        rest = _total([d for d in want if d is not want[i]])
        want[i] = Analyzer().simplify(tir.floordiv(_total(have), rest))
    return _op.reshape(args[0], want)


def _total(dims: Sequence[Any]) -> Any:
    return reduce(mul, dims, IntImm("int64", 1))


def _squeeze(t: Any, call: Call, args: list[Any]) -> Any:
    axis = call.attrs.axis
    if axis is None:
        return _op.squeeze(args[0])
    axes = [_int(a) for a in (axis if isinstance(axis, (list, tuple)) else [axis])]
    return _op.squeeze(args[0], axes) if axes else args[0]


def _expand_dims(t: Any, call: Call, args: list[Any]) -> Any:
    count, rank = _int(call.attrs.num_newaxis), args[0].struct_info.ndim
    if not count:
        return args[0]
    axis = _int(call.attrs.axis)
    first = axis if axis >= 0 else axis + rank + 1
    return _op.expand_dims(args[0], list(range(first, first + count)))


def _transpose(t: Any, call: Call, args: list[Any]) -> Any:
    axes = call.attrs.axes
    return _op.permute_dims(args[0], None if axes is None else [_int(a) for a in axes])


def _concatenate(t: Any, call: Call, args: list[Any]) -> Any:
    return _op.concat(args[0], _int(call.attrs.axis)) if isinstance(args[0], list) else None


def _stack(t: Any, call: Call, args: list[Any]) -> Any:
    if not isinstance(args[0], list):
        return None
    axis = _int(call.attrs.axis)
    axis += args[0][0].struct_info.ndim + 1 if axis < 0 else 0
    return _op.concat([t.emit(_op.expand_dims(x, axis)) for x in args[0]], axis)


def _split(t: Any, call: Call, args: list[Any]) -> Any:
    parts = call.attrs.indices_or_sections
    axis = _int(call.attrs.axis)
    sections = [_int(p) for p in parts] if isinstance(parts, (list, tuple)) else _int(parts)
    if sections in (1, []):
        return [args[0]]
    return _op.split(args[0], sections, axis)


def _broadcast_to(t: Any, call: Call, args: list[Any]) -> Any:
    dims = t.result_dims(call, args)
    return None if dims is None else _op.broadcast_to(args[0], dims)


def _broadcast_to_elements(t: Any, call: Call, args: list[Any]) -> Any:
    want = t.elements(call.args[1])
    return None if want is None else _op.broadcast_to(args[0], want)


def _strided_slice(t: Any, call: Call, args: list[Any]) -> Any:
    attrs, rank = call.attrs, args[0].struct_info.ndim
    begin, end = [_int(b) for b in attrs.begin], [_int(e) for e in attrs.end]
    strides = [_int(s) for s in attrs.strides] if attrs.strides else []
    axes = list(range(len(begin))) if attrs.axes is None else [_int(a) % rank for a in attrs.axes]
    strides = (strides * len(begin) if len(strides) == 1 else strides) or [1] * len(begin)
    if attrs.slice_mode == "size":
        if any([e == 0 for e in end]):
            return None
        dims = t.dims(args[0])
        if dims is None:
            return None
        ends = [dims[a] if e < 0 else b + e for a, b, e in zip(axes, begin, end, strict=True)]
        return _op.strided_slice(args[0], axes, begin, ends)
    if any([s < 0 for s in strides]) and not _is_static(t, args[0]):
        return None
    return _op.strided_slice(args[0], axes, begin, end, strides)


def _is_static(t: Any, value: Any) -> bool:
    dims = t.dims(value)
    return dims is not None and all([isinstance(d, IntImm) for d in dims])


def _strided_slice_by_elements(t: Any, call: Call, args: list[Any]) -> Any:
    begin, end, strides = [t.elements(arg) for arg in call.args[1:4]]
    if call.attrs.slice_mode != "end" or call.attrs.axes or begin is None or end is None:
        return None
    if strides is None or not all([isinstance(s, int) and s > 0 for s in strides]):
        return None
    begin, end = begin[: len(end)], end[: len(begin)]
    strides = [*strides, *[1] * len(begin)][: len(begin)]
    return _op.strided_slice(args[0], list(range(len(begin))), begin, end, strides)


def _tile(t: Any, call: Call, args: list[Any]) -> Any:
    return _op.tile(args[0], [_int(r) for r in call.attrs.reps])


def _tile_by_elements(t: Any, call: Call, args: list[Any]) -> Any:
    reps = t.elements(call.args[1])
    is_known = reps is not None and all([isinstance(r, int) for r in reps])
    return _op.tile(args[0], reps) if is_known else None


def _repeat(t: Any, call: Call, args: list[Any]) -> Any:
    return _op.repeat(args[0], _int(call.attrs.repeats), _int(call.attrs.axis))


def _pad(t: Any, call: Call, args: list[Any]) -> Any:
    attrs = call.attrs
    widths = [_int(w) for pair in attrs.pad_width for w in pair]
    value = args[1]
    if attrs.pad_mode != "constant" or min(widths, default=0) < 0 or not hasattr(value, "data"):
        return None
    return _op.nn.pad(args[0], widths, value.data.numpy().item(), "constant")


def _shape_of(t: Any, call: Call, args: list[Any]) -> Any:
    dims = t.dims(args[0])
    if dims == ():
        return None
    shape = t.emit(_op.shape_to_tensor(t.emit(_op.shape_of(args[0]))))
    dtype = str(call.checked_type.dtype)
    return shape if dtype == "int64" else _op.astype(shape, dtype)


def _full(t: Any, call: Call, args: list[Any]) -> Any:
    dims = t.result_dims(call, args)
    return None if dims is None else _op.full(dims, args[0], str(call.checked_type.dtype))


def _filled(number: float) -> Row:
    def row(t: Any, call: Call, args: list[Any]) -> Any:
        dtype = str(call.checked_type.dtype)
        dims = t.elements(call.args[0]) if args else t.result_dims(call, args)
        return None if dims is None else _op.full(dims, const(number, dtype), dtype)

    return row


def _full_by_elements(t: Any, call: Call, args: list[Any]) -> Any:
    dims = t.elements(call.args[1])
    return None if dims is None else _op.full(dims, args[0], str(call.checked_type.dtype))


def _arange(t: Any, call: Call, args: list[Any]) -> Any:
    dtype = str(call.checked_type.dtype)
    bounds = [t.elements(arg) for arg in call.args]
    if not dtype.startswith("int") or any([b is None for b in bounds]):
        return None
    start, stop, step = [b[0] for b in bounds]
    if not isinstance(step, int) or step <= 0:
        return None
    first, last, distance = [PrimValue(_wide(b)) for b in (start, stop, step)]
    return _op.arange(first, last, distance, dtype)


def _wide(value: Any) -> Any:
    return IntImm("int64", value) if isinstance(value, int) else value


def _topk_by_elements(t: Any, call: Call, args: list[Any]) -> Any:
    attrs, known = call.attrs, t.elements(call.args[1])
    if known is None or not isinstance(known[0], int) or known[0] < 1:
        return None
    return _op.topk(
        args[0], known[0], _int(attrs.axis), str(attrs.ret_type), not attrs.is_ascend,
        str(attrs.dtype),
    )  # fmt: skip


def _resize_by_elements(t: Any, call: Call, args: list[Any]) -> Any:
    attrs, size = call.attrs, t.elements(call.args[1])
    if size is None or not hasattr(args[2], "data"):
        return None
    return _op.image.resize2d(
        args[0], size, roi=args[2].data.numpy().tolist() or None, layout=str(attrs.layout),
        method=str(attrs.method),
        coordinate_transformation_mode=str(attrs.coordinate_transformation_mode),
        rounding_method=str(attrs.rounding_method), cubic_alpha=float(attrs.cubic_alpha),
        cubic_exclude=int(attrs.cubic_exclude), extrapolation_value=float(attrs.extrapolation_value),
    )  # fmt: skip


SHAPE_ROWS: Mapping[str, Row] = {
    "reshape": _reshape,
    "contrib_reverse_reshape": _reshape,
    "reshape_like": _reshape,
    "nn.batch_flatten": _reshape,
    "squeeze": _squeeze,
    "expand_dims": _expand_dims,
    "transpose": _transpose,
    "concatenate": _concatenate,
    "stack": _stack,
    "split": _split,
    "broadcast_to": _broadcast_to,
    "broadcast_to_like": _broadcast_to,
    "strided_slice": _strided_slice,
    "tile": _tile,
    "repeat": _repeat,
    "reverse": lambda t, call, args: _op.flip(args[0], _int(call.attrs.axis)),
    "nn.pad": _pad,
    "shape_of": _shape_of,
    "full": _full,
    "full_like": lambda t, call, args: _op.full_like(*args),
    "zeros": _filled(0),
    "ones": _filled(1),
    "arange": _arange,
    "dyn.reshape": _reshape_to,
    "dyn.broadcast_to": _broadcast_to_elements,
    "dyn.strided_slice": _strided_slice_by_elements,
    "dyn.tile": _tile_by_elements,
    "dyn.zeros": _filled(0),
    "dyn.ones": _filled(1),
    "dyn.full": _full_by_elements,
    "dyn.topk": _topk_by_elements,
    "dyn.image.resize2d": _resize_by_elements,
}
