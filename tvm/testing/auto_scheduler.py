"""Workloads that tests of the auto-scheduler share."""

from __future__ import annotations

from typing import Any

from tvm import auto_scheduler, te, topi
from tvm.auto_scheduler.loop_state import State
from tvm.topi.nn.winograd_util import winograd_transform_matrices

Tensors = list[te.Tensor]


@auto_scheduler.register_workload
def matmul_auto_scheduler_test(N: int, M: int, K: int) -> Tensors:
    """A product of matrices, the second of which may lie in any order."""
    return _matmul(N, M, K)


def matmul_auto_scheduler_test_rename_0(N: int, M: int, K: int) -> Tensors:
    """The same under another name."""
    return _matmul(N, M, K)


auto_scheduler.register_workload(
    "matmul_auto_scheduler_test_rename_1", matmul_auto_scheduler_test_rename_0
)


def _matmul(n: int, m: int, k: int) -> Tensors:
    a, b = te.placeholder((n, k), name="A"), te.placeholder((k, m), name="B")
    kk = te.reduce_axis((0, k), name="k")
    attrs = {"layout_free_placeholders": [b]}
    c = te.compute((n, m), lambda i, j: te.sum(a[i, kk] * b[kk, j], axis=kk), name="C", attrs=attrs)
    return [a, b, c]


@auto_scheduler.register_workload
def double_matmul_auto_scheduler_test(N: int) -> Tensors:
    """A product of a product."""
    a, b, d = [te.placeholder((N, N), name=name) for name in "ABC"]
    k = te.reduce_axis((0, N), name="k")
    c = te.compute((N, N), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="D")
    k2 = te.reduce_axis((0, N), name="k")
    e = te.compute((N, N), lambda i, j: te.sum(c[i, k2] * d[k2, j], axis=k2), name="E")
    return [a, b, d, e]


@auto_scheduler.register_workload
def parallel_matmul_auto_scheduler_test(N: int) -> Tensors:
    """Two products that share an operand."""
    a, b, c = [te.placeholder((N, N), name=name) for name in "ABC"]
    k = te.reduce_axis((0, N), name="k")
    d = te.compute((N, N), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="D")
    k2 = te.reduce_axis((0, N), name="k")
    e = te.compute((N, N), lambda i, j: te.sum(a[i, k2] * c[k2, j], axis=k2), name="E")
    return [a, b, c, d, e]


@auto_scheduler.register_workload
def conv2d_nchw_bn_relu_auto_scheduler_test(
    N: int, H: int, W: int, CI: int, CO: int, kernel_size: int, strides: int, padding: int,
    dilation: int = 1,
) -> Tensors:  # fmt: skip
    """A convolution with bias, batch normalization and activation."""
    data = te.placeholder((N, CI, H, W), name="Data")
    kernel = te.placeholder((CO, CI, kernel_size, kernel_size), name="Kernel")
    bias, scale, offset = [
        te.placeholder((CO, 1, 1), name=name) for name in ("Bias", "Bn_scale", "Bn_offset")
    ]
    height = (H + 2 * padding - dilation * (kernel_size - 1) - 1) // strides + 1
    width = (W + 2 * padding - dilation * (kernel_size - 1) - 1) // strides + 1
    conv = topi.nn.conv2d_nchw(data, kernel, strides, padding, dilation)
    shape = (N, CO, height, width)
    conv = te.compute(shape, lambda i, j, k, m: conv[i, j, k, m] + bias[j, 0, 0], name="Bias_add")
    conv = te.compute(shape, lambda i, j, k, m: conv[i, j, k, m] * scale[j, 0, 0], name="Bn_mul")
    conv = te.compute(shape, lambda i, j, k, m: conv[i, j, k, m] + offset[j, 0, 0], name="Bn_add")
    return [data, kernel, bias, offset, scale, topi.nn.relu(conv)]


@auto_scheduler.register_workload
def max_pool2d_auto_scheduler_test(N: int, H: int, W: int, CI: int, padding: int) -> Tensors:
    """The maximum of windows of 2 by 2."""
    data = te.placeholder((N, CI, H, W), name="Data")
    out = topi.nn.pool2d(
        data, [2, 2], [1, 1], [1, 1], [padding] * 4, pool_type="max", ceil_mode=False, layout="NCHW"
    )
    return [data, out]


@auto_scheduler.register_workload
def min_nm_auto_scheduler_test(N: int, M: int) -> Tensors:
    """The minimum of each row."""
    a = te.placeholder((N, M), name="A")
    return [a, topi.min(a, axis=-1)]


@auto_scheduler.register_workload
def softmax_nm_auto_scheduler_test(N: int, M: int) -> Tensors:
    """Softmax of rows."""
    a = te.placeholder((N, M), name="A")
    return [a, topi.nn.softmax(a, axis=1)]


@auto_scheduler.register_workload
def softmax_abcd_auto_scheduler_test(a: int, b: int, c: int, d: int) -> Tensors:
    """Softmax over the last of four axes."""
    data = te.placeholder((a, b, c, d), name="A")
    return [data, topi.nn.softmax(data, axis=-1)]


@auto_scheduler.register_workload
def zero_rank_reduce_auto_scheduler_test(N: int) -> Tensors:
    """The sum of a vector, which has no axes."""
    a = te.placeholder((N,), name="A")
    k = te.reduce_axis((0, N), name="k")
    return [a, te.compute((), lambda: te.sum(a[k], axis=k), name="B")]


@auto_scheduler.register_workload
def zero_rank_compute_auto_scheduler_test(N: int) -> Tensors:
    """The first and the last element added."""
    a = te.placeholder((N,), name="A")
    return [a, te.compute((), lambda: a[0] + a[N - 1], name="B")]


@auto_scheduler.register_workload
def conv2d_winograd_nhwc_auto_scheduler_test(
    N: int, H: int, W: int, CI: int, CO: int, kernel_size: int = 3, stride: int = 1,
    padding: int = 0, dilation: int = 1,
) -> Tensors:  # fmt: skip
    """Winograd's algorithm, with a kernel that was transformed before."""
    tile = 4
    inputs = te.placeholder((N, H, W, CI), name="inputs")
    alpha = kernel_size + tile - 1
    weight = te.placeholder((alpha, alpha, CO, CI), name="weight")
    height = (H + 2 * padding - kernel_size) // stride + 1
    width = (W + 2 * padding - kernel_size) // stride + 1
    tiles_h, tiles_w = -(-height // tile), -(-width // tile)
    tiles = N * tiles_h * tiles_w
    bottom = (tiles_h * tile + kernel_size - 1) - H - padding
    right = (tiles_w * tile + kernel_size - 1) - W - padding
    padded = topi.nn.pad(inputs, (0, padding, padding, 0), (0, bottom, right, 0), name="data_pad")
    a, b, _ = winograd_transform_matrices(tile, kernel_size, "float32")
    index = te.indexdiv, te.indexmod

    def window(ci: Any, p: Any, eps: Any, nu: Any) -> Any:
        div, mod = index
        row = mod(div(p, tiles_w), tiles_h) * tile + eps
        return padded[div(p, tiles_h * tiles_w), row, mod(p, tiles_w) * tile + nu, ci]

    windows = te.compute(
        (alpha, alpha, tiles, CI), lambda eps, nu, p, ci: window(ci, p, eps, nu), name="input_tile"
    )
    ra, rb = te.reduce_axis((0, alpha), "r_a"), te.reduce_axis((0, alpha), "r_b")
    packed = te.compute(
        (alpha, alpha, tiles, CI),
        lambda eps, nu, p, ci: te.sum(
            windows[ra, rb, p, ci] * b[ra, eps] * b[rb, nu], axis=[ra, rb]
        ),
        name="data_pack",
        attrs={"auto_scheduler_simplify_const_tensor_indices": ["eps", "nu", "r_a", "r_b"]},
    )
    ci = te.reduce_axis((0, CI), name="ci")
    bgemm = te.compute(
        (alpha, alpha, tiles, CO),
        lambda eps, nu, p, co: te.sum(packed[eps, nu, p, ci] * weight[eps, nu, co, ci], axis=[ci]),
        name="bgemm",
        attrs={"layout_free_placeholders": [weight]},
    )
    sa, sb = te.reduce_axis((0, alpha), "r_a"), te.reduce_axis((0, alpha), "r_b")
    inverse = te.compute(
        (tile, tile, tiles, CO),
        lambda vh, vw, p, co: te.sum(bgemm[sa, sb, p, co] * a[sa, vh] * a[sb, vw], axis=[sa, sb]),
        name="inverse",
        attrs={"auto_scheduler_simplify_const_tensor_indices": ["vh", "vw", "r_a", "r_b"]},
    )
    output = te.compute(
        (N, height, width, CO),
        lambda n, h, w, co: inverse[
            te.indexmod(h, tile),
            te.indexmod(w, tile),
            n * tiles_h * tiles_w + te.indexdiv(h, tile) * tiles_w + te.indexdiv(w, tile),
            co,
        ],
        name="conv2d_winograd",
        tag="conv2d_winograd_nhwc",
    )
    return [inputs, weight, output]


def get_tiled_matmul() -> tuple[auto_scheduler.ComputeDAG, State]:
    """A product of matrices, tiled by hand."""
    a, b, c = matmul_auto_scheduler_test(512, 512, 512)
    dag = auto_scheduler.ComputeDAG([a, b, c])
    state = dag.get_init_state()
    rows = state.split(c, state[c].iters[0], [4, 8, 8])
    columns = state.split(c, state[c].iters[4], [8, 4, 4])
    pairs = [loop for pair in zip(rows, columns, strict=True) for loop in pair]
    state.reorder(c, [*pairs, state[c].iters[8]])
    return dag, state


@auto_scheduler.register_workload
def invalid_compute_definition() -> Tensors:
    """A reduction over two axes of one name, which the auto-scheduler refuses."""
    a = te.placeholder((10, 10), name="A")
    first, second = te.reduce_axis((0, 2), name="r1"), te.reduce_axis((0, 2), name="r1")
    b = te.compute((10,), lambda i: te.sum(a[i, first + second], axis=[first, second]), name="B")
    return [a, b]
