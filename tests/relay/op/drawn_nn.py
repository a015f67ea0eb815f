"""Drawn calls of the neural-network operators, with PyTorch as the reference."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch.nn import functional

from tvm import relay
from tvm.topi import testing as ref

from .drawing import Array, Draw, Drawn


def _torch(array: Array) -> torch.Tensor:
    return torch.from_numpy(np.ascontiguousarray(array))


def _last(array: Array) -> Array:
    """Channels last."""
    return np.ascontiguousarray(np.moveaxis(array, 1, -1))


def _layout(rank: int, is_last: bool, kernel: str = "") -> str:
    spatial = "DHW"[3 - rank :]
    if not kernel:
        return f"N{spatial}C" if is_last else f"NC{spatial}"
    return f"{spatial}{kernel[::-1]}" if is_last else kernel + spatial


def convolutions(d: Draw) -> Drawn:
    rank, is_last = d.number(1, 3), d.flag()
    is_depthwise = d.flag() and rank == 2
    groups = d.pick(1, 1, 2, 3)
    inner, outer = d.number(1, 5), d.number(1, 5)
    if is_depthwise:
        groups, inner, outer = d.number(2, 18), 1, d.number(1, 2)
    kernel, strides, dilation = d.numbers(rank, 1, 3), d.numbers(rank, 1, 3), d.numbers(rank, 1, 2)
    before, after = d.numbers(rank, 0, 2), d.numbers(rank, 0, 2)
    spatial = [(k - 1) * s + d.number(1, 6) for k, s in zip(kernel, dilation, strict=True)]
    data = d.array((d.number(1, 2), groups * inner, *spatial))
    weight = d.array((groups * outer, inner, *kernel))
    widths = [w for pair in zip(before[::-1], after[::-1], strict=True) for w in pair]
    expected = getattr(functional, f"conv{rank}d")(
        functional.pad(_torch(data).double(), widths), _torch(weight).double(), None, strides, 0, dilation, groups,
    ).float().numpy()  # fmt: skip
    own = "HWOI" if is_depthwise and inner == 1 and is_last else _layout(rank, is_last, "OI")
    if is_last:
        data, expected = _last(data), _last(expected)
        weight = np.ascontiguousarray(np.moveaxis(weight, (0, 1), (-1, -2)))
        if own == "HWOI":
            weight = weight.reshape(*kernel, outer, groups).transpose(0, 1, 3, 2).copy()
            weight = np.ascontiguousarray(
                weight.transpose(0, 1, 3, 2).reshape(*kernel, groups, outer)
            )
    more = {"channels": groups * outer, "kernel_size": kernel} if d.flag() else {}
    return (
        lambda a, w: getattr(relay.nn, f"conv{rank}d")(
            a, w, strides, (*before, *after), dilation, groups,
            data_layout=_layout(rank, is_last), kernel_layout=own, **more,
        ),
        [data, weight], expected,
    )  # fmt: skip


def convolutions_of_integers(d: Draw) -> Drawn:
    rank, dtype = d.number(1, 3), d.pick("int8", "uint8", "int16")
    groups = d.pick(1, 2)
    data = d.array((1, groups * d.number(1, 8), *d.numbers(rank, 3, 6)), dtype)
    weight = d.array((groups * d.number(1, 17), data.shape[1] // groups, *d.numbers(rank, 1, 3)), d.pick("int8", dtype))  # fmt: skip
    expected = getattr(functional, f"conv{rank}d")(_torch(data).double(), _torch(weight).double(), groups=groups)  # fmt: skip
    return (
        lambda a, w: getattr(relay.nn, f"conv{rank}d")(a, w, groups=groups, out_dtype="int32"),
        [data, weight], expected.numpy().astype("int32"),
    )  # fmt: skip


def transposed_convolutions(d: Draw) -> Drawn:
    rank, groups = d.number(1, 3), d.pick(1, 1, 2)
    is_last = d.flag() and rank < 3
    kernel, strides = d.numbers(rank, 1, 4), d.numbers(rank, 1, 3)
    padding = tuple([d.number(0, k - 1) for k in kernel])
    dilation = d.numbers(rank, 1, 2)
    more = tuple([d.number(0, max(s, t) - 1) for s, t in zip(strides, dilation, strict=True)])
    data = d.array((d.number(1, 2), groups * d.number(1, 4), *d.numbers(rank, 1, 5)))
    weight = d.array((data.shape[1], d.number(1, 4), *kernel))
    extents = [
        (n - 1) * s - 2 * p + (k - 1) * t + 1 + m
        for n, s, p, k, t, m in zip(data.shape[2:], strides, padding, kernel, dilation, more, strict=True)
    ]  # fmt: skip
    if min(extents) < 1:
        padding = (0,) * rank
    expected = getattr(functional, f"conv_transpose{rank}d")(
        _torch(data).double(), _torch(weight).double(), None, strides, padding, more, groups, dilation
    ).float().numpy()  # fmt: skip
    if is_last:
        data, expected = _last(data), _last(expected)
    return (
        lambda a, w: getattr(relay.nn, f"conv{rank}d_transpose")(
            a, w, strides, padding, dilation, groups, output_padding=more,
            data_layout=_layout(rank, is_last),
        ),
        [data, weight], expected,
    )  # fmt: skip


def kernel_gradients(d: Draw) -> Drawn:
    groups = d.pick(1, 2)
    kernel, strides, dilation = d.numbers(2, 1, 3), d.numbers(2, 1, 2), d.numbers(2, 1, 2)
    padding = d.numbers(2, 0, 1)
    spatial = [(k - 1) * s + d.number(1, 5) for k, s in zip(kernel, dilation, strict=True)]
    data = d.array((d.number(1, 2), groups * d.number(1, 3), *spatial))
    weight = torch.zeros((groups * d.number(1, 3), data.shape[1] // groups, *kernel)).double()
    weight.requires_grad_()
    out = functional.conv2d(_torch(data).double(), weight, None, strides, padding, dilation, groups)
    grad = d.array(out.shape)
    out.backward(_torch(grad).double())
    return (
        lambda g, a: relay.nn.conv2d_backward_weight(
            g, a, strides, padding, dilation, groups, weight.shape[0], kernel
        ),
        [grad, data], weight.grad.float().numpy(),
    )  # fmt: skip


def products(d: Draw) -> Drawn:
    kind = d.pick("dense", "matmul", "batch_matmul")
    rows, units, depth = d.number(0, 20), d.number(0, 20), d.number(0, 20)
    dtype = d.pick("float32", "float64", "int8", "uint8", "int32")
    out = "int32" if dtype in ("int8", "uint8") else ""
    wide = out or dtype
    if kind == "dense":
        lead = d.shape(0, 2)
        a, b = d.array((*lead, rows, depth), dtype), d.array((units, depth), dtype)
        named = d.pick(None, units)
        expected = a.astype(wide) @ b.astype(wide).T
        return lambda x, w: relay.nn.dense(x, w, named, out), [a, b], expected
    first, second = d.flag(), d.flag()
    batches = [()] * 2
    if kind == "batch_matmul":
        n = d.number(0, 3)
        batches = d.pick([(n,), (n,)], [(1,), (n,)], [(n,), (1,)])
    a = d.array((*batches[0], *((depth, rows) if first else (rows, depth))), dtype)
    b = d.array((*batches[1], *((units, depth) if second else (depth, units))), dtype)
    left = (a.swapaxes(-1, -2) if first else a).astype(wide)
    right = (b.swapaxes(-1, -2) if second else b).astype(wide)
    op = getattr(relay.nn, kind)
    return (
        lambda x, y: op(x, y, out_dtype=out, transpose_a=first, transpose_b=second), [a, b],
        left @ right,
    )  # fmt: skip


def _windows(d: Draw, rank: int) -> tuple[Any, ...]:
    size, strides, dilation = d.numbers(rank, 1, 3), d.numbers(rank, 1, 3), d.numbers(rank, 1, 2)
    before = tuple([d.number(0, k - 1) for k in size])
    after = tuple([d.number(0, k - 1) for k in size])
    spatial = [(k - 1) * s + d.number(1, 5) for k, s in zip(size, dilation, strict=True)]
    return size, strides, dilation, before, after, spatial


def pools(d: Draw) -> Drawn:
    rank, kind, is_last = d.number(1, 3), d.pick("max", "avg"), d.flag()
    size, strides, dilation, before, after, spatial = _windows(d, rank)
    data = d.array((d.number(1, 2), d.number(1, 17), *spatial))
    ceil, include = d.flag(), d.flag()
    expected = ref.poolnd_python(
        data, list(size), list(strides), list(dilation), list(before), list(after), kind, include,
        ceil, layout=_layout(rank, False),
    )  # fmt: skip
    expected = np.maximum(expected, np.finfo("float32").min)  # of windows behind the data
    if is_last:
        data, expected = _last(data), _last(expected)
    more = {"count_include_pad": include} if kind == "avg" else {}
    return (
        lambda a: getattr(relay.nn, f"{kind}_pool{rank}d")(
            a, size, strides, dilation, (*before, *after), _layout(rank, is_last), "", ceil, **more
        ),
        [data], expected.astype("float32"),
    )  # fmt: skip


def pool_gradients(d: Draw) -> Drawn:
    kind = d.pick("max", "avg")
    size, strides = d.numbers(2, 1, 3), d.numbers(2, 1, 3)
    padding = tuple([d.number(0, k // 2) for k in size])
    data = d.array((d.number(1, 2), d.number(1, 3), *[k + d.number(0, 4) for k in size]))
    # torch leaves out windows that begin behind the data
    ceil, include, is_last = d.flag() and max(padding) == 0, d.flag(), d.flag()
    strides = tuple([min(s, k) for s, k in zip(strides, size, strict=True)])
    x = _torch(data).requires_grad_()
    own = {"count_include_pad": include} if kind == "avg" else {}
    out = getattr(functional, f"{kind}_pool2d")(x, size, strides, padding, ceil_mode=ceil, **own)
    grad = d.array(out.shape)
    out.backward(_torch(grad))
    expected = x.grad.numpy()
    if is_last:
        grad, data, expected = [_last(each) for each in (grad, data, expected)]
    return (
        lambda g, a: getattr(relay.nn, f"{kind}_pool2d_grad")(
            g, a, size, strides, padding, "NHWC" if is_last else "NCHW", "", ceil, **own
        ),
        [grad, data], expected,
    )  # fmt: skip


def whole_pools(d: Draw) -> Drawn:
    rank, kind, is_last = d.number(1, 3), d.pick("max", "avg"), d.flag()
    is_global = d.flag()
    data = d.array((d.number(1, 2), d.number(1, 17), *d.numbers(rank, 1, 7)))
    size = (1,) * rank if is_global else d.numbers(rank, 1, 5)
    expected = getattr(functional, f"adaptive_{kind}_pool{rank}d")(_torch(data), size).numpy()
    if is_last:
        data, expected = _last(data), _last(expected)
    op = getattr(relay.nn, f"{'global' if is_global else 'adaptive'}_{kind}_pool{rank}d")
    own = () if is_global else (size,)
    return lambda a: op(a, *own, layout=_layout(rank, is_last)), [data], expected


def norms(d: Draw) -> Drawn:
    shape = d.shape(2, 4, 1)
    rank = len(shape)
    kind = d.pick("layer", "batch", "instance", "group")
    axis = d.axis(rank)
    if kind == "instance" and axis in (0, -rank):
        axis = 1
    if kind == "group":
        groups = d.number(1, 3)
        axis = d.number(1, rank - 1)
        shape = (*shape[:axis], groups * d.number(1, 3), *shape[axis + 1 :])
    at = axis % rank
    data = d.array(shape)
    gamma, beta = d.array((shape[at],)), d.array((shape[at],))
    center, scale, epsilon = d.flag(), d.flag(), d.pick(1e-5, 1e-2)
    along = tuple([-1 if a == at else 1 for a in range(rank)])
    statistics: list[Array] = []
    wide = data.astype("float64")
    if kind == "batch":
        statistics = [d.array((shape[at],)), d.array((shape[at],), low=0.5)]
        mean, var = [s.astype("float64").reshape(along) for s in statistics]
    elif kind == "group":
        wide = wide.reshape(*shape[:at], groups, -1, *shape[at + 1 :])
        over = tuple(range(2, rank + 1)) if at == 1 else tuple([a for a in range(1, rank + 1) if a != at])  # fmt: skip
        mean, var = wide.mean(over, keepdims=True), wide.var(over, keepdims=True)
    else:
        over = (at,) if kind == "layer" else tuple([a for a in range(1, rank) if a != at])
        mean, var = wide.mean(over, keepdims=True), wide.var(over, keepdims=True)
    expected = ((wide - mean) / np.sqrt(var + epsilon)).reshape(shape)
    expected = expected * (gamma.reshape(along) if scale else 1) + (beta.reshape(along) if center else 0)  # fmt: skip
    own = (groups,) if kind == "group" else ()

    def build(*args: Any) -> Any:
        out = getattr(relay.nn, f"{kind}_norm")(*args, *own, axis=axis, epsilon=epsilon, center=center, scale=scale)  # fmt: skip
        return out[0] if kind == "batch" else out

    return build, [data, gamma, beta, *statistics], expected.astype("float32")


def rows(d: Draw) -> Drawn:
    shape = d.shape(1, 4, 1)
    axis = d.axis(len(shape))
    data = d.array(shape, d.pick("float32", "float64"))
    kind = d.pick("softmax", "log_softmax", "fast_softmax", "l2_normalize", "prelu", "leaky_relu", "bias_add", "lrn", "dilate", "relu")  # fmt: skip
    along = [-1 if a == axis % len(shape) else 1 for a in range(len(shape))]
    if kind.endswith("softmax"):
        weights = np.exp(data - data.max(axis, keepdims=True))
        expected = weights / weights.sum(axis, keepdims=True)
        if kind == "log_softmax":
            expected = np.log(expected)
        return lambda a: getattr(relay.nn, kind)(a, axis), [data], expected
    if kind == "l2_normalize":
        axes, eps = d.axes(len(shape)), d.pick(1e-6, 1.0)
        total = np.maximum((data * data).sum(axes, keepdims=True), eps)
        return lambda a: relay.nn.l2_normalize(a, eps, list(axes)), [data], data / np.sqrt(total)
    if kind in ("prelu", "bias_add"):
        row = d.array((shape[axis],), data.dtype)
        wide = row.reshape(along)
        expected = data + wide if kind == "bias_add" else np.where(data > 0, data, data * wide)
        return lambda a, r: getattr(relay.nn, kind)(a, r, axis), [data, row], expected
    if kind in ("leaky_relu", "relu"):
        alpha = d.pick(0.1, 0.3) if kind == "leaky_relu" else 0
        own = () if kind == "relu" else (alpha,)
        return lambda a: getattr(relay.nn, kind)(a, *own), [data], np.where(data > 0, data, data * np.array(alpha, data.dtype))  # fmt: skip
    if kind == "dilate":
        strides, value = d.numbers(len(shape), 1, 3), d.pick(0, 2)
        expected = np.full([(n - 1) * s + 1 for n, s in zip(shape, strides, strict=True)], value, data.dtype)  # fmt: skip
        expected[tuple([slice(None, None, s) for s in strides])] = data
        return lambda a: relay.nn.dilate(a, strides, value), [data], expected
    size, at = d.pick(1, 3, 5), d.number(0, 3)
    image = d.array([d.number(1, 6) for _ in range(4)])
    bias, alpha, beta = d.pick(1, 2.5), d.pick(0.1, 0.5), d.pick(0.5, 0.75)
    square = np.pad((image * image).astype("float64"), [(size // 2,) * 2 if a == at else (0, 0) for a in range(4)])  # fmt: skip
    total = sum(np.take(square, range(k, k + image.shape[at]), at) for k in range(size))
    expected = image / (bias + alpha * total / size) ** beta
    return (
        lambda a: relay.nn.lrn(a, size, at, bias, alpha, beta),
        [image],
        expected.astype("float32"),
    )


def losses(d: Draw) -> Drawn:
    count, classes = d.number(1, 5), d.number(1, 5)
    kind = d.pick("nll", "cross", "logits")
    if kind != "nll":
        scores, targets = d.array((count, classes), low=0.1, high=1), d.array((count, classes))
        logs = np.log(scores) if kind == "cross" else scores
        name = "cross_entropy" if kind == "cross" else "cross_entropy_with_logits"
        return getattr(relay.nn, name), [scores, targets], np.asarray(-(logs * targets).sum() / count, "float32")  # fmt: skip
    rest = d.shape(0, 2, 1)
    scores, at = d.array((count, classes, *rest)), d.array((count, *rest), d.pick("int32", "int64"), 0, classes)  # fmt: skip
    weights = d.array((classes,), low=0.5)
    reduction, ignored = d.pick("mean", "sum", "none"), d.pick(-100, 0)
    if (at == ignored).all():
        ignored = -100
    expected = functional.nll_loss(_torch(scores), _torch(at).long(), _torch(weights), ignore_index=ignored, reduction=reduction)  # fmt: skip
    return lambda p, t, w: relay.nn.nll_loss(p, t, w, reduction, ignored), [scores, at, weights], expected.numpy()  # fmt: skip


def growths(d: Draw) -> Drawn:
    rank, is_last = d.number(2, 3), d.flag()
    data = d.array((1, d.number(1, 4), *d.numbers(rank, 1, 4)))
    scales, corners = d.numbers(rank, 1, 3), d.flag()
    method = d.pick("nearest_neighbor", "linear")
    size = [n * s for n, s in zip(data.shape[2:], scales, strict=True)]
    mode = "nearest" if method[0] == "n" else ("bilinear", "trilinear")[rank - 2]
    expected = functional.interpolate(_torch(data), size, mode=mode, align_corners=corners if mode != "nearest" else None).numpy()  # fmt: skip
    if rank == 2 and mode != "nearest" and not corners:
        expected = ref.resize2d_python(data, scales, "NCHW", "bilinear", "asymmetric")
    if is_last:
        data, expected = _last(data), _last(expected)
    layout = _layout(rank, is_last)
    name = method if mode == "nearest" else mode
    if rank == 2:
        return lambda a: relay.nn.upsampling(a, *scales, layout, name, corners), [data], expected
    transform = "asymmetric" if mode == "nearest" else "align_corners" if corners else "half_pixel"
    return (
        lambda a: relay.nn.upsampling3d(a, *scales, layout, name, transform), [data], expected
    )  # fmt: skip


def moved_windows(d: Draw) -> Drawn:
    kind = d.pick("correlation", "deformable", "fifo")
    if kind == "fifo":
        shape, axis = d.shape(1, 4, 1), 0
        axis = d.axis(len(shape))
        extents = list(shape)
        extents[axis] += d.number(0, 3)
        data, buffer = d.array(shape), d.array(extents)
        both = np.concatenate([buffer, data], axis)
        expected = np.take(both, range(shape[axis], both.shape[axis]), axis)
        return lambda a, b: relay.nn.fifo_buffer(a, b, axis), [data, buffer], expected
    if kind == "correlation":
        shape = (d.number(1, 2), d.number(1, 3), *d.numbers(2, 5, 8))
        size, reach, padding = d.pick(1, 3), d.number(1, 2), d.number(2, 3)
        first, second = d.numbers(2, 1, 2)
        product = d.flag()
        arrays = [d.array(shape), d.array(shape)]
        expected = ref.correlation_nchw_python(*arrays, size, reach, first, second, padding, product)  # fmt: skip
        return (
            lambda a, b: relay.nn.correlation(a, b, size, reach, first, second, padding, product, "NCHW"),
            arrays, expected.astype("float32"),
        )  # fmt: skip
    kernel, strides, dilation, padding = d.numbers(2, 1, 3), d.numbers(2, 1, 2), d.numbers(2, 1, 2), d.numbers(2, 0, 1)  # fmt: skip
    moves, groups = d.pick(1, 2), d.pick(1, 2)
    spatial = [(k - 1) * s + d.number(1, 4) for k, s in zip(kernel, dilation, strict=True)]
    data = d.array((1, 2 * d.number(1, 2), *spatial))
    out = [(n + 2 * p - (k - 1) * t - 1) // s + 1 for n, p, k, t, s in zip(spatial, padding, kernel, dilation, strides, strict=True)]  # fmt: skip
    offset = d.array((1, 2 * moves * kernel[0] * kernel[1], *out), low=-2, high=2)
    weight = d.array((groups * d.number(1, 2), data.shape[1] // groups, *kernel))
    expected = ref.deformable_conv2d_nchw_python(data, offset, weight, strides, padding, dilation, moves, groups)  # fmt: skip
    return (
        lambda a, o, w: relay.nn.deformable_conv2d(a, o, w, strides, padding, dilation, moves, groups),
        [data, offset, weight], expected.astype("float32"),
    )  # fmt: skip


def few_bits(d: Draw) -> Drawn:
    bits, weight_bits, unipolar = d.number(1, 3), d.number(1, 2), d.flag()
    pack = d.pick("uint8", "uint16", "uint32")
    width = int(pack[4:])
    kind = d.pick("conv2d", "dense")
    depth = width * d.number(1, 2)

    def meant(weight: Array) -> Array:
        # unipolar: every bit counts +1 or -1
        parts = [((weight >> k) & 1) for k in range(weight_bits)]
        return sum((2 * p - 1 if unipolar else p) << k for k, p in enumerate(parts))

    out = d.pick("int32", "int16")
    if kind == "dense":
        data, weight = d.array((d.number(1, 3), depth), "uint8", 0, 1 << bits), d.array((d.number(1, 5), depth), "uint8", 0, 1 << weight_bits)  # fmt: skip
        expected = data.astype("int64") @ meant(weight.astype("int64")).T
        return (
            lambda a, w: relay.nn.bitserial_dense(a, w, None, bits, weight_bits, pack, out, unipolar),
            [data, weight], expected.astype(out),
        )  # fmt: skip
    is_last = d.flag()
    kernel, strides, padding = d.numbers(2, 1, 3), d.numbers(2, 1, 2), d.numbers(2, 0, 1)
    data = d.array((1, depth, *d.numbers(2, 3, 5)), "uint8", 0, 1 << bits)
    weight = d.array((d.number(1, 4), depth, *kernel), "uint8", 0, 1 << weight_bits)
    expected = functional.conv2d(_torch(data).double(), _torch(meant(weight.astype("int64"))).double(), None, strides, padding).numpy()  # fmt: skip
    if is_last:
        data, expected = _last(data), _last(expected)
        weight = np.ascontiguousarray(np.moveaxis(weight, (0, 1), (-1, -2)))
    return (
        lambda a, w: relay.nn.bitserial_conv2d(
            a, w, strides, padding, None, kernel, bits, weight_bits, "NHWC" if is_last else "NCHW",
            "HWIO" if is_last else "OIHW", pack, out, unipolar,
        ),
        [data, weight], expected.astype(out),
    )  # fmt: skip


NN = (
    convolutions, convolutions_of_integers, transposed_convolutions, kernel_gradients, products,
    pools, pool_gradients, whole_pools, norms, rows, losses, growths, moved_windows, few_bits,
)  # fmt: skip
