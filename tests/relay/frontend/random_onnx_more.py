"""More kinds of nodes of random ONNX graphs: recurrence, search, quantisation, bits, sampling."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import prod

import numpy as np
from onnx import TensorProto, helper

from .random_onnx_graph import LARGEST, Graph, Value


def _conv_transpose(g: Graph) -> None:
    value = g.pick(lambda v: v.rank in (3, 4) and v.dtype == "float32")
    if not value:
        return
    channels, *image = value.shape[1:]
    groups = g.choose([n for n in (1, channels) if channels % n == 0])
    each = g.integer(1, 3)
    kernel = [g.integer(1, 3) for _ in image]
    strides = [g.integer(1, 3) for _ in image]
    pads = [g.integer(0, k // 2) for k in kernel * 2]
    extra = [g.integer(0, s - 1) for s in strides]
    rank = len(image)
    shape = [
        (image[a] - 1) * strides[a] + kernel[a] + extra[a] - pads[a] - pads[a + rank]
        for a in range(rank)
    ]
    if min(shape) < 1 or prod(shape) * each * groups * value.shape[0] > LARGEST:
        return
    weight = g.constant(g.array((channels, each, *kernel), "float32") / 4)
    like = replace(value, shape=(value.shape[0], each * groups, *shape), is_exact=False)
    attrs = {"group": groups, "kernel_shape": kernel, "strides": strides, "pads": pads}
    g.add("ConvTranspose", [value, weight], like, output_padding=extra, **attrs)


def _recurrent(g: Graph) -> None:
    value = g.pick(lambda v: v.rank == 3 and v.dtype == "float32")
    if not value:
        return
    steps, batch, size = value.shape
    op, hidden = g.choose(("LSTM", "GRU", "RNN")), g.integer(1, 4)
    gates = {"LSTM": 4, "GRU": 3, "RNN": 1}[op]
    direction = g.choose(("forward", "reverse", "bidirectional"))
    passes = 2 if direction == "bidirectional" else 1

    def weight(*shape: int) -> Value:
        return g.constant(g.array((passes, *shape), "float32") / 8)

    given: list[Value | str] = [value, weight(gates * hidden, size), weight(gates * hidden, hidden)]
    if g.chance(0.5):
        given.append(weight(2 * gates * hidden))
        if g.chance(0.5):
            lengths = g.rng.integers(1, steps + 1, batch).astype("int32")
            given.append(g.constant(lengths))
    attrs = {"linear_before_reset": g.integer(0, 1)} if op == "GRU" else {}
    like = replace(value, shape=(steps, passes, batch, hidden), is_exact=False)
    g.add(op, given, like, hidden_size=hidden, direction=direction, **attrs)


def _topk(g: Graph) -> None:
    value = g.pick(lambda v: v.rank > 0 and v.is_exact and v.dtype in ("float32", "int64"))
    if not value:
        return
    axis = g.axis(value)
    count = g.integer(1, value.shape[axis])
    shape = list(value.shape)
    shape[axis] = count
    names = [f"v{len(g.nodes)}", f"v{len(g.nodes)}_1"]
    given = [value.name, g.integers(count)]
    attrs = {"axis": axis, "largest": g.integer(0, 1)}
    g.nodes.append(helper.make_node("TopK", given, names, **attrs))
    like = replace(value, shape=tuple(shape))
    g.values += [replace(like, name=names[0]), replace(like, name=names[1], dtype="int64")]


def _gather_nd(g: Graph) -> None:
    value = g.pick(lambda v: v.rank > 1)
    if value:
        depth, count = g.integer(1, value.rank), g.integer(1, 4)
        places = [g.rng.integers(-n, n, count) for n in value.shape[:depth]]
        indices = g.constant(np.stack(places, 1).astype("int64"))
        shape = (count, *value.shape[depth:])
        g.add("GatherND", [value, indices], replace(value, shape=shape))


def _scatter_nd(g: Graph) -> None:
    value = g.pick(lambda v: v.rank > 0 and v.is_number)
    if value:
        rows = g.rng.permutation(value.shape[0])[: g.integer(1, value.shape[0])]
        indices = g.constant(rows[:, None].astype("int64"))
        updates = g.constant(g.array((len(rows), *value.shape[1:]), value.dtype))
        g.add("ScatterND", [value, indices, updates], value)


def _one_hot(g: Graph) -> None:
    value = g.pick(lambda v: 0 < v.rank < 4 and v.is_exact and v.dtype == "int64")
    if value:
        depth = g.integer(1, 6)
        axis = g.integer(-value.rank - 1, value.rank)
        at = axis % (value.rank + 1)
        shape = (*value.shape[:at], depth, *value.shape[at:])
        values = g.constant(np.array([0.5, 2.0], "float32"))
        like = replace(value, shape=shape, dtype="float32")
        if prod(shape) <= LARGEST:
            g.add("OneHot", [value, g.integers(depth), values], like, axis=axis)


def _quantise(g: Graph) -> None:
    """To eight bits and back; scales are powers of two, so that nothing lies between two steps."""
    value = g.pick(lambda v: v.is_exact and v.dtype == "float32")
    if not value:
        return
    kind = g.choose(("int8", "uint8"))
    count = value.shape[1] if value.rank > 1 and g.chance(0.5) else None
    powers = g.rng.integers(-3, 1, () if count is None else count)
    scale = g.constant(np.asarray(2.0**powers, "float32"))
    zero = g.constant(np.full(scale.shape, 3, kind))
    small = g.add("QuantizeLinear", [value, scale, zero], replace(value, dtype=kind))
    g.add("DequantizeLinear", [small, scale, zero], value)


def _matmul_integer(g: Graph) -> None:
    value = g.pick(lambda v: v.rank >= 2 and v.dtype in ("uint8", "int8"))
    if value:
        columns = g.integer(1, 6)
        other = g.constant(g.array((value.shape[-1], columns), g.choose(("int8", "uint8"))))
        given = [value, other]
        if g.chance(0.5):
            given.append(g.constant(np.array(2, value.dtype)))
            given.append(g.constant(np.full(columns if g.chance(0.5) else (), 1, other.dtype)))
        shape = (*value.shape[:-1], columns)
        g.add("MatMulInteger", given, replace(value, shape=shape, dtype="int32"))


def _bits(g: Graph) -> None:
    value = g.pick(lambda v: v.dtype in ("int32", "int64", "uint8"))
    if not value:
        return
    other = g.constant(np.abs(g.array(value.shape, value.dtype)) % 8)
    if value.dtype == "uint8" and g.chance(0.5):
        g.add("BitShift", [value, other], value, direction=g.choose(("LEFT", "RIGHT")))
    elif g.opset >= 18:
        g.add(g.choose(("BitwiseAnd", "BitwiseOr", "BitwiseXor")), [value, other], value)
        if g.chance(0.3):
            g.add("BitwiseNot", [g.values[-1]], value)


def _mod(g: Graph) -> None:
    value = g.pick(lambda v: v.is_exact and v.dtype in ("int32", "int64", "float32"))
    if value:
        whole = np.abs(g.array(value.shape, value.dtype)) + np.ones((), value.dtype)
        sign = g.choose((1, -1))
        g.add("Mod", [value, g.constant(whole * whole.dtype.type(sign))], value,
              fmod=int(value.is_float))  # fmt: skip


def _variadic(g: Graph) -> None:
    value = g.pick(lambda v: v.dtype in ("float32", "float64"))
    if value:
        count = g.integer(1, 4)
        others = [g.constant(g.array(value.shape, value.dtype)) for _ in range(count - 1)]
        op = g.choose(("Min", "Max", "Sum", "Mean"))
        is_exact = value.is_exact and op in ("Min", "Max")
        g.add(op, [value, *others], replace(value, is_exact=is_exact))


def _parametric(g: Graph) -> None:
    value = g.pick(lambda v: v.dtype == "float32")
    if not value:
        return
    op = g.choose(("PRelu", "LeakyRelu", "ThresholdedRelu", "Celu", "Shrink", "HardSwish", "Mish"))
    like = replace(value, is_exact=False)
    if op == "PRelu":
        shape = value.shape[-1:] if g.chance(0.5) else ()
        g.add(op, [value, g.constant(g.array(shape, "float32"))], like)
    elif op in ("ThresholdedRelu", "Shrink"):
        if value.is_exact:
            attrs = {"alpha": 0.5} if op == "ThresholdedRelu" else {"lambd": 0.5, "bias": 0.25}
            g.add(op, [value], value, **attrs)
    elif op != "Mish" or g.opset >= 18:
        g.add(op, [value], like)


def _more_norms(g: Graph) -> None:
    value = g.pick(lambda v: v.rank >= 1 and v.dtype == "float32")
    if not value:
        return
    like, op = replace(value, is_exact=False), g.choose(("LpNormalization", "LRN", "Hardmax"))
    if op == "LpNormalization":
        moved = g.add("Abs", [value], value)
        one = g.constant(np.ones((), "float32"))
        moved = g.add("Add", [moved, one], value)
        g.add(op, [moved], like, axis=g.axis(value), p=g.integer(1, 2))
    elif op == "LRN" and value.rank == 4:
        g.add(op, [value], like, size=g.choose((1, 3, 5)), alpha=0.25, beta=0.5, bias=2.0)
    elif op == "Hardmax" and value.is_exact:
        g.add(op, [value], value, axis=g.axis(value))


def _einsum(g: Graph) -> None:
    value = g.pick(lambda v: v.rank in (2, 3) and v.dtype == "float32")
    if not value:
        return
    size = g.integer(1, 5)
    equations = {
        2: (("ij,jk->ik", (value.shape[1], size), (value.shape[0], size)),
            ("ij,kj->ki", (size, value.shape[-1]), (size, value.shape[0])),
            ("ij,i->j", (value.shape[0],), (value.shape[1],))),
        3: (("bij,bjk->bik", (value.shape[0], value.shape[-1], size),
             (*value.shape[:-1], size)),
            ("bij,j->ib", (value.shape[-1],), (value.shape[1], value.shape[0]))),
    }  # fmt: skip
    equation, shape, result = g.choose(equations[value.rank])
    other = g.constant(g.array(shape, "float32") / 4)
    like = replace(value, shape=result, is_exact=False)
    g.add("Einsum", [value, other], like, equation=equation)


def _reverse_sequence(g: Graph) -> None:
    value = g.pick(lambda v: v.rank >= 2)
    if value:
        time = g.integer(0, 1)
        lengths = g.rng.integers(1, value.shape[time] + 1, value.shape[1 - time])
        given = [value, g.constant(lengths.astype("int64"))]
        g.add("ReverseSequence", given, value, time_axis=time, batch_axis=1 - time)


def _borders(g: Graph) -> None:
    value = g.pick(lambda v: v.rank in (2, 3, 4) and v.dtype == "float32")
    if value:
        mode = g.choose(("reflect", "edge"))
        most = [n - 1 if mode == "reflect" else 2 for n in value.shape]
        pads = [g.integer(0, min(m, 2)) for m in most * 2]
        rank = value.rank
        shape = tuple(n + pads[a] + pads[a + rank] for a, n in enumerate(value.shape))
        if prod(shape) <= LARGEST:
            g.add("Pad", [value, g.integers(*pads)], replace(value, shape=shape), mode=mode)


def _resampled(g: Graph) -> None:
    value = g.pick(lambda v: v.rank == 4 and v.dtype == "float32")
    if not value:
        return
    n, c, h, w = value.shape
    if g.opset < 20 and g.chance(0.5):
        grid = g.constant(g.array((n, g.integer(1, 5), g.integer(1, 5), 2), "float32") / 3)
        like = replace(value, shape=(n, c, *grid.shape[1:3]), is_exact=False)
        if g.opset >= 16:
            modes = {"mode": g.choose(("bilinear", "bicubic")),
                     "padding_mode": g.choose(("zeros", "border", "reflection"))}  # fmt: skip
            g.add("GridSample", [value, grid], like, align_corners=g.integer(0, 1), **modes)
        return
    shape = (n, c, g.integer(1, 2 * h), g.integer(1, 2 * w))
    like = replace(value, shape=shape, is_exact=False)
    given = [value, "", "", g.integers(*shape)]
    place = g.choose(("half_pixel", "asymmetric", "align_corners"))
    if g.chance(0.5):
        weight = {"cubic_coeff_a": g.choose((-0.5, -0.75)), "exclude_outside": g.integer(0, 1)}
        g.add("Resize", given, like, mode="cubic", coordinate_transformation_mode=place, **weight)
    elif place == "asymmetric":
        g.add("Resize", given, replace(like, is_exact=value.is_exact), mode="nearest",
              coordinate_transformation_mode=place, nearest_mode="floor")  # fmt: skip


def _tests_of_numbers(g: Graph) -> None:
    value = g.pick(lambda v: v.dtype in ("float32", "float64"))
    if value:
        g.add(g.choose(("IsNaN", "IsInf")), [value], replace(value, dtype="bool", is_exact=True))


def _branch(g: Graph) -> None:
    """An `If` whose condition the run knows, or which is constant."""
    value = g.pick(lambda v: v.dtype == "float32")
    if not value:
        return
    if g.chance(0.5):
        condition = g.constant(np.array(g.chance(0.5)))
    else:
        condition = g.input((), "bool")
    info = helper.make_tensor_value_info("r", TensorProto.FLOAT, list(value.shape))
    branches = [
        helper.make_graph([helper.make_node(op, [value.name], ["r"])], op, [], [info])
        for op in ("Neg", "Abs")
    ]
    g.add("If", [condition], value, then_branch=branches[0], else_branch=branches[1])


MORE_DRAWS: tuple[Callable[[Graph], None], ...] = (
    _conv_transpose, _recurrent, _topk, _gather_nd, _scatter_nd, _one_hot, _quantise,
    _matmul_integer, _bits, _mod, _variadic, _parametric, _more_norms, _einsum,
    _reverse_sequence, _borders, _resampled, _tests_of_numbers, _branch,
)  # fmt: skip
