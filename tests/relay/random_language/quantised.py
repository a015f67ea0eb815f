"""Random calls of quantised operators, from numbers that all ways compute exactly to floats."""

from __future__ import annotations

from dataclasses import dataclass

from tvm import relay

from .scope import Scope, concrete

SCALES = (0.0625, 0.05, 0.02, 0.013)


@dataclass(frozen=True)
class Quantised:
    """A tensor of int8 or uint8 with its scale and zero point."""

    data: relay.Expr
    scale: relay.Expr
    zero: relay.Expr


def parameters(s: Scope, dtype: str) -> tuple[relay.Expr, relay.Expr]:
    low = 0 if dtype == "uint8" else -3
    return relay.const(s.pick(SCALES)), relay.const(s.rng.randint(low, 6), "int32")


def source(s: Scope, shape: tuple[int, ...], dtype: str) -> Quantised:
    """A quantised tensor: of a parameter, if one fits, or a constant."""
    scale, zero = parameters(s, dtype)
    fitting = [p for p in s.exact if concrete(p.type_annotation) == shape]
    if fitting and s.chance(0.7):
        data = relay.qnn.op.quantize(s.pick(fitting), scale, zero, out_dtype=dtype)
    else:
        low, high = (0, 100) if dtype == "uint8" else (-50, 50)
        wide = s.values(shape, "int32") * 16 + s.rng.randint(0, 9)
        data = relay.const(wide.clip(low, high).astype(dtype), dtype)
    return Quantised(data, scale, zero)


def quantised(s: Scope) -> relay.Expr:
    """Quantised operators between quantising and dequantising."""
    shapes = [concrete(p.type_annotation) for p in s.exact]
    dtype = s.pick(["int8", "int8", "uint8"])
    shape = s.pick(shapes) if shapes and s.chance(0.8) else s.shape()
    made = source(s, shape, dtype)
    for _ in range(s.rng.randint(0, 2)):
        made = s.pick([binary, joined, requantised])(s, made)
    if s.chance(0.4):
        return s.small(product(s, made))
    return s.small(relay.qnn.op.dequantize(made.data, made.scale, made.zero))


def simulated(s: Scope) -> relay.Expr:
    """Operators on dequantised tensors, quantised again; scales are such that floats are exact."""
    made = known(s, (1, s.rng.randint(1, 3), s.rng.randint(2, 4), s.rng.randint(2, 4)))
    for _ in range(s.rng.randint(0, 2)):
        made = s.pick([simulated_move, simulated_pair])(s, made)
    if s.chance(0.4):  # once: what follows may stop at other limits as integers
        made = simulated_product(s, made)
    if s.chance(0.5):
        made = simulated_move(s, made)
    zero = relay.const(s.rng.randint(-3, 6), "int32")
    narrow = relay.qnn.op.quantize(made, relay.const(EXACT_SCALE), zero, out_dtype="int8")
    return s.small(relay.qnn.op.dequantize(narrow, relay.const(EXACT_SCALE), zero))


EXACT_SCALE = 0.125


def known(s: Scope, shape: tuple[int, ...]) -> relay.Expr:
    """Multiples of the scale, dequantised."""
    data = relay.const(s.values(shape, "int32").astype("int8") * 5 + s.rng.randint(-4, 4), "int8")
    zero = relay.const(s.rng.randint(-3, 6), "int32")
    return relay.qnn.op.dequantize(data, relay.const(EXACT_SCALE), zero)


def simulated_move(s: Scope, x: relay.Expr) -> relay.Expr:
    shape = s.shape_of(x)
    ways = [
        lambda: relay.nn.relu(x),
        lambda: relay.clip(x, -1.5, 3.0),
        lambda: relay.nn.max_pool2d(x, (2, 2), padding=(1, 1)),
        lambda: relay.transpose(x, (0, 1, 3, 2)),
        lambda: relay.reshape(x, (1, shape[1], 1, -1)),
        lambda: relay.nn.pad(x, [(0, 0), (0, 0), (1, 0), (0, 1)], relay.const(0.0)),
        lambda: relay.strided_slice(x, [0, 0, 0, 0], [1, 1, 2, 2]),
        lambda: relay.max(x, axis=[2], keepdims=True),
    ]
    return s.pick(ways)()


def simulated_pair(s: Scope, x: relay.Expr) -> relay.Expr:
    other = known(s, s.shape_of(x))
    ways = [
        lambda: x + other,
        lambda: x - other,
        lambda: relay.maximum(x, other),
        lambda: relay.minimum(other, x),
        lambda: relay.concatenate([x, other], axis=s.rng.randint(1, 3)),
    ]
    return s.pick(ways)()


def simulated_product(s: Scope, x: relay.Expr) -> relay.Expr:
    shape = s.shape_of(x)
    if s.chance(0.5):
        rows = relay.reshape(x, (-1, shape[3]))
        out = relay.nn.dense(rows, known(s, (3, shape[3])))
        if s.chance(0.5):
            out = relay.nn.bias_add(out, known(s, (3,)))
        return relay.reshape(out, (1, 1, -1, 3))
    weight = known(s, (2, shape[1], 3, 3))
    return relay.nn.conv2d(x, weight, padding=(1, 1))


def binary(s: Scope, x: Quantised) -> Quantised:
    ty = s.type_of(x.data)
    y = source(s, concrete(ty), str(ty.dtype))
    scale, zero = parameters(s, str(ty.dtype))
    op = s.pick([relay.qnn.op.add, relay.qnn.op.mul, relay.qnn.op.subtract])
    return Quantised(op(x.data, y.data, x.scale, x.zero, y.scale, y.zero, scale, zero), scale, zero)


def joined(s: Scope, x: Quantised) -> Quantised:
    ty = s.type_of(x.data)
    if not ty.shape or len(ty.shape) > 3:
        return x
    y = source(s, concrete(ty), str(ty.dtype))
    scale, zero = parameters(s, str(ty.dtype))
    data = relay.qnn.op.concatenate(
        [x.data, y.data], [x.scale, y.scale], [x.zero, y.zero], scale, zero, 0
    )
    return Quantised(data, scale, zero)


def requantised(s: Scope, x: Quantised) -> Quantised:
    dtype = s.dtype_of(x.data)
    scale, zero = parameters(s, dtype)
    rounding = s.pick(["UPWARD", "TONEAREST"])
    data = relay.qnn.op.requantize(
        x.data, x.scale, x.zero, scale, zero, rounding=rounding, out_dtype=dtype
    )
    return Quantised(data, scale, zero)


def product(s: Scope, x: Quantised) -> relay.Expr:
    """A dense layer or a convolution of integers, dequantised."""
    if s.chance(0.5):
        return convolved(s, x)
    rows = x.data if len(s.shape_of(x.data)) == 2 else relay.reshape(x.data, (1, -1))
    units = s.rng.randint(1, 5)
    w = source(s, (units, s.shape_of(rows)[1]), "int8")
    out = relay.qnn.op.dense(rows, w.data, x.zero, w.zero, x.scale, w.scale, units)
    if s.chance(0.5):
        out = relay.nn.bias_add(out, s.constant((units,), "int32"))
    return dequantised(s, out, x, w)


def convolved(s: Scope, x: Quantised) -> relay.Expr:
    shape = s.shape_of(x.data)
    image = relay.reshape(x.data, (1, 1, -1, shape[-1] if shape else 1))
    filters = s.rng.randint(1, 4)
    w = source(s, (filters, 1, 3, 3), "int8")
    out = relay.qnn.op.conv2d(
        image, w.data, x.zero, w.zero, x.scale, w.scale, (3, 3), filters, padding=(1, 1)
    )
    return dequantised(s, out, x, w)


def dequantised(s: Scope, out: relay.Expr, x: Quantised, w: Quantised) -> relay.Expr:
    scale = relay.const(x.scale.data.numpy() * w.scale.data.numpy())
    nothing = relay.const(0, "int32")
    if s.chance(0.5):
        narrow, zero = parameters(s, "int8")
        out = relay.qnn.op.requantize(out, scale, nothing, narrow, zero, out_dtype="int8")
        return relay.qnn.op.dequantize(out, narrow, zero)
    return relay.qnn.op.dequantize(out, scale, nothing)
