"""Layout functions that users register for operators."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tvm
from tvm import relay
from tvm.relay.testing.temp_op_attr import TempOpAttr
from tvm.relay.transform import AlterOpLayout, ConvertLayout, InferCorrectLayoutOutput
from tvm.target import Target
from tvm.tir import layout

from .common import assert_transforms, run, typed


def image() -> relay.Var:
    return relay.var("x", shape=(1, 64, 56, 56))


def weight() -> relay.Var:
    return relay.var("w", shape=(64, 64, 3, 3))


def conv(x: relay.Expr, w: relay.Expr) -> relay.Expr:
    return relay.nn.conv2d(x, w, channels=64, kernel_size=(3, 3), padding=(1, 1))


def blocked(attrs: Any, inputs: list[relay.Expr], tinfos: Any, out_type: Any) -> relay.Expr:
    data, kernel = inputs
    assert out_type.shape[1] == tinfos[1].shape[0]
    changed = dict(attrs)
    changed["data_layout"] = "NCHW16c"
    changed["kernel_layout"] = "OIHW16i16o"
    return relay.nn.contrib_conv2d_nchwc(data, kernel, **changed)


def altered(func: relay.Function, op: str, function: Any) -> relay.Function:
    with TempOpAttr(op, "FTVMAlterOpLayout", function), Target("llvm"):
        return run(func, AlterOpLayout())


def test_classic_function_replaces_an_operator() -> None:
    def doubled(attrs: Any, inputs: Any, tinfos: Any, out_type: Any) -> relay.Expr:
        return relay.nn.conv2d(inputs[0], inputs[1] * relay.const(2.0), **attrs)

    x, w = image(), weight()
    after = altered(relay.Function([x, w], relay.nn.relu(conv(x, w))), "nn.conv2d", doubled)
    x, w = image(), weight()
    wanted = relay.Function([x, w], relay.nn.relu(conv(x, w * relay.const(2.0))))
    tvm.ir.assert_structural_equal(after, typed(wanted)["main"])


def test_transforms_come_from_the_layouts_that_the_new_call_names() -> None:
    x, w = image(), weight()
    bias = relay.var("bias", shape=(64, 1, 1))
    y = relay.nn.relu(conv(x, w) + bias)
    after = altered(relay.Function([x, w, bias], conv(y, w)), "nn.conv2d", blocked)
    counts = relay.analysis.list_op_freqs(tvm.IRModule.from_expr(after))
    assert counts["nn.contrib_conv2d_NCHWc"] == 2
    data, kernel = after.body.args[0].args
    assert after.body.attrs.src_layout == "NCHW16c"
    assert (kernel.attrs.src_layout, kernel.attrs.dst_layout) == ("OIHW", "OIHW16i16o")
    assert data.op.name == "nn.relu"  # in blocks, without a transform between
    assert after.ret_type == relay.TensorType((1, 64, 56, 56), "float32")


def test_another_order_of_axes_is_undone_behind_the_operator() -> None:
    def channels_last(attrs: Any, inputs: Any, tinfos: Any, out_type: Any) -> relay.Expr:
        if attrs.data_layout != "NCHW":
            return None
        changed = {**attrs, "data_layout": "NHWC", "kernel_layout": "HWIO"}
        return relay.nn.conv2d(*inputs, **changed)

    x, w = image(), weight()
    after = altered(relay.Function([x, w], conv(conv(x, w), w)), "nn.conv2d", channels_last)
    counts = relay.analysis.list_op_freqs(tvm.IRModule.from_expr(after))
    assert counts == {"layout_transform": 3, "nn.conv2d": 2}
    assert after.ret_type == relay.TensorType((1, 64, 56, 56), "float32")


def test_none_leaves_the_operator_alone() -> None:
    x, w = image(), weight()
    func = relay.Function([x, w], conv(x, w))
    mod = typed(func)
    with TempOpAttr("nn.conv2d", "FTVMAlterOpLayout", lambda *_: None), Target("llvm"):
        assert AlterOpLayout()(mod) is mod


def test_altered_program_computes_the_same() -> None:
    x, w = relay.var("x", shape=(1, 16, 8, 8)), relay.var("w", shape=(16, 16, 3, 3))
    y = relay.nn.conv2d(x, w, channels=16, kernel_size=(3, 3), padding=(1, 1))
    func = relay.Function([x, w], relay.nn.max_pool2d(relay.nn.relu(y)))
    rng = np.random.default_rng(0)
    values = [rng.standard_normal(s).astype("float32") for s in ((1, 16, 8, 8), (16, 16, 3, 3))]
    plain = relay.create_executor("graph").evaluate(func)(*values).numpy()
    after = altered(func, "nn.conv2d", blocked)
    again = relay.create_executor("graph").evaluate(after)(*values).numpy()
    np.testing.assert_allclose(plain, again, rtol=1e-4, atol=1e-4)


def test_conversion_asks_the_users_function() -> None:
    seen = []

    def convert(attrs: Any, inputs: Any, tinfos: Any, desired: Any) -> relay.Expr:
        seen.append((list(desired), [t.concrete_shape for t in tinfos]))
        changed = {**attrs, "data_layout": desired[0], "kernel_layout": "OHWI"}
        return relay.nn.conv2d(*inputs, **changed)

    def moved(e: relay.Expr, source: str, target: str) -> relay.Expr:
        return relay.layout_transform(e, source, target)

    x, w = image(), weight()
    before = relay.Function([x, w], relay.nn.relu(conv(x, w)))
    x, w = image(), weight()
    y = relay.nn.conv2d(
        moved(x, "NCHW", "NHWC"), moved(w, "OIHW", "OHWI"), channels=64, kernel_size=(3, 3),
        padding=(1, 1), data_layout="NHWC", kernel_layout="OHWI",
    )  # fmt: skip
    after = relay.Function([x, w], moved(relay.nn.relu(y), "NHWC", "NCHW"))
    with TempOpAttr("nn.conv2d", "FTVMConvertOpLayout", convert):
        assert_transforms(before, after, ConvertLayout({"nn.conv2d": ["NHWC", "default"]}))
    assert seen[0] == (["NHWC", "default"], [(1, 64, 56, 56), (64, 64, 3, 3)])


def test_layouts_spread_through_an_operator_as_its_function_says() -> None:
    asked = []

    def infer(attrs: Any, new_in: Any, old_in: Any, types: Any) -> InferCorrectLayoutOutput:
        asked.append((new_in and [x.name for x in new_in], [x.name for x in old_in]))
        assert types[0].concrete_shape == (1, 64, 56, 56)
        chosen = old_in if new_in is None else new_in
        return InferCorrectLayoutOutput(chosen, chosen, attrs)

    x, w = image(), weight()
    func = relay.Function([x, w], relay.zeros_like(conv(x, w)))
    convert = ConvertLayout({"nn.conv2d": ["NHWC", "default"]})
    with TempOpAttr("zeros_like", "FInferCorrectLayout", infer):
        after = run(func, convert)
    assert after.body.attrs.src_layout == "NHWC"
    assert after.body.args[0].op.name == "zeros_like"
    # as it was, and as it is
    assert asked == [(None, ["NCHW"]), (["NHWC"], ["NCHW"])]

    def plain(attrs: Any, new_in: Any, old_in: Any, types: Any) -> InferCorrectLayoutOutput:
        return InferCorrectLayoutOutput([layout("NCHW")], ["NCHW"], attrs)

    with TempOpAttr("zeros_like", "FInferCorrectLayout", plain):
        after = run(func, convert)
    assert after.body.op.name == "zeros_like"
    assert after.body.args[0].op.name == "layout_transform"


def test_other_results_of_such_a_function_are_rejected() -> None:
    x, w = image(), weight()
    func = relay.Function([x, w], relay.zeros_like(conv(x, w)))
    message = "FInferCorrectLayout of zeros_like requires an InferCorrectLayoutOutput, got list"
    with (
        TempOpAttr("zeros_like", "FInferCorrectLayout", lambda *_: []),
        pytest.raises(tvm.TVMError, match=message),
    ):
        run(func, ConvertLayout({"nn.conv2d": ["NHWC", "default"]}))
