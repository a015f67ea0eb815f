"""Nodes that random ONNX graphs are drawn from: each entry of `DRAWS` adds one, or declines."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import prod

import numpy as np
from onnx import helper

from .random_onnx_graph import DTYPES, FLOATS, LARGEST, Graph, Value

# -- element-wise operators

_SMOOTH = ("Tanh", "Sigmoid", "Erf", "Softplus", "Softsign", "Sin", "Cos", "Atan", "Elu", "Selu",
           "Exp", "HardSigmoid")  # fmt: skip
_EXACT_UNARY = ("Neg", "Abs", "Relu", "Identity", "Sign")
_ROUNDING = ("Floor", "Ceil", "Round")


def _smooth(g: Graph) -> None:
    value = g.pick(lambda v: v.is_float)
    if value:
        if g.chance(0.5):
            value = g.add("Tanh", [value], replace(value, is_exact=False))  # keep it small
        g.add(g.choose(_SMOOTH), [value], replace(value, is_exact=False))


def _positive(g: Graph) -> None:
    """Operators of positive numbers."""
    value = g.pick(lambda v: v.is_float)
    if value:
        op = g.choose(("Log", "Sqrt", "Reciprocal"))
        value = g.add("Abs", [value], value)
        one = g.constant(np.ones((), value.dtype))
        value = g.add("Add", [value, one], value)
        g.add(op, [value], replace(value, is_exact=False))


def _exact_unary(g: Graph) -> None:
    value = g.pick(lambda v: v.is_number and v.dtype != "uint8")
    if value and (value.is_exact or value.is_float):
        op = g.choose(_EXACT_UNARY)
        if op == "Sign" and not value.is_exact:
            return
        if op == "Relu" and not value.is_float:
            return
        g.add(op, [value], value)


def _rounding(g: Graph) -> None:
    value = g.pick(lambda v: v.is_float and v.is_exact)
    if value:
        g.add(g.choose(_ROUNDING), [value], value)


def _other(g: Graph, value: Value) -> Value:
    """An operand that broadcasts with `value`."""
    found = g.pick(
        lambda v: v.dtype == value.dtype and _broadcast(v.shape, value.shape) is not None
    )
    if found and g.chance(0.7):
        return found
    shape = [1 if g.chance(0.3) else n for n in value.shape][g.integer(0, value.rank) :]
    return g.constant(g.array(shape, value.dtype))


def _broadcast(*shapes: tuple[int, ...]) -> tuple[int, ...] | None:
    try:
        found = tuple(np.broadcast_shapes(*shapes))
    except ValueError:
        return None
    return found if prod(found) <= LARGEST else None


def _binary(g: Graph) -> None:
    value = g.pick(lambda v: v.is_number)
    if not value:
        return
    other = _other(g, value)
    operands = [value, other] if g.chance(0.5) else [other, value]
    op = g.choose(("Add", "Sub", "Mul", "Max", "Min", "Div"))
    if op == "Div":
        operands = [value, g.constant(np.full(other.shape, g.integer(1, 4), value.dtype))]
    is_exact = not value.is_float or (
        op in ("Max", "Min", "Add", "Sub") and value.is_exact and other.is_exact
    )
    shape = _broadcast(operands[0].shape, operands[1].shape)
    if shape is not None:
        g.add(op, operands, replace(value, shape=shape, is_exact=is_exact))


def _comparison(g: Graph) -> None:
    value = g.pick(lambda v: v.is_number and v.is_exact)
    if not value:
        return
    other = _other(g, value)
    shape = _broadcast(value.shape, other.shape)
    if other.is_exact and shape is not None:
        op = g.choose(("Less", "Greater", "Equal", "LessOrEqual", "GreaterOrEqual"))
        g.add(op, [value, other], Value("", shape, "bool"))


def _logical(g: Graph) -> None:
    value = g.pick(lambda v: v.dtype == "bool")
    if not value:
        return
    if g.chance(0.3):
        g.add("Not", [value], value)
        return
    other = _other(g, value)
    shape = _broadcast(value.shape, other.shape)
    if shape is not None:
        g.add(g.choose(("And", "Or", "Xor")), [value, other], replace(value, shape=shape))


def _where(g: Graph) -> None:
    condition = g.pick(lambda v: v.dtype == "bool")
    value = g.pick(
        lambda v: condition is not None and _broadcast(v.shape, condition.shape) is not None
    )
    if not condition or not value:
        return
    other = _other(g, value)
    shape = _broadcast(condition.shape, value.shape, other.shape)
    if shape is not None:
        is_exact = value.is_exact and other.is_exact
        g.add("Where", [condition, value, other], replace(value, shape=shape, is_exact=is_exact))


def _cast(g: Graph) -> None:
    value = g.pick()
    target = g.choose(DTYPES)
    if not value or (value.is_float and target not in FLOATS and not value.is_exact):
        return
    if value.is_float and target == "uint8":
        value = g.add("Abs", [value], value)
    is_exact = value.is_exact and not (target == "float16" and value.dtype in ("int32", "int64"))
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(target))
    g.add("Cast", [value], replace(value, dtype=target, is_exact=is_exact), to=kind)


def _clip(g: Graph) -> None:
    value = g.pick(lambda v: v.is_float or v.dtype in ("int32", "int64"))
    if value:
        low, high = [g.constant(np.array(n, value.dtype)) for n in (-1, g.integer(0, 2))]
        g.add("Clip", [value, low, high] if g.chance(0.7) else [value, "", high], value)


# -- operators that move elements


def _reshape(g: Graph) -> None:
    value = g.pick()
    if not value:
        return
    count, shape = prod(value.shape), []
    for _ in range(g.integer(0, 3)):
        divisors = [n for n in range(1, count + 1) if count % n == 0]
        shape.append(g.choose(divisors))
        count //= shape[-1]
    shape.append(count)
    written = list(shape)
    if g.chance(0.4):
        written[g.integer(0, len(shape) - 1)] = -1
    g.add("Reshape", [value, g.integers(*written)], replace(value, shape=tuple(shape)))


def _transpose(g: Graph) -> None:
    value = g.pick(lambda v: v.rank > 0)
    if value:
        order = [int(a) for a in g.rng.permutation(value.rank)]
        shape = tuple(value.shape[a] for a in order)
        g.add("Transpose", [value], replace(value, shape=shape), perm=order)


def _unsqueeze(g: Graph) -> None:
    value = g.pick(lambda v: v.rank < 4)
    if value:
        axis = g.integer(0, value.rank)
        shape = (*value.shape[:axis], 1, *value.shape[axis:])
        g.add("Unsqueeze", [value, g.integers(axis)], replace(value, shape=shape))


def _squeeze(g: Graph) -> None:
    value = g.pick(lambda v: 1 in v.shape)
    if value:
        axis = g.choose([a for a, n in enumerate(value.shape) if n == 1])
        shape = tuple(n for a, n in enumerate(value.shape) if a != axis)
        g.add("Squeeze", [value, g.integers(axis - value.rank)], replace(value, shape=shape))


def _concat(g: Graph) -> None:
    value = g.pick(lambda v: v.rank > 0)
    if not value:
        return
    axis = g.axis(value)
    at = axis % value.rank

    def fits(v: Value) -> bool:
        same = [
            a == b for i, (a, b) in enumerate(zip(v.shape, value.shape, strict=False)) if i != at
        ]
        return v.dtype == value.dtype and v.rank == value.rank and all(same)

    parts = [value, *[g.pick(fits) for _ in range(g.integer(0, 2))]]
    extent = sum(p.shape[at] for p in parts if p)
    shape = (*value.shape[:at], extent, *value.shape[at + 1 :])
    if prod(shape) <= LARGEST:
        is_exact = all(p.is_exact for p in parts if p)
        like = replace(value, shape=shape, is_exact=is_exact)
        g.add("Concat", [p for p in parts if p], like, axis=axis)


def _slice(g: Graph) -> None:
    value = g.pick(lambda v: v.rank > 0)
    if not value:
        return
    axis = g.axis(value)
    extent = value.shape[axis]
    step = g.choose((1, 1, 2, -1))
    first = g.integer(0, extent - 1)
    start, end = (first, extent) if step > 0 else (first, -extent - 1)
    count = len(range(extent)[first : None if step < 0 else end : step])
    shape = list(value.shape)
    shape[axis] = count
    bounds = [g.integers(n) for n in (start, end, axis, step)]
    g.add("Slice", [value, *bounds], replace(value, shape=tuple(shape)))


def _pad(g: Graph) -> None:
    value = g.pick(lambda v: v.rank > 0 and v.is_float)
    if not value:
        return
    mode = g.choose(("constant", "edge", "reflect"))
    most = [min(2, n - 1) if mode == "reflect" else 2 for n in value.shape]
    before, after = [[g.integer(0, m) for m in most] for _ in range(2)]
    shape = tuple(b + n + a for b, n, a in zip(before, value.shape, after, strict=True))
    if prod(shape) <= LARGEST:
        given = [value, g.integers(*before, *after)]
        if mode == "constant" and g.chance(0.5):
            given.append(g.constant(np.array(1.5, value.dtype)))
        g.add("Pad", given, replace(value, shape=shape), mode=mode)


def _tile(g: Graph) -> None:
    value = g.pick(lambda v: v.rank > 0)
    if value:
        times = [g.integer(1, 3) for _ in value.shape]
        shape = tuple(n * t for n, t in zip(value.shape, times, strict=True))
        if prod(shape) <= LARGEST:
            g.add("Tile", [value, g.integers(*times)], replace(value, shape=shape))


def _expand(g: Graph) -> None:
    value = g.pick()
    if value:
        wanted = [g.integer(1, 3) if n == 1 else n for n in value.shape]
        wanted = [g.integer(1, 3)] * (value.rank < 4 and g.chance(0.4)) + wanted
        shape = _broadcast(value.shape, tuple(wanted))
        if wanted and shape is not None:
            g.add("Expand", [value, g.integers(*wanted)], replace(value, shape=shape))


def _gather(g: Graph) -> None:
    value = g.pick(lambda v: v.rank > 0)
    if value:
        axis = g.axis(value)
        extent = value.shape[axis]
        around = [g.integer(1, 3) for _ in range(g.integer(0, 2))]
        indices = g.constant(g.rng.integers(-extent, extent, around).astype("int64"))
        at = axis % value.rank
        shape = (*value.shape[:at], *around, *value.shape[at + 1 :])
        g.add("Gather", [value, indices], replace(value, shape=shape), axis=axis)


def _gather_elements(g: Graph) -> None:
    value = g.pick(lambda v: v.rank > 0)
    if value:
        axis = g.axis(value)
        shape = [g.integer(1, n) for n in value.shape]
        indices = g.constant(g.rng.integers(0, value.shape[axis], shape).astype("int64"))
        g.add("GatherElements", [value, indices], replace(value, shape=tuple(shape)), axis=axis)


def _scatter_elements(g: Graph) -> None:
    value = g.pick(lambda v: v.rank > 0 and v.is_number)
    if value:
        axis = g.axis(value)
        shape = [g.integer(1, n) for n in value.shape]
        order = g.rng.permuted(
            np.broadcast_to(
                _along(value.shape[axis], axis, value.rank),
                [value.shape[axis] if a == axis % value.rank else n for a, n in enumerate(shape)],
            ),
            axis=axis,
        )
        indices = np.take(order, range(shape[axis]), axis=axis).astype("int64")
        updates = g.constant(g.array(shape, value.dtype))
        g.add("ScatterElements", [value, g.constant(indices), updates], value, axis=axis)


def _along(extent: int, axis: int, rank: int) -> np.ndarray:
    return np.arange(extent).reshape([extent if a == axis % rank else 1 for a in range(rank)])


def _split(g: Graph) -> None:
    value = g.pick(lambda v: any(n > 1 for n in v.shape))
    if value:
        axis = g.choose([a for a, n in enumerate(value.shape) if n > 1])
        first = g.integer(1, value.shape[axis] - 1)
        sizes = (first, value.shape[axis] - first)
        names = [f"v{len(g.nodes)}", f"v{len(g.nodes)}_1"]
        given = [value.name, g.integers(*sizes)]
        g.nodes.append(helper.make_node("Split", given, names, axis=axis))
        for name, size in zip(names, sizes, strict=True):
            shape = (*value.shape[:axis], size, *value.shape[axis + 1 :])
            g.values.append(replace(value, name=name, shape=shape))


def _trilu(g: Graph) -> None:
    value = g.pick(lambda v: v.rank >= 2 and v.dtype in ("float32", "float64", "int64"))
    if value:
        g.add(
            "Trilu",
            [value, g.constant(np.array(g.integer(-1, 1), "int64"))],
            value,
            upper=g.integer(0, 1),
        )


# -- reductions

_REDUCTIONS = ("ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1",
               "ReduceL2", "ReduceSumSquare", "ReduceLogSumExp")  # fmt: skip


def _reduce(g: Graph) -> None:
    value = g.pick(lambda v: v.rank > 0 and v.dtype in ("float32", "float64", "int32"))
    if not value:
        return
    op = g.choose(_REDUCTIONS)
    if not value.is_float and op not in ("ReduceSum", "ReduceMax", "ReduceMin"):
        return
    axes = sorted(g.rng.choice(value.rank, g.integer(1, value.rank), replace=False).tolist())
    keep = g.integer(0, 1)
    shape = tuple(1 if a in axes else n for a, n in enumerate(value.shape) if keep or a not in axes)
    is_exact = op in ("ReduceMax", "ReduceMin") and value.is_exact
    like = replace(value, shape=shape, is_exact=is_exact or not value.is_float)
    written = [a - value.rank if g.chance(0.3) else a for a in axes]
    if op == "ReduceSum" or g.opset >= 18:
        g.add(op, [value, g.integers(*written)], like, keepdims=keep)
    else:
        g.add(op, [value], like, keepdims=keep, axes=written)


def _arg(g: Graph) -> None:
    value = g.pick(lambda v: v.rank > 0 and v.is_exact and v.dtype in ("float32", "int32"))
    if value:
        axis, keep = g.axis(value), g.integer(0, 1)
        at = axis % value.rank
        shape = (*value.shape[:at], *([1] * keep), *value.shape[at + 1 :])
        like = Value("", shape, "int64")
        g.add(g.choose(("ArgMax", "ArgMin")), [value], like, axis=axis, keepdims=keep)


def _softmax(g: Graph) -> None:
    value = g.pick(lambda v: v.rank > 0 and v.is_float)
    if value:
        op = g.choose(("Softmax", "LogSoftmax"))
        g.add(op, [value], replace(value, is_exact=False), axis=g.axis(value))


def _cumsum(g: Graph) -> None:
    value = g.pick(lambda v: v.rank > 0 and v.dtype in ("float32", "int32", "int64"))
    if value:
        axis = g.constant(np.array(g.axis(value), "int64"))
        like = replace(value, is_exact=not value.is_float)
        flags = {"exclusive": g.integer(0, 1), "reverse": g.integer(0, 1)}
        g.add("CumSum", [value, axis], like, **flags)


# -- products, convolutions, pooling, normalisation


def _matmul(g: Graph) -> None:
    value = g.pick(lambda v: v.rank >= 2 and v.dtype in ("float32", "float64"))
    if value:
        columns = g.integer(1, 6)
        around = value.shape[:-2] if g.chance(0.5) else ()
        other = g.constant(g.array((*around, value.shape[-1], columns), value.dtype) / 4)
        shape = (*value.shape[:-1], columns)
        g.add("MatMul", [value, other], replace(value, shape=shape, is_exact=False))


def _gemm(g: Graph) -> None:
    value = g.pick(lambda v: v.rank == 2 and v.dtype == "float32")
    if value:
        turned, columns = g.integer(0, 1), g.integer(1, 6)
        rows, inner = reversed(value.shape) if turned else value.shape
        turned_b = g.integer(0, 1)
        other = g.array((columns, inner) if turned_b else (inner, columns), "float32") / 4
        bias = g.array(g.choose(((columns,), (rows, 1), (1,), (rows, columns))), "float32")
        like = replace(value, shape=(rows, columns), is_exact=False)
        flags = {"transA": turned, "transB": turned_b, "alpha": 0.5, "beta": 2.0}
        g.add("Gemm", [value, g.constant(other), g.constant(bias)], like, **flags)


def _conv(g: Graph) -> None:
    value = g.pick(lambda v: v.rank in (3, 4) and v.dtype == "float32")
    if not value:
        return
    channels, *image = value.shape[1:]
    groups = g.choose([n for n in (1, channels) if channels % n == 0])
    outputs = groups * g.integer(1, 3)
    kernel = [g.integer(1, min(3, n)) for n in image]
    strides = [g.integer(1, 2) for _ in image]
    pads = [g.integer(0, k - 1) for k in kernel * 2]
    axes = range(len(image))
    shape = [
        (image[a] + pads[a] + pads[a + len(image)] - kernel[a]) // strides[a] + 1 for a in axes
    ]
    weight = g.constant(g.array((outputs, channels // groups, *kernel), "float32") / 4)
    given = [value, weight]
    if g.chance(0.5):
        given.append(g.constant(g.array((outputs,), "float32")))
    like = replace(value, shape=(value.shape[0], outputs, *shape), is_exact=False)
    attrs = {"group": groups, "kernel_shape": kernel, "strides": strides, "pads": pads}
    g.add("Conv", given, like, **attrs)


def _pool(g: Graph) -> None:
    value = g.pick(lambda v: v.rank in (3, 4) and v.dtype == "float32")
    if not value:
        return
    image = value.shape[2:]
    if g.chance(0.3):
        like = replace(value, shape=(*value.shape[:2], *[1] * len(image)), is_exact=False)
        g.add(g.choose(("GlobalAveragePool", "GlobalMaxPool")), [value], like)
        return
    kernel = [g.integer(1, min(3, n)) for n in image]
    strides = [g.integer(1, 2) for _ in image]
    shape = [(n - k) // s + 1 for n, k, s in zip(image, kernel, strides, strict=True)]
    op = g.choose(("MaxPool", "AveragePool"))
    is_exact = value.is_exact and op == "MaxPool"
    like = replace(value, shape=(*value.shape[:2], *shape), is_exact=is_exact)
    g.add(op, [value], like, kernel_shape=kernel, strides=strides)


def _normalise(g: Graph) -> None:
    value = g.pick(lambda v: v.rank in (3, 4) and v.dtype == "float32")
    if not value:
        return
    channels = (value.shape[1],)
    scale, bias, mean = [g.constant(g.array(channels, "float32")) for _ in range(3)]
    like = replace(value, is_exact=False)
    op = g.choose(("BatchNormalization", "InstanceNormalization", "LayerNormalization"))
    if op == "BatchNormalization":
        variance = g.constant(np.abs(g.array(channels, "float32")) + np.float32(0.5))
        g.add(op, [value, scale, bias, mean, variance], like)
    elif op == "InstanceNormalization" and prod(value.shape[2:]) > 1:
        g.add(op, [value, scale, bias], like, epsilon=1e-2)
    elif op == "LayerNormalization" and g.opset >= 17 and value.shape[-1] > 1:
        last = value.shape[-1:]
        scale, bias = [g.constant(g.array(last, "float32")) for _ in range(2)]
        g.add(op, [value, scale, bias], like, axis=-1, epsilon=1e-2)


def _depth_space(g: Graph) -> None:
    value = g.pick(lambda v: v.rank == 4 and v.dtype == "float32")
    if not value:
        return
    n, c, h, w = value.shape
    if c % 4 == 0:
        like = replace(value, shape=(n, c // 4, 2 * h, 2 * w))
        g.add("DepthToSpace", [value], like, blocksize=2, mode=g.choose(("DCR", "CRD")))
    elif h % 2 == 0 and w % 2 == 0:
        g.add(
            "SpaceToDepth", [value], replace(value, shape=(n, 4 * c, h // 2, w // 2)), blocksize=2
        )


def _resize(g: Graph) -> None:
    value = g.pick(lambda v: v.rank == 4 and v.dtype == "float32")
    if value:
        n, c, h, w = value.shape
        shape = (n, c, g.integer(1, 2 * h), g.integer(1, 2 * w))
        given = [value, "", "", g.integers(*shape)]
        like = replace(value, shape=shape, is_exact=False)
        mode = g.choose(("half_pixel", "asymmetric", "pytorch_half_pixel"))
        g.add("Resize", given, like, mode="linear", coordinate_transformation_mode=mode)


DRAWS: tuple[Callable[[Graph], None], ...] = (
    _smooth, _smooth, _positive, _exact_unary, _exact_unary, _rounding, _binary, _binary, _binary,
    _comparison, _logical, _where, _cast, _clip, _reshape, _transpose, _unsqueeze, _squeeze,
    _concat, _concat, _slice, _pad, _tile, _expand, _gather, _gather_elements, _scatter_elements,
    _split, _trilu, _reduce, _reduce, _arg, _softmax, _cumsum, _matmul, _matmul, _gemm, _conv,
    _conv, _conv, _pool, _pool, _normalise, _normalise, _depth_space, _resize,
)  # fmt: skip
