"""Strategies, schedules and wrappers under the names that programs know them by."""

from __future__ import annotations

import numpy as np
import pytest

import tvm
from tvm import relay, te, topi
from tvm.relay.analysis.infer import infer_type_of
from tvm.relay.op.strategy import arm_cpu, generic, x86
from tvm.relay.op.strategy.arm_cpu import arm_cpu_tir_strategy
from tvm.relay.op.strategy.generic import (
    dense_strategy,
    naive_schedule,
    schedule_injective,
    schedule_reduce,
    wrap_compute_argsort,
    wrap_compute_batch_matmul,
    wrap_compute_concat,
    wrap_compute_conv1d,
    wrap_compute_conv2d,
    wrap_compute_conv2d_transpose,
    wrap_compute_conv3d,
    wrap_compute_correlation,
    wrap_compute_dense,
    wrap_compute_dilation2d,
    wrap_compute_einsum,
    wrap_compute_layout_transform,
    wrap_compute_matmul,
    wrap_compute_roi_align,
    wrap_compute_scanop,
    wrap_compute_scatter_elements,
    wrap_compute_searchsorted,
    wrap_compute_sliding_window,
    wrap_compute_softmax,
    wrap_compute_sort,
    wrap_compute_topk,
    wrap_compute_trilu,
    wrap_compute_uniform,
    wrap_topi_schedule,
)
from tvm.relay.ty import flat_types

LLVM = tvm.target.Target("llvm")


def var(name: str, *shape: int, dtype: str = "float32") -> relay.Var:
    return relay.var(name, shape=shape, dtype=dtype)


x, w = var("x", 1, 4, 8, 8), var("w", 8, 4, 3, 3)
volume, kernel = var("v", 1, 2, 5, 5, 5), var("k", 3, 2, 3, 3, 3)
line, taps = var("l", 1, 4, 9), var("t", 6, 4, 3)
a, b = var("a", 5, 6), var("b", 7, 6)
batch = var("p", 2, 3, 4)
rows = [var(n, 4) for n in ("g", "h", "m", "s")]
key = var("key", 10, dtype="uint64")
low, high = var("low"), var("high")

# an operator call, and what computes the same from tensors
CASES = {
    "softmax": (relay.nn.softmax(a, axis=0), wrap_compute_softmax(topi.nn.softmax)),
    "conv2d": (
        relay.nn.conv2d(x, w, strides=(2, 1), padding=(1, 0)),
        wrap_compute_conv2d(topi.nn.conv2d_nchw),
    ),
    "group_conv2d": (
        relay.nn.conv2d(x, var("w", 8, 2, 3, 3), groups=2),
        wrap_compute_conv2d(topi.nn.group_conv2d_nchw, has_groups=True),
    ),
    "conv1d": (relay.nn.conv1d(line, taps), wrap_compute_conv1d(topi.nn.conv1d_ncw)),
    "conv3d": (relay.nn.conv3d(volume, kernel), wrap_compute_conv3d(topi.nn.conv3d_ncdhw)),
    "conv2d_transpose": (
        relay.nn.conv2d_transpose(x, var("w", 4, 3, 3, 3), strides=(2, 2), output_padding=(1, 1)),
        wrap_compute_conv2d_transpose(topi.nn.conv2d_transpose_nchw),
    ),
    "matmul": (
        relay.nn.matmul(a, b, transpose_b=True), wrap_compute_matmul(topi.nn.matmul),
    ),
    "dense": (relay.nn.dense(a, b), wrap_compute_dense(topi.nn.dense)),
    "batch_matmul": (
        relay.nn.batch_matmul(batch, batch), wrap_compute_batch_matmul(topi.nn.batch_matmul),
    ),
    "dilation2d": (
        relay.image.dilation2d(x, var("f", 4, 3, 3)),
        wrap_compute_dilation2d(topi.image.dilation2d_nchw),
    ),
    "sort": (relay.sort(a, axis=0, is_ascend=False), wrap_compute_sort(topi.sort)),
    "argsort": (relay.argsort(a, dtype="int64"), wrap_compute_argsort(topi.argsort)),
    "topk": (relay.topk(a, 2, ret_type="both")[0].tuple_value, wrap_compute_topk(topi.topk)),
    "searchsorted": (relay.searchsorted(a, a), wrap_compute_searchsorted(topi.searchsorted)),
    "cumsum": (relay.cumsum(a, axis=1, exclusive=True), wrap_compute_scanop(topi.cumsum)),
    "trilu": (relay.trilu(a, relay.const(0), False), wrap_compute_trilu(topi.trilu)),
    "einsum": (relay.einsum((a, b), "ij,kj->ik"), wrap_compute_einsum(topi.einsum)),
    "sliding_window": (relay.sliding_window(a, 1, [3], [1]), wrap_compute_sliding_window()),
    "concatenate": (relay.concatenate((a, b), 0), wrap_compute_concat(topi.concatenate)),
    "layout_transform": (
        relay.layout_transform(x, "NCHW", "NCHW4c"),
        wrap_compute_layout_transform(topi.layout_transform),
    ),
    "scatter_elements": (
        relay.scatter_elements(a, var("i", 2, 6, dtype="int64"), var("u", 2, 6), 0),
        wrap_compute_scatter_elements(topi.scatter_elements),
    ),
    "uniform": (
        relay.random.uniform(key, (3,), "float32", 0.0, 1.0).tuple_value
        if isinstance(relay.random.uniform(key, (3,)), relay.TupleGetItem)
        else relay.random.uniform(key, (3,), "float32", 0.0, 1.0).astuple(),
        wrap_compute_uniform(topi.random.uniform),
    ),
    "roi_align": (
        relay.vision.roi_align(x, var("r", 2, 5), (2, 2), 1.0),
        wrap_compute_roi_align(topi.vision.roi_align_nchw),
    ),
    "correlation": (
        relay.nn.correlation(x, x, 1, 1, 1, 1, (1, 1, 1, 1), True, "NCHW"),
        wrap_compute_correlation(topi.nn.correlation_nchw),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_wrapped_functions_compute_what_the_operator_does(name: str) -> None:
    call, wrapped = CASES[name]
    out_type = infer_type_of(call)
    inputs = [
        te.placeholder(ty.shape, ty.dtype, name=f"p{i}")
        for i, ty in enumerate([t for arg in call.args for t in flat_types(arg.checked_type)])
    ]
    with LLVM:
        tensors = wrapped(call.attrs, inputs, out_type)
        schedule = wrap_topi_schedule(topi.generic.schedule_extern)({}, tensors, LLVM)
        own = getattr(generic, f"{name}_strategy", generic.conv2d_strategy)
        strategy = own(call.attrs, inputs, out_type, LLVM)
    assert isinstance(strategy, relay.op.OpStrategy) and isinstance(schedule, te.Schedule)
    assert [tuple(t.shape) for t in tensors] == [tuple(t.shape) for t in flat_types(out_type)]
    (implementation,) = strategy.specializations[0].implementations
    with LLVM:
        expected = implementation.compute(call.attrs, inputs, out_type)
        plain = naive_schedule(None, tensors, LLVM)
        others = naive_schedule(None, expected, LLVM)
    rng = np.random.default_rng(0)
    values = [
        tvm.nd.array(rng.integers(0, 2, [int(d) for d in t.shape]).astype(str(t.dtype)))
        for t in inputs
    ]
    found = []
    for sch, outs in ((plain, tensors), (others, expected)):
        results = [tvm.nd.empty([int(d) for d in t.shape], str(t.dtype)) for t in outs]
        tvm.build(sch, [*inputs, *outs], LLVM)(*values, *results)
        found.append([r.numpy() for r in results])
    for mine, theirs in zip(*found, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-4, atol=1e-5)


def test_a_strategy_is_added_for_a_target_key() -> None:
    def doubled(data: te.Tensor, weight: te.Tensor, bias: object, dtype: str) -> te.Tensor:
        product = topi.nn.dense(data, weight, None, dtype)
        return te.compute(product.shape, lambda i, j: product[i, j] * 2.0)

    def strategy(attrs, inputs, out_type, target):
        found = relay.op.OpStrategy()
        found.add_implementation(
            wrap_compute_dense(doubled), wrap_topi_schedule(topi.generic.schedule_injective)
        )
        return found

    func = relay.Function([a, b], relay.nn.dense(a, b))
    dense_strategy.register(strategy, "test_key")
    try:
        left, right = np.ones((5, 6), "float32"), np.ones((7, 6), "float32")
        for target, expected in (("llvm -keys=test_key,cpu", 12.0), ("llvm", 6.0)):
            run = relay.create_executor("graph", target=target).evaluate(func)
            assert (run(left, right).numpy() == expected).all()
    finally:
        dense_strategy.dispatch.clear()
        relay.op.get("nn.dense").reset_attr("FTVMStrategy")


@pytest.mark.parametrize("target", ["llvm", "c"])
def test_shared_schedules_are_those_of_the_target(target: str) -> None:
    data = te.placeholder((4, 6), name="data")
    total = topi.sum(data, axis=1)
    chosen = tvm.target.Target(target)
    for schedule, out in (
        (schedule_injective, topi.exp(data)), (schedule_reduce, total), (x86.schedule_reduce_cpu, total),
    ):  # fmt: skip
        result = tvm.nd.empty([int(d) for d in out.shape])
        run = tvm.build(schedule(None, [out], chosen), [data, out], "llvm")
        run(tvm.nd.array(np.zeros((4, 6), "float32")), result)
        assert (result.numpy() == (1 if out is not total else 0)).all()
    assert x86.dense_strategy_cpu is dense_strategy


def test_what_strategies_ask_about_convolutions() -> None:
    assert generic.get_conv2d_in_channels((1, 4, 8, 8, 16), "NCHW16c") == 64
    assert generic.get_conv2d_out_channels((3, 3, 8, 32), "HWIO") == 32
    shapes = ((1, 8, 8, 16), "NHWC", (3, 3, 16, 1), "HWOI")
    assert generic.is_depthwise_conv2d(*shapes, 16) and not generic.is_depthwise_conv2d(*shapes, 1)
    data = te.placeholder((4,), name="data")
    assert generic.copy_if_identical(data, data) is not data
    other = te.placeholder((4,), name="other")
    assert generic.copy_if_identical(data, other) is other


def test_arm_processors_have_the_strategies_of_all() -> None:
    assert arm_cpu.dense_strategy_arm_cpu is dense_strategy
    x = te.placeholder((1, 2, 8, 8), name="x")
    pooled = topi.nn.pool2d(x, (2, 2), (2, 2), (1, 1), (0, 0, 0, 0), "max")
    target = tvm.target.Target("llvm -mtriple=aarch64-linux-gnu -mattr=+neon")
    attrs = tvm.ir.make_node("DictAttrs", layout="NCHW")
    scheduled = arm_cpu.schedule_pool_arm_cpu(attrs, [pooled], target)
    assert [op.name for op in scheduled.outputs] == [pooled.op.name]


@pytest.mark.parametrize("feature", ["neon", "sme"])
def test_matrix_units_of_arm_processors_have_no_schedule(feature: str) -> None:
    x = te.placeholder((8,), name="x")
    sch = tvm.tir.Schedule(te.create_prim_func([x, topi.exp(x)]))
    with tvm.target.Target(f"llvm -mtriple=aarch64-linux-gnu -mattr=+v9.2a,+{feature}"):
        if feature == "neon":
            assert arm_cpu_tir_strategy(sch) is False
            return
        with pytest.raises(tvm.TVMError, match="no schedule for the matrix units"):
            arm_cpu_tir_strategy(sch)


def test_partitions_are_found_in_their_package() -> None:
    contrib = tvm.relay.op.contrib
    assert contrib.partition_for_tensorrt is contrib.tensorrt.partition_for_tensorrt
    assert contrib.partition_for_cutlass is contrib.cutlass.partition_for_cutlass
