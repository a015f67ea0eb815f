"""Passes that replace a few operators by others: before, after, and equal results."""

from __future__ import annotations

import numpy as np
import pytest

import tvm
from tvm import relay
from tvm.relay import transform

from .common import assert_transforms, assert_unchanged, run, typed


def evaluate(func: relay.Function, *args: np.ndarray) -> np.ndarray:
    return relay.create_executor("debug").evaluate(func)(*args).numpy()


def data(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).standard_normal(shape).astype("float32")


def test_shared_widening_casts_are_copied_to_their_users() -> None:
    x, y = relay.var("x", shape=(4,), dtype="int8"), relay.var("y", shape=(4,), dtype="int32")
    wide = relay.cast(x, "int32")
    func = run(
        relay.Function([x, y], relay.Tuple([wide + y, wide - y])), transform.CanonicalizeCast()
    )
    first, second = func.body.fields
    assert first.args[0] is not second.args[0]
    narrow = relay.cast(y, "int8")
    assert_unchanged(
        relay.Function([x, y], relay.Tuple([narrow + x, narrow - x])), transform.CanonicalizeCast()
    )


def test_explicit_padding_joins_the_convolution() -> None:
    x, w = relay.var("x", shape=(1, 2, 6, 6)), relay.var("w", shape=(3, 2, 3, 3))
    padded = relay.nn.pad(x, ((0, 0), (0, 0), (1, 1), (0, 2)))
    before = relay.Function([x, w], relay.nn.conv2d(padded, w, padding=(1, 0, 0, 0)))
    after = relay.Function([x, w], relay.nn.conv2d(x, w, padding=(2, 0, 1, 2)))
    assert_transforms(before, after, transform.FoldExplicitPadding())


@pytest.mark.parametrize("value", [1.0, 0.0])
def test_padding_of_other_values_stays(value: float) -> None:
    x = relay.var("x", shape=(1, 2, 6, 6))
    padded = relay.nn.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)), value)
    assert_unchanged(
        relay.Function([x], relay.nn.max_pool2d(padded, (3, 3))), transform.FoldExplicitPadding()
    )
    batch = relay.nn.pad(x, ((1, 0), (0, 0), (1, 1), (1, 1)))
    w = relay.const(data(3, 2, 3, 3))
    assert_unchanged(
        relay.Function([x], relay.nn.conv2d(batch, w)), transform.FoldExplicitPadding()
    )


def test_explicit_padding_joins_pooling() -> None:
    x = relay.var("x", shape=(1, 2, 6, 6))
    widths = ((0, 0), (0, 0), (1, 2), (0, 1))
    lowest = relay.nn.pad(x, widths, float("-inf"))
    zeros = relay.nn.pad(x, widths)
    for body in (
        relay.nn.max_pool2d(lowest, (3, 3)),
        relay.nn.avg_pool2d(zeros, (3, 3)),
        relay.nn.avg_pool2d(zeros, (3, 3), padding=(1, 1), count_include_pad=True),
    ):
        func = relay.Function([x], body)
        folded = run(func, transform.FoldExplicitPadding())
        assert folded.body.args[0] is folded.params[0]
        value = data(1, 2, 6, 6)
        np.testing.assert_allclose(evaluate(folded, value), evaluate(func, value), rtol=1e-6)
    kept = relay.nn.avg_pool2d(zeros, (3, 3), padding=(1, 1))
    assert_unchanged(relay.Function([x], kept), transform.FoldExplicitPadding())


def test_padding_by_the_least_bfloat16_joins_max_pool() -> None:
    x = relay.var("x", shape=(1, 2, 6, 6), dtype="bfloat16")
    padded = relay.nn.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)), float("-inf"))
    folded = run(
        relay.Function([x], relay.nn.max_pool2d(padded, 3)), transform.FoldExplicitPadding()
    )
    assert folded.body.args[0] is folded.params[0]


def test_atrous_convolution_is_flattened() -> None:
    x, w = relay.var("x", shape=(1, 8, 8, 4)), relay.var("w", shape=(3, 3, 4, 5))
    for paddings, crops in (
        ([[2, 2], [2, 2]], [[0, 0], [0, 0]]),
        ([[0, 0], [0, 0]], [[0, 0], [0, 0]]),
    ):
        spread = relay.nn.space_to_batch_nd(x, block_shape=[2, 2], paddings=paddings)
        conv = relay.nn.conv2d(
            spread, w, data_layout="NHWC", kernel_layout="HWIO", kernel_size=(3, 3), channels=5
        )
        body = relay.nn.batch_to_space_nd(conv, block_shape=[2, 2], crops=crops)
        func = relay.Function([x, w], body)
        flat = run(func, transform.FlattenAtrousConv())
        assert flat.body.op.name == "nn.conv2d"
        assert tuple(flat.body.attrs.dilation) == (2, 2)
        args = data(1, 8, 8, 4), data(3, 3, 4, 5)
        np.testing.assert_allclose(
            evaluate(flat, *args), evaluate(func, *args), rtol=1e-4, atol=1e-5
        )


def test_many_tensors_are_joined_in_steps() -> None:
    xs = [relay.var(f"x{i}", shape=(i + 1,)) for i in range(7)]
    func = relay.Function(xs, relay.concatenate(xs, axis=0))
    split = run(func, transform.SplitArgs(3))
    counts = [
        len(n.args[0].args[0].fields)
        for n in relay.analysis.post_order(split)
        if isinstance(n, relay.Call) and n.op.name == "concatenate"
    ]
    assert counts == [2] * 6  # with the result a kernel has three arguments
    assert relay.testing.count_ops(split)["annotation.stop_fusion"] == 6
    args = [data(i + 1) for i in range(7)]
    np.testing.assert_array_equal(evaluate(split, *args), np.concatenate(args))
    assert_unchanged(func, transform.SplitArgs(9))
    with pytest.raises(ValueError, match="at least 2"):
        transform.SplitArgs(1)


def test_open_extents_are_arguments_when_tensors_are_joined() -> None:
    xs = [relay.var(f"x{i}", shape=(relay.Any(), 2)) for i in range(4)]
    split = run(relay.Function(xs, relay.concatenate(xs, axis=1)), transform.SplitArgs(15))
    # 4 for each tensor, and 3 for the result, whose open extent is known by then
    first, last = split.body.args[0].args[0].fields[0], split.body
    assert [len(call.args[0].args[0].fields) for call in (first, last)] == [3, 2]


def test_division_by_constants_becomes_multiplication() -> None:
    x = relay.var("x", shape=(4,))
    before = relay.Function([x], x / relay.const(4.0))
    after = relay.Function([x], x * relay.const(0.25))
    assert_transforms(before, after, transform.DivToMul())
    assert_unchanged(relay.Function([x], x / relay.const(0.0)), transform.DivToMul())
    i = relay.var("i", shape=(4,), dtype="int32")
    assert_unchanged(relay.Function([i], i / relay.const(4)), transform.DivToMul())


def test_transposed_weights_become_parameters() -> None:
    x, w = relay.var("x", shape=(2, 3)), relay.var("w", shape=(3, 4))
    func = typed(relay.Function([x, w], relay.nn.dense(x, relay.transpose(w))))["main"]
    assert relay.analysis.search_fc_transpose(func) == ["w"]
    weight = data(3, 4)
    params = {"w": tvm.nd.array(weight)}
    new, params = relay.data_dep_optimization.simplify_fc_transpose.convert(func, params)
    assert [p.name_hint for p in new.params] == ["x", "w.T"]
    value = data(2, 3)
    found = evaluate(new, value, params["w.T"])
    np.testing.assert_allclose(found, value @ weight, rtol=1e-5)


def zeroed(array: np.ndarray) -> np.ndarray:
    flat = array.reshape(array.shape[0], -1)
    flat[::2, :] = 0
    return array


def test_dense_layers_with_sparse_weights() -> None:
    x, w = relay.var("x", shape=(2, 8)), relay.var("w", shape=(6, 8))
    func = typed(relay.Function([x, w], relay.nn.relu(relay.nn.dense(x, w))))["main"]
    weight = zeroed(data(6, 8))
    params = {"w": tvm.nd.array(weight)}
    sparse, params = relay.data_dep_optimization.bsr_dense.convert(func, params, (1, 4), 0.4)
    assert [p.name_hint for p in sparse.params] == ["x", "w.data", "w.indices", "w.indptr"]
    assert params["w.data"].shape == (6, 1, 4)
    value = data(2, 8)
    found = evaluate(sparse, value, *[params[p.name_hint] for p in sparse.params[1:]])
    np.testing.assert_allclose(found, np.maximum(value @ weight.T, 0), rtol=1e-5)
    kept, params = relay.data_dep_optimization.bsr_dense.convert(
        func, {"w": tvm.nd.array(weight)}, (1, 4), 0.9
    )
    assert [p.name_hint for p in kept.params] == ["x", "w"]
    assert list(params) == ["w"]


@pytest.mark.parametrize("kernel_size", [1, 3])
@pytest.mark.parametrize("layout", ["NHWC", "NCHW"])
def test_convolutions_with_sparse_weights(layout: str, kernel_size: int) -> None:
    k = kernel_size
    shape, kernel = ((1, 5, 5, 4), "HWIO") if layout == "NHWC" else ((1, 4, 5, 5), "OIHW")
    weight = zeroed(data(8, 4, k, k))
    if kernel == "HWIO":
        weight = np.ascontiguousarray(weight.transpose(2, 3, 1, 0))
    x, w = relay.var("x", shape=shape), relay.var("w", shape=weight.shape)
    pad = (k // 2, k // 2)
    body = relay.nn.conv2d(
        x, w, kernel_size=(k, k), channels=8, padding=pad, data_layout=layout, kernel_layout=kernel
    )
    func = typed(relay.Function([x, w], body))["main"]
    params = {"w": tvm.nd.array(weight)}
    sparse, params = relay.data_dep_optimization.bsr_conv2d.convert(
        func, params, (2, 1), 0.3, layout, k
    )
    assert sparse.body.op.name == "nn.sparse_conv2d"
    value = data(*shape)
    found = evaluate(sparse, value, *[params[p.name_hint] for p in sparse.params[1:]])
    np.testing.assert_allclose(found, evaluate(func, value, weight), rtol=1e-4, atol=1e-5)


def test_batch_of_inputs_is_changed() -> None:
    x, w = relay.var("x", shape=(1, 3)), relay.var("w", shape=(4, 3))
    func = relay.Function([x, w], relay.nn.dense(x, w))
    changed = run(func, transform.ChangeBatch({x: 0}, 16))
    assert changed.ret_type == relay.TensorType((16, 4))
    with pytest.raises(tvm.error.TVMError, match="requires the parameters"):
        run(func, transform.ChangeBatch({relay.var("z"): 0}))


def test_layers_are_recast_but_for_those_skipped() -> None:
    x = relay.var("x", shape=(1, 4, 8, 8))
    c1 = relay.nn.conv2d(x, relay.const(data(4, 4, 3, 3)), padding=(1, 1))
    c2 = relay.nn.conv2d(c1, relay.const(data(4, 4, 3, 3)), padding=(1, 1))
    func = relay.Function([x], c2)
    all_of_them = relay.testing.run_infer_type(transform.recast(func, "int8", "int32"))
    assert relay.testing.count_ops(all_of_them)["cast"] == 6
    one = relay.testing.run_infer_type(transform.recast(func, "int8", "int32", skip_layers=[-1]))
    assert relay.testing.count_ops(one)["cast"] == 3
    assert one.body.attrs.out_dtype == ""
    assert one.ret_type.dtype == "float32"


def test_layout_conversion_skips_layers() -> None:
    x = relay.var("x", shape=(1, 4, 8, 8))
    body = x
    for _ in range(2):
        body = relay.nn.conv2d(body, relay.const(data(4, 4, 3, 3)), padding=(1, 1))
    with transform.LayoutConfig(skip_layers=[0]):
        func = run(
            relay.Function([x], body), transform.ConvertLayout({"nn.conv2d": ["NHWC", "default"]})
        )
    layouts = [
        n.attrs.data_layout
        for n in relay.analysis.post_order(func)
        if isinstance(n, relay.Call) and n.op.name == "nn.conv2d"
    ]
    assert layouts == ["NCHW", "NHWC"]


def test_parallel_layers_of_all_kinds_are_joined() -> None:
    x = relay.var("x", shape=(2, 8))
    body = relay.Tuple([relay.nn.dense(x, relay.const(data(4, 8))) for _ in range(3)])
    with tvm.transform.PassContext(opt_level=4):
        func = run(relay.Function([x], body), transform.BatchingOps())
    assert relay.testing.count_ops(func)["nn.batch_matmul"] == 1


def test_values_shared_by_blocks_are_bound_around_them() -> None:
    x, c = relay.var("x", shape=(2,)), relay.var("c", "bool")
    shared = relay.exp(x)
    func = relay.Function([x, c], relay.If(c, shared + x, relay.log(shared)))
    assert not relay.analysis.check_basic_block_normal_form(func)
    new = run(func, transform.ToBasicBlockNormalForm())
    assert relay.analysis.check_basic_block_normal_form(new)
    assert isinstance(new.body, relay.Let)
    assert isinstance(new.body.body, relay.If)
    plain = relay.Function([x, c], relay.If(c, relay.exp(x) + x, x))
    assert_unchanged(plain, transform.ToBasicBlockNormalForm())


def test_values_are_bound_after_the_lets_that_they_use() -> None:
    x, c, y = relay.var("x", shape=(2,)), relay.var("c", "bool"), relay.var("y")
    z = relay.var("z", shape=(2,))
    shared = relay.exp(y)
    inner = relay.Function([z], z + shared)
    body = relay.Let(y, x + x, relay.If(c, relay.Call(inner, [shared]), relay.log(shared)))
    new = run(relay.Function([x, c], body), transform.ToBasicBlockNormalForm())
    assert relay.analysis.check_basic_block_normal_form(new)
    value = np.array([1, 2], "float32")
    found = evaluate(new, value, np.array(True))
    np.testing.assert_allclose(found, 2 * np.exp(2 * value), rtol=1e-5)


def test_lets_of_operands_are_bound_in_the_block_around() -> None:
    x, c = relay.var("x", shape=(2,)), relay.var("c", "bool")
    y = relay.var("y", relay.TensorType((2,)))
    shared = relay.tanh(y)
    chosen = relay.Let(y, relay.exp(x), relay.If(c, -shared, relay.abs(shared)))
    body = relay.add(relay.add(chosen, x), chosen)
    new = run(relay.Function([x, c], body), transform.ToBasicBlockNormalForm())
    assert relay.analysis.check_basic_block_normal_form(new)
    assert relay.analysis.well_formed(new)
    value = np.array([1, 2], "float32")
    found = evaluate(new, value, np.array(True))
    np.testing.assert_allclose(found, value - 2 * np.tanh(np.exp(value)), atol=1e-5)


def test_the_end_of_a_block_may_be_used_in_it_too() -> None:
    x, c = relay.var("x", shape=(2,)), relay.var("c", "bool")
    y, w = relay.var("y", relay.TensorType((2,))), relay.var("w", relay.TensorType((2,)))
    shared = relay.tanh(y)
    end = relay.Let(y, relay.exp(x), relay.If(c, -shared, relay.abs(shared)))
    new = run(
        relay.Function([x, c], relay.Let(w, end + x, end)), transform.ToBasicBlockNormalForm()
    )
    assert relay.analysis.well_formed(new)
    assert new.astext().count("exp(") == 1


def test_effects_before_a_let_of_an_operand_stay_before_it() -> None:
    x, c = relay.var("x", shape=()), relay.var("c", "bool")
    cell, done = relay.var("r"), relay.var("u")
    shared = relay.exp(x)
    written = relay.Let(done, relay.RefWrite(cell, relay.If(c, shared, x + shared)), x)
    body = relay.Let(cell, relay.RefCreate(x), relay.subtract(relay.RefRead(cell), written))
    new = run(relay.Function([x, c], body), transform.ToBasicBlockNormalForm())
    assert evaluate(new, np.array(2.0, "float32"), np.array(True)) == 0


def test_spans_are_positions_in_the_text() -> None:
    x = relay.var("x", shape=(2,))
    mod = transform.AnnotateSpans()(typed(relay.Function([x], relay.exp(x))))
    span = mod["main"].body.span
    assert span.source_name.name == "GeneratedSource"
    assert mod.astext().split("\n")[span.line - 1][span.column - 1 :].startswith("exp")


def test_spans_hold_numbers_and_dominators() -> None:
    x = relay.var("x", shape=(2,))
    a = relay.exp(x)
    func = relay.Function([x], relay.log(a) + relay.tanh(a))
    body = transform.CapturePostDfsIndexInSpans()(typed(func))["main"].body
    log, tanh = body.args
    index, dominator = (int(v) for v in body.args[0].args[0].span.source_name.name.split(":")[1:])
    assert body.span.source_name.name.split(":")[1] == str(dominator)
    assert index < dominator
    assert log.span.source_name.name != tanh.span.source_name.name


def test_passes_are_traced_in_the_older_spelling() -> None:
    seen = []
    with transform.build_config(
        opt_level=3, trace=lambda mod, info, before: seen.append((info.name, before))
    ):
        transform.FoldConstant()(typed(relay.Function([], relay.const(1) + relay.const(2))))
    assert ("FoldConstant", True) in seen
    assert ("FoldConstant", False) in seen


def test_calls_of_one_name_get_numbers() -> None:
    span = tvm.ir.Span(tvm.ir.SourceName("conv"), 0, 0, 0, 0)
    x = relay.var("x", shape=(2,))
    inner = relay.Call(tvm.ir.Op.get("exp"), [x], span=span)
    func = relay.Function([x], relay.Call(tvm.ir.Op.get("tanh"), [inner], span=span))
    body = transform.suffixes.tag_suffixes(typed(func))["main"].body
    assert body.span.source_name.name == "conv_PART_0"
    assert body.args[0].span.source_name.name == "conv_PART_1"


def test_convolutions_with_sparse_constants() -> None:
    x = relay.var("x", shape=(1, 4, 5, 5))
    weight = zeroed(data(8, 4, 3, 3))
    func = relay.Function(
        [x], relay.nn.conv2d(x, relay.const(weight), kernel_size=(3, 3), padding=(1, 1))
    )
    sparse = run(func, transform.Conv2dToSparse2("NCHW", 3, (2, 1), 0.3))
    assert sparse.body.op.name == "nn.sparse_conv2d"
    value = data(1, 4, 5, 5)
    np.testing.assert_allclose(evaluate(sparse, value), evaluate(func, value), rtol=1e-4, atol=1e-5)
    assert_unchanged(func, transform.Conv2dToSparse2("NCHW", 3, (2, 1), 0.9))


def test_passes_go_through_deep_chains() -> None:
    x = relay.var("x", shape=(2,))
    body = x
    for _ in range(50_000):
        body = relay.negative(body)
    mod = typed(relay.Function([x], body))
    for item in (
        transform.EtaExpand(True, True),
        transform.ToBasicBlockNormalForm(),
        transform.CanonicalizeCast(),
        transform.DeadCodeElimination(),
        transform.FirstOrderGradient(),
        transform.PartialEvaluate(),
    ):
        assert item(mod)["main"].checked_type is not None
