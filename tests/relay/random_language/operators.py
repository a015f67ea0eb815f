"""Random calls of operators on tensors in scope."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tvm import relay

from .scope import FLOATS, INTEGERS, MAX_SIZE, NARROW, Scope, concrete, tensor_type

Maker = Callable[[Scope], relay.Expr]


def unary(s: Scope) -> relay.Expr:
    x = s.of_dtypes(s.pick([FLOATS, FLOATS, INTEGERS, ("bool",)]))
    dtype = s.dtype_of(x)
    if dtype == "bool":
        return relay.logical_not(x)
    if dtype == "uint8":
        return relay.minimum(x, relay.const(3, dtype))
    if dtype not in FLOATS:
        return s.pick([relay.negative, relay.abs, relay.sign, relay.nn.relu])(x)
    ways: list[Callable[[relay.Expr], relay.Expr]] = [
        relay.tanh, relay.sigmoid, relay.nn.relu, relay.negative, relay.abs, relay.erf, relay.cos,
        relay.sin, relay.atan, relay.copy, relay.nn.leaky_relu, relay.nn.dropout,
        lambda v: relay.exp(relay.clip(v, -2.0, 1.0)),
        lambda v: relay.sqrt(relay.abs(v) + relay.const(0.25, dtype)),
        lambda v: relay.rsqrt(relay.abs(v) + relay.const(0.5, dtype)),
        lambda v: relay.log(relay.abs(v) + relay.const(0.5, dtype)),
        lambda v: s.small(v * v),
        lambda v: v / relay.const(3, dtype),
        lambda v: v * relay.sigmoid(v),
    ]  # fmt: skip
    return s.pick(ways)(x)


def binary(s: Scope) -> relay.Expr:
    x = s.a_number()
    other = broadcastable(s, s.type_of(x))
    op = s.pick([relay.add, relay.subtract, relay.multiply, relay.maximum, relay.minimum])
    return s.small(op(x, other) if s.chance(0.7) else op(other, x))


def broadcastable(s: Scope, ty: relay.TensorType) -> relay.Expr:
    """A tensor that broadcasts to the shape."""
    shape = concrete(ty)
    kept = shape[s.rng.randint(0, len(shape)) :] if s.chance(0.4) else shape
    kept = tuple([d if s.chance(0.8) else 1 for d in kept])
    return s.of_type(tensor_type(kept, str(ty.dtype)))


def integer_binary(s: Scope) -> relay.Expr:
    x = s.an_integer()
    dtype = s.dtype_of(x)
    other = broadcastable(s, s.type_of(x))
    divisor = relay.const(s.pick([2, 3, 5] if dtype == "uint8" else [2, 3, -3, 5]), dtype)
    shift = relay.const(s.rng.randint(0, 2), dtype)
    ways: list[Callable[[], relay.Expr]] = [
        lambda: relay.floor_divide(x, divisor),
        lambda: relay.floor_mod(x, divisor),
        lambda: relay.divide(x, divisor),
        lambda: relay.mod(x, divisor),
        lambda: relay.bitwise_and(x, other),
        lambda: relay.bitwise_or(x, other),
        lambda: relay.bitwise_xor(x, other),
        lambda: relay.right_shift(x, shift),
        lambda: relay.left_shift(x, shift),
    ]
    return s.small(s.pick(ways)())


def compared(s: Scope) -> relay.Expr:
    """Booleans, of integers or of booleans."""
    if s.chance(0.4) and s.tensors(["bool"]):
        x = s.of_dtypes(["bool"])
        other = broadcastable(s, s.type_of(x))
        return s.pick([relay.logical_and, relay.logical_or, relay.logical_xor])(x, other)
    x = s.an_integer()
    ops = [relay.less, relay.less_equal, relay.greater, relay.greater_equal, relay.equal]
    return s.pick([*ops, relay.not_equal])(x, broadcastable(s, s.type_of(x)))


def reduced(s: Scope) -> relay.Expr:
    x = s.any_tensor()
    dtype = s.dtype_of(x)
    axes = [a for a in range(len(s.shape_of(x))) if s.chance(0.5)] or None
    if dtype == "bool":
        return s.pick([relay.all, relay.any])(x, axis=axes)
    ops = [relay.max, relay.min]
    if dtype not in NARROW:
        ops += [relay.sum, relay.sum]
    if dtype in FLOATS:
        ops += [relay.mean, relay.variance, relay.logsumexp]
        x = relay.clip(x, -1.5, 1.5)
        if axes is not None and s.chance(0.2):
            return s.small(relay.prod(x, axis=axes))
    return s.small(s.pick(ops)(x, axis=axes, keepdims=s.chance(0.3)))


def extreme(s: Scope) -> relay.Expr:
    """Positions, and the values of a sorted axis."""
    x = s.of_rank(INTEGERS, 1)
    axis = s.rng.randrange(len(s.shape_of(x)))
    if s.chance(0.5):
        op = s.pick([relay.argmax, relay.argmin])
        return op(x, axis=axis, keepdims=s.chance(0.3), select_last_index=s.chance(0.3))
    if s.chance(0.5):
        x = s.of_rank(FLOATS, 1)
        axis = s.rng.randrange(len(s.shape_of(x)))
    if s.chance(0.5):
        return relay.sort(x, axis=axis, is_ascend=s.chance(0.5))
    count = s.rng.randint(1, s.shape_of(x)[axis])
    return relay.topk(x, count, axis, "values", is_ascend=s.chance(0.5))


def moved(s: Scope) -> relay.Expr:
    x = s.any_tensor()
    shape = s.shape_of(x)
    size = int(np.prod(shape))
    if not shape:
        return relay.expand_dims(x, axis=0)
    axis = s.rng.randrange(len(shape))
    begin = s.rng.randrange(shape[axis])
    step = s.rng.randint(1, 2)
    grown = s.rng.randrange(2)
    ways: list[Callable[[], relay.Expr]] = [
        lambda: relay.transpose(x, s.rng.sample(range(len(shape)), len(shape))),
        lambda: relay.reshape(x, s.pick([(size,), (1, size), (size, 1), (-1,), (0, -1)])),
        lambda: relay.reverse(x, axis=axis),
        lambda: relay.strided_slice(x, [begin], [shape[axis]], [step], axes=[axis]),
        lambda: relay.squeeze(x, [axis]) if shape[axis] == 1 else relay.expand_dims(x, axis),
        lambda: relay.nn.batch_flatten(x) if len(shape) > 1 else relay.reshape(x, (-1, 1)),
        lambda: relay.repeat(x, repeats=2, axis=axis),
        lambda: relay.nn.pad(x, [(grown, int(i == axis)) for i in range(len(shape))]),
        lambda: relay.nn.mirror_pad(x, [(0, int(d > 1)) for d in shape], s.pick(MIRRORS)),
        lambda: relay.take(x, relay.const([0, shape[axis] - 1]), axis=axis),
        lambda: relay.tile(x, tuple([1 + int(i == axis) for i in range(len(shape))])),
    ]
    return s.pick(ways[:6] if size > MAX_SIZE else ways)()


MIRRORS = ("SYMMETRIC", "REFLECT")


def indexed(s: Scope) -> relay.Expr:
    """A tensor read at positions that are computed."""
    x = s.of_rank([*FLOATS, *INTEGERS], 1, 3)
    shape = s.shape_of(x)
    axis = s.rng.randrange(len(shape))
    positions = relay.clip(relay.cast(s.an_integer(), "int32"), 0, shape[axis] - 1)
    if np.prod(s.shape_of(positions)) > 16:
        positions = relay.const([0, shape[axis] - 1, 0], "int32")
    kind = s.rng.randrange(4)
    if kind == 0:
        return relay.take(x, positions, axis=axis, mode=s.pick(["clip", "wrap", "fast"]))
    if kind == 1:
        where = s.constant(shape, "int32")
        where = relay.clip(where, 0, shape[axis] - 1)
        return relay.gather(x, axis, where)
    if kind == 2:
        rows = relay.reshape(positions, (1, -1))
        return relay.gather_nd(x, relay.clip(rows, 0, shape[0] - 1))
    return relay.one_hot(
        positions, relay.const(1.0), relay.const(0.0), int(shape[axis]), -1, "float32"
    )


def overwritten(s: Scope) -> relay.Expr:
    """A tensor with some elements replaced or summed up."""
    x = s.of_rank([*FLOATS, "int32"], 1, 3)
    shape, dtype = s.shape_of(x), s.dtype_of(x)
    axis = s.rng.randrange(len(shape))
    kind = s.rng.randrange(4)
    if kind == 0:
        part = tuple([s.rng.randint(1, d) for d in shape])
        return relay.strided_set(x, s.of_type(tensor_type(part, dtype)), [0] * len(shape), part)
    if kind == 1:
        where = relay.clip(s.constant(shape, "int32"), 0, shape[axis] - 1)
        updates = s.of_type(s.type_of(x))
        return s.small(relay.scatter_elements(x, where, updates, axis, "add"))
    if kind == 2:
        return s.small(relay.cumsum(x, axis=axis, exclusive=s.chance(0.3)))
    if len(shape) == 1:
        return relay.zeros_like(x)
    lengths = s.values((shape[1],), "int32").clip(0, shape[0]).astype("int32")
    return relay.sequence_mask(x, relay.const(lengths), 0.5 if dtype in FLOATS else 1, axis=0)


def joined(s: Scope) -> relay.Expr:
    x = s.any_tensor()
    ty = s.type_of(x)
    if not ty.shape or np.prod(concrete(ty)) > MAX_SIZE:
        return relay.copy(x)
    axis = s.rng.randrange(len(ty.shape))
    others = [s.of_type(ty) for _ in range(s.rng.randint(1, 2))]
    if s.chance(0.3):
        return relay.stack([x, *others], axis=axis)
    return relay.concatenate([x, *others], axis=axis)


def parted(s: Scope) -> relay.Expr:
    x = s.any_tensor()
    shape = s.shape_of(x)
    splittable = [a for a, d in enumerate(shape) if d > 1]
    if not splittable:
        return relay.TupleGetItem(relay.Tuple([x, s.any_tensor()]), 0)
    axis = s.pick(splittable)
    parts = relay.split(x, [s.rng.randint(1, shape[axis] - 1)], axis=axis)
    if s.chance(0.3):  # a tuple as it is, joined again
        return relay.concatenate(parts.astuple(), axis=axis)
    return parts[s.rng.randrange(2)]


def product(s: Scope) -> relay.Expr:
    x = s.a_float()
    dtype = s.dtype_of(x)
    rows = relay.reshape(x, (1, -1)) if len(s.shape_of(x)) != 2 else x
    inner = s.shape_of(rows)[1]
    units = s.rng.randint(1, 5)
    if s.chance(0.2):
        weight = s.of_type(tensor_type((inner, units), dtype))
        return s.small(relay.nn.matmul(rows, weight))
    if s.chance(0.2):
        images = relay.expand_dims(rows, 0)
        weight = s.of_type(tensor_type((1, units, inner), dtype))
        return s.small(relay.nn.batch_matmul(images, weight))
    weight = s.of_type(tensor_type((units, inner), dtype))
    out = relay.nn.dense(rows, weight)
    if s.chance(0.5):
        out = relay.nn.bias_add(out, s.of_type(tensor_type((units,), dtype)))
    return s.small(out)


def normalised(s: Scope) -> relay.Expr:
    x = s.a_float()
    shape, dtype = s.shape_of(x), s.dtype_of(x)
    if not shape:
        return relay.sigmoid(x)
    axis = s.rng.randrange(len(shape))
    by_axis = [s.of_type(tensor_type((shape[axis],), dtype)) for _ in range(2)]
    mean = s.of_type(tensor_type((shape[axis],), dtype))
    spread = relay.const(np.linspace(0.5, 1.5, shape[axis]), dtype)
    ways: list[Callable[[], relay.Expr]] = [
        lambda: relay.nn.softmax(x, axis=axis),
        lambda: relay.nn.log_softmax(x, axis=-1),
        lambda: relay.nn.l2_normalize(x, 0.1, [axis]),
        lambda: relay.nn.layer_norm(x, *by_axis, axis=axis, epsilon=0.1),
        lambda: relay.nn.batch_norm(x, *by_axis, mean, spread, axis=axis)[0],
        lambda: relay.nn.prelu(x, by_axis[0], axis=axis),
    ]
    return s.small(s.pick(ways)())


def converted(s: Scope) -> relay.Expr:
    x = s.any_tensor()
    dtype = s.dtype_of(x)
    if dtype in FLOATS:
        return relay.cast(x, s.pick(s.floats))
    if dtype == "bool":
        return relay.cast(x, s.pick(["float32", "int32", "uint8"]))
    if s.chance(0.4):
        exact = relay.cast(x, "float32") * relay.const(0.375)  # the same in all ways
        op = s.pick([relay.floor, relay.ceil, relay.trunc, relay.round])
        return op(exact) if s.chance(0.5) else exact
    wanted = s.pick([d for d in s.integers if d not in ("bool", "uint8")])
    return relay.cast(x, wanted)


def selected(s: Scope) -> relay.Expr:
    x = s.any_tensor()
    ty = s.type_of(x)
    which = s.of_type(tensor_type(concrete(ty), "int32"))
    return relay.where(relay.greater(which, relay.const(0)), x, s.of_type(ty))


def window(s: Scope) -> relay.Expr:
    """Something over an image."""
    channels, size = s.rng.randint(1, 4), s.rng.randint(3, 6)
    x = s.of_type(tensor_type((1, channels, size, size), "float32"))
    ways: list[Callable[[], relay.Expr]] = [
        lambda: relay.nn.max_pool2d(x, (2, 2), padding=(1, 1)),
        lambda: relay.nn.avg_pool2d(
            x, (3, 3), padding=(1, 1), count_include_pad=s.chance(0.5), ceil_mode=s.chance(0.3)
        ),
        lambda: relay.nn.global_avg_pool2d(x),
        lambda: relay.nn.adaptive_max_pool2d(x, (2, 2)),
        lambda: relay.nn.upsampling(x, 2, 2, align_corners=False),
        lambda: relay.image.resize2d(
            x,
            (4, 4),
            method=s.pick(["linear", "cubic"]),
            coordinate_transformation_mode="half_pixel",
        ),
        lambda: relay.nn.lrn(x, size=3),
        lambda: relay.nn.instance_norm(
            x, *[s.constant((channels,), "float32") for _ in range(2)], epsilon=0.1
        ),
        lambda: relay.nn.depth_to_space(relay.concatenate([x] * 4, 1), 2),
    ]
    made = s.pick(ways)()
    return s.small(made)


def convolved(s: Scope) -> relay.Expr:
    channels, size = s.pick([1, 2, 3, 4, 8]), s.rng.randint(3, 6)
    filters = s.pick([1, 2, 3, 4, 8])
    x = s.of_type(tensor_type((1, channels, size, size), "float32"))
    stride, dilation = s.rng.randint(1, 2), s.rng.randint(1, 2)
    spread = {
        "padding": (dilation, dilation),
        "strides": (stride, stride),
        "dilation": (dilation, dilation),
    }
    kind = s.rng.randrange(6)
    if kind == 0:
        weight = s.constant((channels, 1, 3, 3), "float32")
        out = relay.nn.conv2d(x, weight, groups=channels, **spread)
    elif kind == 1:
        weight = s.constant((3, 3, channels, filters), "float32")
        rows = relay.transpose(x, (0, 2, 3, 1))
        out = relay.nn.conv2d(rows, weight, data_layout="NHWC", kernel_layout="HWIO", **spread)
    elif kind == 2:
        weight = s.constant((channels, filters, 2, 2), "float32")
        out = relay.nn.conv2d_transpose(x, weight, padding=dilation - 1, strides=stride)
    elif kind == 3:
        weight = s.constant((filters, channels, 3), "float32")
        line = relay.reshape(x, (1, channels, -1))
        out = relay.nn.conv1d(line, weight, padding=1, strides=stride)
    else:
        weight = s.constant((filters, channels, 3, 3), "float32")
        out = relay.nn.conv2d(x, weight, **spread)
        if s.chance(0.6):
            out = relay.nn.bias_add(out, s.of_type(tensor_type((filters,), "float32")))
        if s.chance(0.3):
            out = relay.nn.relu(out)
    return s.small(out)


OPERATORS: tuple[tuple[int, Maker], ...] = (
    (4, unary), (5, binary), (2, integer_binary), (1, compared), (2, reduced), (1, extreme),
    (4, moved), (2, indexed), (2, overwritten), (2, joined), (2, parted), (2, product),
    (2, normalised), (2, converted), (1, selected), (1, window), (2, convolved),
)  # fmt: skip


def operator(s: Scope) -> relay.Expr:
    """A call of some operator."""
    weights = [weight for weight, _ in OPERATORS]
    return s.rng.choices([maker for _, maker in OPERATORS], weights)[0](s)
