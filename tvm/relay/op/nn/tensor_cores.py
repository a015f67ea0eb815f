"""Products padded to what tensor cores multiply, for targets of CUDA.

nn.dense(%x, %w)    ->    strided_slice(nn.dense(pad(%x), pad(%w)), end=[m, n])

A product of m x k and k x n elements is padded to multiples of a shape that the cores have, the one
of least extra work; where that is more than twice the work itself the product stays as it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tvm.ir.expr import RelayExpr
from tvm.relay.expr import Call
from tvm.relay.op.nn.activation import pad
from tvm.relay.op.registry import ops
from tvm.relay.op.slicing import strided_slice
from tvm.topi.rewrites import batch_matmul_legalize, conv2d_legalize, dense_legalize

_TARGETS = ["cuda"]
# m, k and n of one instruction
_BYTES = ((16, 16, 16), (32, 16, 8), (8, 16, 32))
_NIBBLES = ((8, 32, 8),)
_SHAPES = {
    **dict.fromkeys(("float16", "int8", "uint8"), _BYTES),
    **dict.fromkeys(("int4", "uint4"), _NIBBLES),
}
_MOST_EXTRA = 2.0  # of the work itself
Shapes = Sequence[tuple[int, int, int]]


def padding(m: int, k: int, n: int, shapes: Shapes) -> tuple[int, int, int] | None:
    """What to add to each extent; None if that is nothing, or too much."""
    added = [(-m % a, -k % b, -n % c) for a, b, c in shapes]
    works = [(m + dm) * (k + dk) * (n + dn) for dm, dk, dn in added]
    least = min(works)
    if least == m * k * n or least - m * k * n > _MOST_EXTRA * m * k * n:
        return None
    return added[works.index(least)]


def _padded(value: RelayExpr, width: Sequence[int]) -> RelayExpr:
    if not any(width):
        return value
    return pad(value, [(0, after) for after in width])


def _cut(value: RelayExpr, shape: Sequence[Any], is_padded: object) -> RelayExpr:
    if not is_padded:
        return value
    return strided_slice(value, begin=[0] * len(shape), end=[int(n) for n in shape])


def dense_for_tensor_cores(attrs: Any, inputs: Any, types: Any) -> RelayExpr | None:
    """`nn.dense` of padded arguments, or None."""
    data, weight, out = types
    shapes = _SHAPES.get(str(data.dtype))
    if shapes is None or any([t.is_dynamic for t in types]):
        return None
    (m, k), n = data.concrete_shape, weight.concrete_shape[0]
    if (added := padding(m, k, n, shapes)) is None:
        return None
    dm, dk, dn = added
    units = None if attrs.units is None else n + dn
    x, w = _padded(inputs[0], (dm, dk)), _padded(inputs[1], (dn, dk))
    return _cut(ops.nn.dense(x, w, units=units, out_dtype=attrs.out_dtype), out.shape, dm or dn)


def batch_matmul_for_tensor_cores(attrs: Any, inputs: Any, types: Any) -> RelayExpr | None:
    """`nn.batch_matmul` of padded arguments, or None."""
    left, _, out = types
    shapes = _SHAPES.get(str(left.dtype))
    if shapes is None or any([t.is_dynamic for t in types]):
        return None
    _, m, n = out.concrete_shape
    k = left.concrete_shape[1 if attrs.transpose_a else 2]
    if (added := padding(m, k, n, shapes)) is None:
        return None
    dm, dk, dn = added
    x = _padded(inputs[0], (0, dk, dm) if attrs.transpose_a else (0, dm, dk))
    y = _padded(inputs[1], (0, dn, dk) if attrs.transpose_b else (0, dk, dn))
    product = Call(ops.nn.batch_matmul, (x, y), attrs)
    return _cut(product, out.shape, dm or dn)


def conv2d_for_tensor_cores(attrs: Any, inputs: Any, types: Any) -> RelayExpr | None:
    """`nn.conv2d` of channels last, with batch and channels padded, or None."""
    data, _, out = types
    layouts = (attrs.data_layout, attrs.kernel_layout)
    if attrs.groups != 1 or any([t.is_dynamic for t in types]):
        return None
    dtype = str(data.dtype)
    if layouts == ("NHWC", "HWIO"):
        shapes: Shapes | None = _BYTES if dtype in _SHAPES else None
    elif layouts == ("HWNC", "HWOI"):
        found = _SHAPES.get(dtype)
        shapes = None if found is None or dtype == "float16" else found[-1:]
    else:
        return None
    batch, channels = [attrs.data_layout.index(a) for a in "NC"]
    inner, outer = [attrs.kernel_layout.index(a) for a in "IO"]
    m, k, n = data.concrete_shape[batch], data.concrete_shape[channels], out.concrete_shape[3]
    if shapes is None or (added := padding(m, k, n, shapes)) is None:
        return None
    db, di, do = added
    x = _padded(inputs[0], [{batch: db, channels: di}.get(i, 0) for i in range(4)])
    w = _padded(inputs[1], [{inner: di, outer: do}.get(i, 0) for i in range(4)])
    made = Call(ops.nn.conv2d, (x, w), attrs.replace(channels=n + do))
    return _cut(made, out.shape, db or do)


dense_legalize.register(dense_for_tensor_cores, _TARGETS)
batch_matmul_legalize.register(batch_matmul_for_tensor_cores, _TARGETS)
conv2d_legalize.register(conv2d_for_tensor_cores, _TARGETS)
