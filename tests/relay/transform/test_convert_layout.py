"""Layouts on demand."""

from __future__ import annotations

import numpy as np
import pytest

import tvm
from tvm import relay
from tvm.relay import testing, transform
from tvm.relay.transform import ConvertLayout
from tvm.relay.traverse import post_order

from .common import assert_transforms, assert_unchanged, run

NHWC = ConvertLayout({"nn.conv2d": ["NHWC", "default"]})


def conv(x: relay.Expr, w: relay.Expr, **layouts: str) -> relay.Expr:
    return relay.nn.conv2d(x, w, padding=(1, 1), channels=8, kernel_size=(3, 3), **layouts)


def vars_() -> list[relay.Var]:
    return [relay.var("x", shape=(1, 4, 6, 6)), relay.var("w", shape=(8, 4, 3, 3))]


def moved(e: relay.Expr, source: str = "NCHW", target: str = "NHWC") -> relay.Expr:
    return relay.layout_transform(e, source, target)


def moved_conv(x: relay.Expr, w: relay.Expr) -> relay.Expr:
    return conv(moved(x), moved(w, "OIHW", "HWIO"), data_layout="NHWC", kernel_layout="HWIO")


def test_conv_and_activation() -> None:
    x, w = vars_()
    before = relay.Function([x, w], relay.nn.relu(conv(x, w)))
    x, w = vars_()
    after = relay.Function([x, w], moved(relay.nn.relu(moved_conv(x, w)), "NHWC", "NCHW"))
    assert_transforms(before, after, NHWC)


def test_bias_of_lower_rank_and_residual() -> None:
    x, w = vars_()
    b = relay.var("b", shape=(8, 1, 1))
    y = conv(x, w)
    before = relay.Function([x, w, b], relay.exp(y + b) * y)
    x, w = vars_()
    b = relay.var("b", shape=(8, 1, 1))
    y = moved_conv(x, w)
    z = relay.exp(y + moved(relay.expand_dims(b, 0))) * y
    assert_transforms(before, relay.Function([x, w, b], moved(z, "NHWC", "NCHW")), NHWC)


def test_what_a_closure_shares_with_its_surroundings_stays_one() -> None:
    x, w = vars_()
    y = relay.var("y", shape=(1, 8, 6, 6))
    shared = relay.Let(y, conv(x, w), relay.nn.relu(y))
    closure = relay.Function([relay.var("i", "int32")], relay.nn.relu(shared))
    called = relay.Let(f := relay.var("f"), closure, f(relay.const(1)))
    nodes = post_order(run(relay.Function([x, w], relay.Tuple([shared, called])), NHWC))
    assert len([n for n in nodes if isinstance(n, relay.Let)]) == 2
    convs = [n for n in nodes if isinstance(n, relay.Call) and n.op == tvm.ir.Op.get("nn.conv2d")]
    assert [str(call.attrs.data_layout) for call in convs] == ["NHWC"]


def test_dense_and_finished_layouts_are_untouched() -> None:
    x, w = relay.var("x", shape=(2, 3)), relay.var("w", shape=(4, 3))
    assert_unchanged(relay.Function([x, w], relay.nn.dense(x, w)), NHWC)
    x, w = relay.var("x", shape=(1, 6, 6, 4)), relay.var("w", shape=(3, 3, 4, 8))
    func = relay.Function([x, w], conv(x, w, data_layout="NHWC", kernel_layout="HWIO"))
    assert_unchanged(func, NHWC)


def test_kernel_layout_as_given() -> None:
    x, w = vars_()
    after = run(relay.Function([x, w], conv(x, w)), ConvertLayout({"nn.conv2d": ["NHWC", "OHWI"]}))
    assert 'kernel_layout="OHWI"' in str(after)


def test_bad_layouts_are_rejected() -> None:
    with pytest.raises(tvm.TVMError, match="knows no operator 'nn.conv'"):
        ConvertLayout({"nn.conv": ["NHWC", "default"]})
    with pytest.raises(tvm.TVMError, match="requires a list of layouts"):
        ConvertLayout({"nn.conv2d": "NHWC"})
    x, w = vars_()
    with pytest.raises(tvm.TVMError, match="requires layouts of the axes of NCHW"):
        run(relay.Function([x, w], conv(x, w)), ConvertLayout({"nn.conv2d": ["NDHWC", "default"]}))


@pytest.mark.parametrize("network", ["resnet", "mobilenet"])
def test_networks_have_transforms_at_their_ends_only(network: str) -> None:
    if network == "resnet":
        mod, params = testing.resnet.get_workload(
            image_shape=(3, 28, 28), num_classes=10, num_layers=20
        )
    else:
        mod, params = testing.mobilenet.get_workload(image_shape=(3, 32, 32), num_classes=10)
    mod["main"] = relay.bind_params_by_name(mod["main"], params)
    after = NHWC(relay.transform.InferType()(mod))
    text = str(after)
    assert 'data_layout="NHWC"' in text
    transforms = [line for line in text.splitlines() if "layout_transform(" in line]
    values = [line for line in transforms if 'src_layout="OI' not in line]
    assert len(values) <= 2
    data = np.random.default_rng(0).random(
        mod["main"].params[0].checked_type.concrete_shape, "float32"
    )
    want = relay.create_executor("graph", mod).evaluate()(data).numpy()
    got = relay.create_executor("graph", after).evaluate()(data).numpy()
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)


def test_there_and_back() -> None:
    x, w = vars_()
    func = relay.Function([x, w], relay.nn.relu(conv(x, w)))
    there = run(func, NHWC)
    back = ConvertLayout({"nn.conv2d": ["NCHW", "OIHW"]})
    assert 'data_layout="NHWC"' not in str(run(there, back))


def _two_convolutions() -> relay.Function:
    x = relay.var("x", shape=(1, 8, 6, 6))
    weights = [
        relay.var(f"w{i}", shape=shape) for i, shape in enumerate([(16, 8, 3, 3), (6, 16, 1, 1)])
    ]
    body = relay.nn.relu(relay.nn.conv2d(x, weights[0], kernel_size=(3, 3), padding=(1, 1)))
    body = relay.nn.conv2d(relay.nn.max_pool2d(relay.add(body, body), (2, 2)), weights[1])
    return relay.Function([x, *weights], body)


@pytest.mark.parametrize(
    "layouts",
    [["NCHW4c", "OIHW4o"], ["NCHW4c", "OIHW4i4o"], ["NHWC8c", "HWIO8o"], ["NCHW", "OIHW2i"]],
)
def test_layouts_with_blocks(layouts: list[str]) -> None:
    func = _two_convolutions()
    mod = transform.InferType()(tvm.IRModule.from_expr(func))
    found = transform.ConvertLayout({"nn.conv2d": layouts})(mod)
    first, second = [
        n for n in relay.analysis.post_order(found["main"])
        if isinstance(n, relay.Call) and "conv2d" in n.op.name
    ]  # fmt: skip
    assert [first.attrs.data_layout, first.attrs.kernel_layout] == layouts
    is_blocked = layouts[0].startswith("NCHW4")
    assert first.op.name == ("nn.contrib_conv2d_NCHWc" if is_blocked else "nn.conv2d")
    # 6 channels are no multiple of the block
    assert second.attrs.data_layout == (
        "NCHW" if "4" in layouts[0] or "8" in layouts[0] else layouts[0]
    )
    rng = np.random.default_rng(0)
    values = [rng.random([int(d) for d in p.type_annotation.shape], "float32") for p in func.params]
    run = relay.create_executor("graph", target="llvm").evaluate
    expected = run(func)(*values).numpy()
    np.testing.assert_allclose(run(found["main"])(*values).numpy(), expected, rtol=1e-5)


def test_a_kernel_layout_goes_with_blocks() -> None:
    mod = transform.InferType()(tvm.IRModule.from_expr(_two_convolutions()))
    with pytest.raises(tvm.TVMError, match="requires a layout of the kernel beside NCHW4c"):
        transform.ConvertLayout({"nn.conv2d": ["NCHW4c", "default"]})(mod)
    with pytest.raises(tvm.TVMError, match="requires a layout of the axes of NCHW, got NCDHW4c"):
        transform.ConvertLayout({"nn.conv2d": ["NCDHW4c", "OIHW4o"]})(mod)


def test_a_result_has_a_layout_of_its_own() -> None:
    x, w = np.ones((1, 4, 5, 6), "float32"), np.ones((8, 4, 2, 2), "float32")
    data, weight = relay.var("x", shape=x.shape), relay.var("w", shape=w.shape)
    run = relay.create_executor("graph", target="llvm").evaluate
    for out_layout, shape in (("NHWC", (1, 4, 5, 8)), ("NCHW4c", (1, 2, 4, 5, 4))):
        body = relay.nn.conv2d(data, weight, out_layout=out_layout)
        found = run(relay.Function([data, weight], body))(x, w).numpy()
        assert found.shape == shape and (found == 16).all()
