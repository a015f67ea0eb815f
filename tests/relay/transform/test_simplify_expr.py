from __future__ import annotations

import numpy as np
import pytest

import tvm
from tvm import relay
from tvm.relay.transform import SimplifyExpr

from .common import assert_unchanged, run


def test_dense_layer_flattened_to_a_vector_stays() -> None:
    x, w = relay.var("x", shape=(1, 2, 3)), relay.var("w", shape=(4, 3))
    layer = relay.nn.dense(relay.reshape(x, (2, 3)), w)
    assert_unchanged(relay.Function([x, w], relay.reshape(layer, (8,))), SimplifyExpr())


def same_values(before: relay.Function, after: relay.Function) -> None:
    rng = np.random.default_rng(0)
    shapes = [param.type_annotation.concrete_shape for param in before.params]
    args = [rng.uniform(-1, 1, shape).astype("float32") for shape in shapes]
    with tvm.transform.PassContext(opt_level=0):
        wanted, found = [
            relay.create_executor("graph", target="llvm").evaluate(func)(*args).numpy()
            for func in (before, after)
        ]
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)


def test_places_of_a_window_that_see_borders_only_go() -> None:
    x, w = relay.var("x", shape=(1, 4, 6, 9)), relay.var("w", shape=(3, 4, 3, 3))
    wide = relay.nn.conv2d(x, w, padding=(7, 2, 7, 2), dilation=(7, 2), kernel_size=(3, 3))
    before = relay.Function([x, w], wide)
    after = run(before, SimplifyExpr())
    assert after.body.attrs.kernel_size == (1, 3) and after.body.attrs.padding == (0, 2, 0, 2)
    same_values(before, after)


@pytest.mark.parametrize(
    ("extent", "taps", "border", "stride", "dilation", "left"),
    [
        (1, 3, (1, 1), 1, 1, (1, (0, 0))),
        (1, 5, (2, 2), 2, 1, (1, (0, 0))),
        (4, 3, (9, 0), 2, 4, (1, (1, 0))),  # one side alone
        (2, 3, (3, 5), 1, 3, (2, (3, 2))),  # the last place, too, sees the border only
        (5, 3, (1, 1), 1, 1, (3, (1, 1))),
    ],
)
def test_windows_along_one_axis(
    extent: int, taps: int, border: tuple[int, int], stride: int, dilation: int, left: object
) -> None:
    x, w = relay.var("x", shape=(1, 2, extent)), relay.var("w", shape=(3, 2, taps))
    layer = relay.nn.conv1d(x, w, strides=stride, padding=border, dilation=dilation)
    before = relay.Function([x, w], layer)
    after = run(before, SimplifyExpr())
    found = relay.transform.InferType()(tvm.IRModule.from_expr(after))["main"].body
    kernel = found.args[1].checked_type.concrete_shape[2]
    assert (kernel, tuple(found.attrs.padding)) == left
    same_values(before, after)
