"""Computations that schedulers are tried on, as te tensors and as functions of blocks.

    A, B, C = te_workload.matmul(128, 128, 128)
    func = te_workload.create_te_workload("C2D", 0)

Each function returns its tensors in the order of parameters. The module is also found as
``tvm.meta_schedule.testing.te_workload``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tvm import te, tir, topi
from tvm.tir import PrimFunc

Tensors = tuple[te.Tensor, ...]


def matmul(
    n: int, m: int, k: int, in_dtype: str = "float32", out_dtype: str = "float32"
) -> Tensors:
    """The product of two matrices."""
    a = te.placeholder((n, k), in_dtype, "A")
    b = te.placeholder((k, m), in_dtype, "B")
    r = te.reduce_axis((0, k), "k")
    terms = _terms(out_dtype)
    return a, b, te.compute((n, m), lambda i, j: te.sum(terms(a[i, r], b[r, j]), r), "C")


def matmul_relu(
    n: int, m: int, k: int, in_dtype: str = "float32", out_dtype: str = "float32"
) -> Tensors:
    """A product of matrices, with what is negative made zero."""
    a, b, c = matmul(n, m, k, in_dtype, out_dtype)
    return a, b, topi.nn.relu(c)


def batch_matmul_nkkm(
    B: int, N: int, M: int, K: int, in_dtype: str = "float32", out_dtype: str = "float32"
) -> Tensors:
    """Products of matrices, one a batch."""
    x = te.placeholder((B, N, K), in_dtype, "X")
    y = te.placeholder((B, K, M), in_dtype, "Y")
    k = te.reduce_axis((0, K), "k")
    terms = _terms(out_dtype)
    product = te.compute((B, N, M), lambda b, i, j: te.sum(terms(x[b, i, k], y[b, k, j]), k), "Z")
    return x, y, product


def transpose_batch_matmul(
    batch: int, seq_len: int, n_head: int, n_dim: int,
    in_dtype: str = "float32", out_dtype: str = "float32",
) -> Tensors:  # fmt: skip
    """The scores of attention: products of queries and values, head by head."""
    query = te.placeholder((batch, seq_len, n_head, n_dim), in_dtype, "query")
    value = te.placeholder((batch, seq_len, n_head, n_dim), in_dtype, "value")
    query_t = te.compute(
        (batch, n_head, seq_len, n_dim), lambda b, h, i, d: query[b, i, h, d], "query_T"
    )
    value_t = te.compute(
        (batch, n_head, n_dim, seq_len), lambda b, h, d, i: value[b, i, h, d], "value_T"
    )
    k = te.reduce_axis((0, n_dim), "k")
    terms = _terms(out_dtype)
    product = te.compute(
        (batch, n_head, seq_len, seq_len),
        lambda b, h, i, j: te.sum(terms(query_t[b, h, i, k], value_t[b, h, k, j]), k),
        "C",
    )
    return query, value, product


def conv1d_nlc(
    N: int, L: int, CI: int, CO: int, kernel_size: int, stride: int = 1, padding: int = 0,
    dilation: int = 1, groups: int = 1, in_dtype: str = "float32", out_dtype: str = "float32",
) -> Tensors:  # fmt: skip
    """A convolution along one axis, channels last."""
    return _conv_channels_last(
        "conv1d_nlc", (N, L, CI), CO, kernel_size, stride, padding, dilation, groups,
        in_dtype, out_dtype,
    )  # fmt: skip


def conv2d_nhwc(
    N: int, H: int, W: int, CI: int, CO: int, kernel_size: int, stride: int = 1, padding: int = 0,
    dilation: int = 1, groups: int = 1, in_dtype: str = "float32", out_dtype: str = "float32",
) -> Tensors:  # fmt: skip
    """A convolution of images, channels last."""
    return _conv_channels_last(
        "conv2d_nhwc", (N, H, W, CI), CO, kernel_size, stride, padding, dilation, groups,
        in_dtype, out_dtype,
    )  # fmt: skip


def conv3d_ndhwc(
    N: int, D: int, H: int, W: int, CI: int, CO: int, kernel_size: int, stride: int = 1,
    padding: int = 0, dilation: int = 1, groups: int = 1,
    in_dtype: str = "float32", out_dtype: str = "float32",
) -> Tensors:  # fmt: skip
    """A convolution of volumes, channels last."""
    return _conv_channels_last(
        "conv3d_ndhwc", (N, D, H, W, CI), CO, kernel_size, stride, padding, dilation, groups,
        in_dtype, out_dtype,
    )  # fmt: skip


def _conv_channels_last(
    name: str, shape: tuple[int, ...], channels: int, kernel: int, stride: int, padding: int,
    dilation: int, groups: int, in_dtype: str, out_dtype: str,
) -> Tensors:  # fmt: skip
    batch, *extents, depth = shape
    ndim, share, out_share = len(extents), depth // groups, channels // groups
    inputs = te.placeholder(shape, in_dtype, "inputs")
    weight = te.placeholder((*[kernel] * ndim, share, channels), in_dtype, "weight")
    pad = (0, *[padding] * ndim, 0)
    padded = topi.nn.pad(inputs, pad, pad, name="PadInput")
    axes = ("rl",) if ndim == 1 else ("rd", "rh", "rw")[-ndim:]
    window = [te.reduce_axis((0, kernel), axis) for axis in axes]
    rc = te.reduce_axis((0, share), "rc")
    terms = _terms(out_dtype)

    def element(n: tir.PrimExpr, *rest: tir.PrimExpr) -> Any:
        *place, co = rest
        at = [p * stride + r * dilation for p, r in zip(place, window, strict=True)]
        channel = rc if groups == 1 else co // out_share * share + rc
        value, factor = padded(n, *at, channel), weight(*window, rc, co)
        return te.sum(terms(value, factor), [*window, rc])

    out = [(extent + 2 * padding - dilation * (kernel - 1) - 1) // stride + 1 for extent in extents]
    names = [*(("l",) if ndim == 1 else ("d", "h", "w")[-ndim:]), "co"]
    result = te.compute((batch, *out, channels), element, name, varargs_names=names)
    return inputs, weight, result


def _terms(out_dtype: str) -> Callable[[Any, Any], Any]:
    """Products that are summed in the data type of the result."""
    return lambda a, b: a.astype(out_dtype) * b.astype(out_dtype)


def depthwise_conv2d_nhwc(
    N: int, H: int, W: int, C: int, kernel_size: int, stride: int = 1, padding: int = 0,
    dilation: int = 1, factor: int = 1, in_dtype: str = "float32", out_dtype: str = "float32",
) -> Tensors:  # fmt: skip
    """A convolution of each channel on its own."""
    inputs = te.placeholder((N, H, W, C), in_dtype, "placeholder")
    weight = te.placeholder((factor, kernel_size, kernel_size, C), in_dtype, "placeholder")
    pad = (0, padding, padding, 0)
    padded = topi.nn.pad(inputs, pad, pad, name="PadInput")
    rh, rw = _window(kernel_size)
    terms = _terms(out_dtype)

    def element(n: Any, h: Any, w: Any, c: Any) -> Any:
        value = padded[n, h * stride + rh * dilation, w * stride + rw * dilation, c // factor]
        return te.sum(terms(value, weight[c % factor, rh, rw, c // factor]), [rh, rw])

    height, width = [
        (extent + 2 * padding - dilation * (kernel_size - 1) - 1) // stride + 1 for extent in (H, W)
    ]
    return (
        inputs, weight, te.compute((N, height, width, C * factor), element, "depth_conv2d_nhwc"),
    )  # fmt: skip


def _window(kernel: int) -> list[tir.IterVar]:
    return [te.reduce_axis((0, kernel), name) for name in ("rh", "rw")]


def conv2d_transpose_nhwc(
    N: int, H: int, W: int, CI: int, CO: int, kernel_size: int, stride: int = 1, padding: int = 0,
    in_dtype: str = "float32", out_dtype: str = "float32",
) -> Tensors:  # fmt: skip
    """A transposed convolution: of the inputs, zeros between them, with the mirrored weights."""
    inputs = te.placeholder((N, H, W, CI), in_dtype, "inputs")
    weight = te.placeholder((kernel_size, kernel_size, CI, CO), in_dtype, "weight")
    border = kernel_size - 1 - padding
    before = (border + stride - 1) // stride  # inputs of zeros in front
    pad = (0, before, before, 0)
    padded = topi.nn.pad(inputs, pad, pad, name="PadInput")
    offset = (stride - border % stride) % stride
    rh, rw = _window(kernel_size)
    rc = te.reduce_axis((0, CI), "rc")
    terms = _terms(out_dtype)

    def element(n: Any, h: Any, w: Any, co: Any) -> Any:
        at = [h + rh + offset, w + rw + offset]
        is_input = te.all(*[place % stride == 0 for place in at])
        value = tir.if_then_else(
            is_input, padded[n, at[0] // stride, at[1] // stride, rc], tir.const(0, in_dtype)
        )
        last = kernel_size - 1
        return te.sum(terms(value, weight[last - rh, last - rw, rc, co]), [rh, rw, rc])

    height, width = [(extent - 1) * stride - 2 * padding + kernel_size for extent in (H, W)]
    return inputs, weight, te.compute((N, height, width, CO), element, "conv2d_transpose_nhwc")


def conv2d_capsule_nhwijc(
    N: int, H: int, W: int, CI: int, CO: int, kernel_size: int, stride: int = 1, padding: int = 0,
    capsule_size: int = 4, in_dtype: str = "float32", out_dtype: str = "float32",
) -> Tensors:  # fmt: skip
    """A convolution whose elements are small matrices."""
    inputs = te.placeholder((N, H, W, capsule_size, capsule_size, CI), in_dtype, "inputs")
    weight = te.placeholder(
        (kernel_size, kernel_size, capsule_size, capsule_size, CI, CO), in_dtype, "weight"
    )
    pad = (0, padding, padding, 0, 0, 0)
    padded = topi.nn.pad(inputs, pad, pad, name="PadInput")
    rh, rw = _window(kernel_size)
    cap_k = te.reduce_axis((0, capsule_size), "cap_k")
    rc = te.reduce_axis((0, CI), "rc")
    terms = _terms(out_dtype)

    def element(n: Any, h: Any, w: Any, cap_i: Any, cap_j: Any, co: Any) -> Any:
        value = padded[n, h * stride + rh, w * stride + rw, cap_i, cap_k, rc]
        return te.sum(terms(value, weight[rh, rw, cap_k, cap_j, rc, co]), [rh, rw, cap_k, rc])

    height, width = [(extent + 2 * padding - kernel_size) // stride + 1 for extent in (H, W)]
    shape = (N, height, width, capsule_size, capsule_size, CO)
    return inputs, weight, te.compute(shape, element, "conv2d_capsule_nhwijc")


def conv2d_nhwc_without_layout_rewrite(
    Input: te.Tensor, Filter: te.Tensor, stride: Any, padding: Any, dilation: Any,
    out_dtype: str = "float32",
) -> te.Tensor:  # fmt: skip
    """A convolution of given tensors, channels last, named ``Conv2dOutput``."""
    batch, height, width, depth = Input.shape
    kernel_h, kernel_w, _, channels = Filter.shape
    strides, dilations = [
        (given, given) if isinstance(given, int) else tuple(given) for given in (stride, dilation)
    ]
    top, left, bottom, right = topi.nn.get_pad_tuple(padding, (kernel_h, kernel_w))
    padded = topi.nn.pad(Input, (0, top, left, 0), (0, bottom, right, 0), name="PaddedInput")
    rc = te.reduce_axis((0, depth), "rc")
    ry = te.reduce_axis((0, kernel_h), "ry")
    rx = te.reduce_axis((0, kernel_w), "rx")
    terms = _terms(out_dtype)

    def element(nn: Any, yy: Any, xx: Any, ff: Any) -> Any:
        at = (yy * strides[0] + ry * dilations[0], xx * strides[1] + rx * dilations[1])
        return te.sum(terms(padded[nn, at[0], at[1], rc], Filter[ry, rx, rc, ff]), [ry, rx, rc])

    out = [
        (extent + border - dilate * (kernel - 1) - 1) // step + 1
        for extent, border, dilate, kernel, step in zip(
            (height, width), (top + bottom, left + right), dilations, (kernel_h, kernel_w),
            strides, strict=True,
        )
    ]  # fmt: skip
    return te.compute((batch, *out, channels), element, "Conv2dOutput", "conv2d_nhwc")


def conv2d_nhwc_bn_relu(
    N: int, H: int, W: int, CI: int, CO: int, kernel_size: int, strides: int, padding: int,
    dilation: int = 1, in_dtype: str = "float32", out_dtype: str = "float32",
) -> Tensors:  # fmt: skip
    """A convolution with bias, batch normalisation and relu, channels last."""
    data = te.placeholder((N, H, W, CI), in_dtype, "data")
    kernel = te.placeholder((kernel_size, kernel_size, CI, CO), in_dtype, "kernel")
    bias, scale, offset = [
        te.placeholder((CO,), out_dtype, name) for name in ("bias", "bn_scale", "bn_offset")
    ]
    conv = conv2d_nhwc_without_layout_rewrite(data, kernel, strides, padding, dilation, out_dtype)
    shape = conv.shape
    biased = te.compute(shape, lambda n, h, w, c: conv[n, h, w, c] + bias[c], "bias_add")
    scaled = te.compute(shape, lambda n, h, w, c: biased[n, h, w, c] * scale[c], "bn_mul")
    moved = te.compute(shape, lambda n, h, w, c: scaled[n, h, w, c] + offset[c], "bn_add")
    return data, kernel, bias, offset, scale, topi.nn.relu(moved)


def conv2d_nchw(
    n: int, h: int, w: int, ci: int, co: int, kh: int, kw: int, stride: int, padding: int,
    dilation: int = 1, in_dtype: str = "float32", out_dtype: str = "float32",
) -> Tensors:  # fmt: skip
    """A convolution of images, channels first."""
    x = te.placeholder((n, ci, h, w), in_dtype, "X")
    weight = te.placeholder((co, ci, kh, kw), in_dtype, "W")
    conv = topi.nn.conv2d_nchw(x, weight, stride, padding, dilation, out_dtype)
    return x, weight, conv


def conv2d_nchw_bias_bn_relu(
    n: int, h: int, w: int, ci: int, co: int, kh: int, kw: int, stride: int, padding: int,
    dilation: int = 1, in_dtype: str = "float32", out_dtype: str = "float32",
) -> Tensors:  # fmt: skip
    """A convolution with bias, batch normalisation and relu, channels first."""
    x, weight, conv = conv2d_nchw(
        n, h, w, ci, co, kh, kw, stride, padding, dilation, in_dtype, out_dtype
    )
    bias, scale, offset = [
        te.placeholder((co, 1, 1), out_dtype, name) for name in ("B", "bn_scale", "bn_offset")
    ]
    shape = conv.shape
    biased = te.compute(shape, lambda n, c, h, w: conv[n, c, h, w] + bias[c, 0, 0], "bias_add")
    scaled = te.compute(shape, lambda n, c, h, w: biased[n, c, h, w] * scale[c, 0, 0], "bn_mul")
    moved = te.compute(shape, lambda n, c, h, w: scaled[n, c, h, w] + offset[c, 0, 0], "bn_add")
    return x, weight, bias, scale, offset, topi.nn.relu(moved)


def conv2d_winograd_nhwc(
    N: int, H: int, W: int, CI: int, CO: int, kernel_size: int, stride: int = 1, padding: int = 0,
    dilation: int = 1, tile_size: int = 4,
) -> Tensors:  # fmt: skip
    """Winograd's convolution, of weights transformed before: `kernel_size` is the tile's, with its halo."""
    data = te.placeholder((N, H, W, CI), "float32", "data")
    weight = te.placeholder((kernel_size, kernel_size, CO, CI), "float32", "weight")
    taps = kernel_size + 1 - tile_size
    transforms = topi.nn.winograd_transform_matrices(tile_size, taps, "float32")[:2]
    padded = topi.nn.pad(data, (0, padding, padding, 0), name="data_pad")
    height, width = [extent + 2 * padding - taps + 1 for extent in (H, W)]
    rows, columns = [-(-extent // tile_size) for extent in (height, width)]
    _check_winograd(stride, dilation)

    def tile_element(eps: Any, nu: Any, p: Any, ci: Any) -> Any:
        n, at = _tile(p, rows, columns, tile_size, eps, nu)
        inside = te.all(at[0] < H + 2 * padding, at[1] < W + 2 * padding)
        return tir.if_then_else(inside, padded[n, at[0], at[1], ci], tir.const(0, "float32"))

    shape = (kernel_size, kernel_size, N * rows * columns, CI)
    tiles = te.compute(shape, tile_element, "input_tile")
    packed = _transformed(tiles, transforms[1], kernel_size, kernel_size, "data_pack")
    ci = te.reduce_axis((0, CI), "ci")
    product = te.compute(
        (kernel_size, kernel_size, N * rows * columns, CO),
        lambda eps, nu, p, co: te.sum(packed[eps, nu, p, ci] * weight[eps, nu, co, ci], ci),
        "bgemm",
    )
    inverse = _transformed(product, transforms[0], kernel_size, tile_size, "inverse")

    def element(n: Any, h: Any, w: Any, co: Any) -> Any:
        tile = (n * rows + h // tile_size) * columns + w // tile_size
        return inverse[h % tile_size, w % tile_size, tile, co]

    return data, weight, te.compute((N, height, width, CO), element, "conv2d_winograd")


def conv2d_winograd_nchw(
    N: int, H: int, W: int, CI: int, CO: int, kernel_size: int, stride: int = 1, padding: int = 1,
    dilation: int = 1,
) -> Tensors:  # fmt: skip
    """The same with channels first, in tiles of 4."""
    tile_size = 4
    data = te.placeholder((N, CI, H, W), "float32", "data")
    weight = te.placeholder((kernel_size, kernel_size, CI, CO), "float32", "weight")
    taps = kernel_size + 1 - tile_size
    transforms = topi.nn.winograd_transform_matrices(tile_size, taps, "float32")[:2]
    padded = topi.nn.pad(data, (0, 0, padding, padding), name="data_pad")
    height, width = [extent + 2 * padding - taps + 1 for extent in (H, W)]
    rows, columns = [-(-extent // tile_size) for extent in (height, width)]
    _check_winograd(stride, dilation)

    def tile_element(c: Any, p: Any, eps: Any, nu: Any) -> Any:
        n, at = _tile(p, rows, columns, tile_size, eps, nu)
        inside = te.all(at[0] < H + 2 * padding, at[1] < W + 2 * padding)
        return tir.if_then_else(inside, padded[n, c, at[0], at[1]], tir.const(0, "float32"))

    count = N * rows * columns
    tiles = te.compute((CI, count, kernel_size, kernel_size), tile_element, "input_tile")
    r_a, r_b = [te.reduce_axis((0, kernel_size), name) for name in ("r_a", "r_b")]
    packed = te.compute(
        (kernel_size, kernel_size, CI, count),
        lambda eps, nu, ci, p: te.sum(
            tiles[ci, p, r_a, r_b] * transforms[1][r_a, eps] * transforms[1][r_b, nu], [r_a, r_b]
        ),
        "data_pack",
    )
    ci = te.reduce_axis((0, CI), "ci")
    product = te.compute(
        (kernel_size, kernel_size, CO, count),
        lambda eps, nu, co, p: te.sum(packed[eps, nu, ci, p] * weight[eps, nu, ci, co], ci),
        "bgemm",
    )
    s_a, s_b = [te.reduce_axis((0, kernel_size), name) for name in ("r_a", "r_b")]
    inverse = te.compute(
        (CO, count, tile_size, tile_size),
        lambda co, p, vh, vw: te.sum(
            product[s_a, s_b, co, p] * transforms[0][s_a, vh] * transforms[0][s_b, vw], [s_a, s_b]
        ),
        "inverse",
    )

    def element(n: Any, co: Any, h: Any, w: Any) -> Any:
        tile = (n * rows + h // tile_size) * columns + w // tile_size
        return inverse[co, tile, h % tile_size, w % tile_size]

    return data, weight, te.compute((N, CO, height, width), element, "conv2d_winograd")


def _check_winograd(stride: int, dilation: int) -> None:
    if stride != 1 or dilation != 1:
        raise ValueError(
            f"Winograd's convolution requires stride 1 and dilation 1, got {stride} and {dilation}"
        )


def _tile(p: Any, rows: int, columns: int, size: int, eps: Any, nu: Any) -> tuple[Any, list[Any]]:
    """The image that a tile is of, and where an element of it lies there."""
    row, column = p % (rows * columns) // columns * size, p % columns * size
    return p // (rows * columns), [row + eps, column + nu]


def _transformed(values: te.Tensor, matrix: te.Tensor, size: int, out: int, name: str) -> te.Tensor:
    """Each tile, multiplied by a matrix from both sides."""
    r_a, r_b = [te.reduce_axis((0, size), axis) for axis in ("r_a", "r_b")]
    return te.compute(
        (out, out, *values.shape[2:]),
        lambda vh, vw, p, c: te.sum(
            values[r_a, r_b, p, c] * matrix[r_a, vh] * matrix[r_b, vw], [r_a, r_b]
        ),
        name,
    )


def max_pool2d_nchw(n: int, h: int, w: int, ci: int, padding: int) -> Tensors:
    """The largest value of each window of 2x2, channels first."""
    x = te.placeholder((n, ci, h, w), name="X")
    border = [padding] * 4
    return x, topi.nn.pool2d(x, [2, 2], [1, 1], [1, 1], border, "max")


def softmax_mn(m: int, n: int) -> Tensors:
    """The softmax of each row."""
    a = te.placeholder((m, n), name="A")
    return a, topi.nn.softmax(a, axis=1)


def norm_bmn(B: int, M: int, N: int) -> Tensors:
    """The Euclidean norm of each matrix."""
    a = te.placeholder((B, M, N), name="A")
    i, j = te.reduce_axis((0, M), "i"), te.reduce_axis((0, N), "j")
    squares = te.compute((B,), lambda b: te.sum(a[b, i, j] * a[b, i, j], [i, j]), "C")
    return a, te.compute((B,), lambda b: tir.sqrt(squares[b]), "D")


# by short name: the computation, and the parameters that it is tried with
CONFIGS: dict[str, tuple[Callable[..., Tensors], list[tuple[int, ...]]]] = {
    "C1D": (conv1d_nlc, [
        (1, 256, 64, 128, 3, 2, 1), (1, 128, 128, 256, 1, 2, 0), (1, 64, 256, 256, 5, 1, 2),
        (1, 32, 512, 512, 3, 1, 1),
    ]),
    "C2D": (conv2d_nhwc, [
        (1, 224, 224, 3, 64, 7, 2, 3), (1, 56, 56, 64, 64, 1, 1, 0), (1, 14, 14, 256, 256, 3, 1, 1),
        (1, 7, 7, 512, 512, 3, 1, 1),
    ]),
    "C3D": (conv3d_ndhwc, [
        (1, 16, 224, 224, 3, 64, 7, 2, 3), (1, 16, 56, 56, 64, 64, 1, 1, 0),
        (1, 16, 14, 14, 256, 256, 3, 1, 1), (1, 16, 7, 7, 512, 512, 3, 1, 1),
    ]),
    "GMM": (batch_matmul_nkkm, [
        (1, 128, 128, 128), (1, 512, 32, 512), (1, 512, 512, 512), (1, 1024, 1024, 1024),
    ]),
    "GRP": (conv2d_nhwc, [
        (1, 56, 56, 64, 128, 3, 2, 1, 1, 4), (1, 28, 28, 128, 128, 3, 1, 1, 1, 4),
        (1, 14, 14, 256, 256, 3, 1, 1, 1, 4), (1, 7, 7, 512, 512, 3, 1, 1, 1, 4),
    ]),
    "DIL": (conv2d_nhwc, [
        (1, 224, 224, 3, 64, 7, 2, 3, 2), (1, 56, 56, 64, 64, 3, 1, 1, 2),
        (1, 14, 14, 256, 256, 3, 1, 1, 2), (1, 7, 7, 512, 512, 3, 1, 1, 2),
    ]),
    "DEP": (depthwise_conv2d_nhwc, [
        (1, 112, 112, 32, 3, 1, 1), (1, 112, 112, 64, 3, 2, 1), (1, 14, 14, 512, 3, 1, 1),
        (1, 7, 7, 1024, 3, 1, 1),
    ]),
    "T2D": (conv2d_transpose_nhwc, [
        (1, 4, 4, 512, 256, 4, 2, 1), (1, 8, 8, 256, 128, 4, 2, 1), (1, 16, 16, 128, 64, 4, 2, 1),
        (1, 32, 32, 64, 3, 4, 2, 1),
    ]),
    "CAP": (conv2d_capsule_nhwijc, [
        (1, 16, 16, 32, 32, 3, 2, 1), (1, 8, 8, 32, 32, 3, 1, 1), (1, 16, 16, 8, 16, 3, 2, 1),
        (1, 8, 8, 16, 16, 3, 1, 1),
    ]),
    "NRM": (norm_bmn, [(1, 256, 256), (1, 512, 512), (1, 1024, 1024), (1, 4096, 1024)]),
    "SFM": (softmax_mn, [(256, 256), (512, 512), (1024, 1024), (2048, 2048)]),
    "CBR": (conv2d_nhwc_bn_relu, [
        (1, 224, 224, 3, 64, 7, 2, 3), (1, 56, 56, 64, 128, 1, 2, 0),
        (1, 28, 28, 128, 256, 1, 2, 0), (1, 7, 7, 512, 512, 3, 1, 1),
    ]),
    "TBG": (transpose_batch_matmul, [
        (1, 128, 12, 64), (1, 128, 16, 64), (1, 64, 12, 128), (1, 128, 12, 128),
    ]),
    "C2D_WIN_NHWC": (conv2d_winograd_nhwc, [(1, 14, 14, 128, 128, 6)]),
    "C2D_WIN_NCHW": (conv2d_winograd_nchw, [(1, 56, 56, 64, 64, 6)]),
}  # fmt: skip


def create_te_workload(name: str, idx: int) -> PrimFunc:
    """One of the computations of `CONFIGS`, as a function of blocks.

    Parameters
    ----------
    name : str
        Its short name.
    idx : int
        Which of its sizes.
    """
    workload, sizes = CONFIGS[name]
    return te.create_prim_func(workload(*sizes[idx]))
