"""Operators behind a convolution follow it into its new layout."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tvm
from tvm import relay
from tvm.relay.testing.temp_op_attr import TempOpAttr
from tvm.relay.transform import AlterOpLayout, ConvertLayout

from .common import run, typed

RNG = np.random.default_rng(0)
LAST = ConvertLayout({"nn.conv2d": ["NHWC", "HWIO"]})
Behind = Callable[[relay.Expr], relay.Expr]


def conv(x: relay.Expr) -> relay.Expr:
    weight = relay.const(RNG.uniform(-1, 1, (8, 4, 1, 1)).astype("float32"))
    return relay.nn.conv2d(x, weight, channels=8, kernel_size=(1, 1))


def network(behind: Behind) -> relay.Function:
    x = relay.var("x", shape=(1, 4, 3, 5))
    return relay.Function([x], behind(conv(x)))


def same_values(before: relay.Function, after: relay.Function) -> None:
    value = RNG.uniform(-1, 1, (1, 4, 3, 5)).astype("float32")
    evaluate = relay.create_executor("graph", target="llvm").evaluate
    found, wanted = [evaluate(func)(value) for func in (after, before)]
    for a, b in zip(*[x if isinstance(x, list) else [x] for x in (found, wanted)], strict=True):
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-5, atol=1e-5)


def last(after: relay.Function) -> tuple[str, Any]:
    """The operator before the transform at the end, and its attributes."""
    body = after.body
    while body.op.name == "layout_transform":
        body = body.args[0]
    return body.op.name, body.attrs


def vectors() -> list[relay.Constant]:
    return [relay.const(RNG.uniform(1, 2, 8).astype("float32")) for _ in range(2)]


@pytest.mark.parametrize(
    ("behind", "name", "wanted"),
    [
        (lambda x: relay.sum(x, axis=(2, 3)), "sum", {"axis": (1, 2)}),
        (lambda x: relay.max(x, axis=1, exclude=True), "max", {"axis": (3,)}),
        (lambda x: relay.argmax(x, axis=(2, 3)), "argmax", {"axis": (1, 2)}),
        (lambda x: relay.squeeze(relay.max(x, 2, True), axis=[2]), "squeeze", {"axis": (1,)}),
        (lambda x: relay.strided_slice(x, (2,), (6,), axes=(1,)), "strided_slice", {"axes": (3,)}),
        (
            lambda x: relay.strided_slice(x, (0, 1), (1, -1, 2), strides=(1, 2)),
            "strided_slice",
            {"begin": (0, 0, 0, 1), "end": (1, 2, 5, -1), "strides": (1, 1, 1, 2)},
        ),
        (lambda x: relay.transpose(x, (0, 2, -1, 1)), "transpose", {"axes": (0, 1, 2, 3)}),
        (lambda x: relay.nn.layer_norm(x, *vectors(), axis=1), "nn.layer_norm", {"axis": 3}),
        (lambda x: relay.nn.l2_normalize(x, 1e-3, axis=[3, 1]), "nn.l2_normalize", {"axis": (2, 3)}),
        (lambda x: relay.nn.softmax(x, axis=2), "nn.softmax", {"axis": 1}),
        (lambda x: relay.slice_like(x, relay.nn.relu(x), axes=(2,)), "slice_like", {"axes": (1,)}),
        (
            lambda x: relay.nn.pad(x, ((0, 0), (1, 0), (2, 2), (0, 3))),
            "nn.pad",
            {"pad_width": ((0, 0), (2, 2), (0, 3), (1, 0))},
        ),
        (lambda x: relay.split(x, (2,), axis=1)[1], "split", {"axis": 3}),
        (lambda x: relay.topk(x, k=2, axis=1)[0], "topk", {"axis": 3}),
    ],
)  # fmt: skip
def test_axes_move_with_the_layout(behind: Behind, name: str, wanted: dict[str, object]) -> None:
    before = network(behind)
    after = run(before, LAST)
    body = after.body
    while isinstance(body, relay.TupleGetItem) or body.op.name == "layout_transform":
        body = body.tuple_value if isinstance(body, relay.TupleGetItem) else body.args[0]
    assert body.op.name == name
    assert {key: body.attrs[key] for key in wanted} == wanted
    same_values(before, after)


@pytest.mark.parametrize(
    "behind",
    [
        # positions count along the axes in their order
        lambda x: relay.argmax(x, axis=(1, 2)),
        relay.nn.batch_flatten,
        lambda x: relay.expand_dims(x, axis=2),
        lambda x: relay.slice_like(x, relay.const(np.zeros((1, 8, 2, 2), "float32")), axes=(2, 3)),
    ],
)
def test_others_get_the_layout_they_had(behind: Behind) -> None:
    before = network(behind)
    after = run(before, LAST)
    assert after.body.op.name != "layout_transform"
    assert after.body.args[0].attrs.dst_layout == "NCHW"
    same_values(before, after)


def test_every_result_of_a_split_moves_back_by_itself() -> None:
    before = network(lambda x: relay.split(x, 2, axis=1).astuple())
    after = run(before, LAST)
    assert [field.attrs.src_layout for field in after.body.fields] == ["NHWC", "NHWC"]
    same_values(before, after)


def blocked(name: str, kernel: str) -> Callable[..., relay.Expr]:
    def alter(attrs: Any, inputs: Any, tinfos: Any, out_type: Any) -> relay.Expr:
        changed = {**attrs, "data_layout": name, "kernel_layout": kernel}
        return relay.nn.contrib_conv2d_nchwc(*inputs, **changed)

    return alter


def altered(func: relay.Function) -> relay.Function:
    with TempOpAttr("nn.conv2d", "FTVMAlterOpLayout", blocked("NCHW4c", "OIHW4i4o")):
        return run(func, AlterOpLayout())


def test_a_sum_over_blocked_channels_leaves_blocks_of_one() -> None:
    before = network(lambda x: relay.sum(x, axis=1, keepdims=True))
    after = altered(before)
    assert after.body.attrs.src_layout == "NCHW1c"
    assert after.body.args[0].attrs.axis == (1, 4)
    same_values(before, after)


def test_an_operand_without_channels_is_in_blocks_of_one() -> None:
    plane = relay.const(RNG.uniform(-1, 1, (1, 3, 5)).astype("float32"))
    before = network(lambda x: x + plane)
    after = altered(before)
    operand = after.body.args[0].args[1]
    assert (operand.attrs.src_layout, operand.attrs.dst_layout) == ("NCHW", "NCHW1c")
    assert operand.args[0].op.name == "expand_dims"
    same_values(before, after)


def test_padding_that_parts_blocks_stays_plain() -> None:
    name, attrs = last(
        altered(network(lambda x: relay.nn.pad(x, ((0, 0), (0, 0), (1, 1), (0, 0)))))
    )
    assert name == "nn.pad"
    assert attrs.pad_width == ((0, 0), (0, 0), (1, 1), (0, 0), (0, 0))
    after = altered(network(lambda x: relay.nn.pad(x, ((0, 0), (1, 1), (0, 0), (0, 0)))))
    assert after.body.op.name == "nn.pad"


def test_blocks_of_another_size_are_made_of_blocks() -> None:
    x, w = relay.var("x", shape=(1, 2, 3, 3, 4)), relay.var("w", shape=(1, 2, 1, 1, 4, 4))
    bias = relay.var("b", shape=(1, 1, 1, 1, 4))
    y = relay.nn.conv2d(
        x, w, channels=4, kernel_size=(1, 1), data_layout="NCHW4c", kernel_layout="OIHW4i4o"
    )
    func = relay.Function([x, w, bias], y + bias)

    def alter(attrs: Any, inputs: Any, tinfos: Any, out_type: Any) -> relay.Expr:
        changed = {**attrs, "data_layout": "NCHW2c", "kernel_layout": "OIHW2i2o"}
        return relay.nn.conv2d(*inputs, **changed)

    with TempOpAttr("nn.conv2d", "FTVMAlterOpLayout", alter):
        after = run(func, AlterOpLayout())
    assert (after.body.attrs.src_layout, after.body.attrs.dst_layout) == ("NCHW2c", "NCHW4c")
    assert [arg.op.name for arg in after.body.args[0].args] == ["nn.conv2d", "layout_transform"]
    assert after.ret_type == typed(func)["main"].ret_type


def test_pools_take_the_layout_asked_for_and_keep_it() -> None:
    both = ConvertLayout({"nn.conv2d": ["NHWC", "HWIO"], "nn.max_pool2d": ["NCHW"]})
    before = network(lambda x: relay.nn.max_pool2d(x, (2, 2)))
    after = run(before, both)
    assert after.body.op.name == "nn.max_pool2d"
    assert after.body.attrs.out_layout == "NCHW"
    assert after.body.args[0].attrs.src_layout == "NHWC"
    same_values(before, after)


def test_kernels_of_transposed_convolutions_have_their_inputs_first() -> None:
    x, w = relay.var("x", shape=(1, 6, 6, 4)), relay.var("w", shape=(3, 3, 8, 4))
    func = relay.Function(
        [x, w],
        relay.nn.conv2d_transpose(
            x, w, channels=8, kernel_size=(3, 3), data_layout="NHWC", kernel_layout="HWOI"
        ),
    )
    after = run(func, ConvertLayout({"nn.conv2d_transpose": ["NCHW", "default"]}))
    assert after.body.args[0].attrs.kernel_layout == "IOHW"
    mod = tvm.IRModule.from_expr(after)
    assert relay.analysis.list_op_freqs(mod)["layout_transform"] == 3
