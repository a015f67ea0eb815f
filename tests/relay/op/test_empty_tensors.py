"""Operators over tensors without elements: every level gives the same empty or zero result."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tvm
from tvm import relay

nn = relay.nn


def _case(name: str, build: Callable[..., Any], *shapes: tuple[int, ...], **attrs: Any) -> Any:
    return pytest.param(build, shapes, attrs, id=name)


CASES = [
    _case("no output channels", nn.conv2d, (1, 3, 16, 16), (0, 3, 3, 3), padding=1),
    _case("no input channels", nn.conv2d, (1, 0, 16, 16), (4, 0, 3, 3), padding=1),
    _case("no images", nn.conv2d, (0, 3, 16, 16), (4, 3, 3, 3), padding=1),
    _case("no rows", nn.conv2d, (1, 3, 0, 16), (4, 3, 3, 3), padding=1),
    _case("no volumes' channels", nn.conv3d, (1, 3, 8, 8, 8), (0, 3, 3, 3, 3), padding=1),
    _case("no transposed channels", nn.conv2d_transpose, (1, 3, 8, 8), (3, 0, 3, 3)),
    _case("nothing transposed", nn.conv2d_transpose, (1, 0, 8, 8), (0, 4, 3, 3)),
    _case("no units", nn.dense, (4, 16), (0, 16)),
    _case("no features", nn.dense, (4, 0), (8, 0)),
    _case("no matrices", nn.batch_matmul, (0, 4, 5), (0, 6, 5)),
    _case("no inner extent", nn.batch_matmul, (2, 4, 0), (2, 6, 0)),
    _case("no pooled channels", nn.max_pool2d, (1, 0, 8, 8)),
]


@pytest.mark.parametrize(("build", "shapes", "attrs"), CASES)
def test_operators_take_tensors_without_elements(
    build: Callable[..., Any], shapes: tuple[tuple[int, ...], ...], attrs: dict[str, Any]
) -> None:
    params = [relay.var(f"x{i}", shape=shape) for i, shape in enumerate(shapes)]
    mod = relay.transform.InferType()(
        tvm.IRModule.from_expr(relay.Function(params, build(*params, **attrs)))
    )
    wanted = np.zeros(mod["main"].ret_type.concrete_shape, "float32")
    values = [np.ones(shape, "float32") for shape in shapes]
    for opt_level in (0, 3):
        with tvm.transform.PassContext(opt_level=opt_level):
            found = relay.create_executor("graph", mod=mod).evaluate()(*values)
        np.testing.assert_array_equal(found.numpy(), wanted)


@pytest.mark.parametrize("op", [relay.argmax, relay.argmin])
def test_positions_of_extremes_need_an_element(op: Callable[..., Any]) -> None:
    x = relay.var("x", shape=(3, 0))
    for axis in (1, None):
        with pytest.raises(tvm.TVMError, match="requires an element along its axes"):
            relay.build(tvm.IRModule.from_expr(op(x, axis=axis)), "llvm")
    mod = relay.transform.InferType()(tvm.IRModule.from_expr(op(x, axis=0)))
    assert mod["main"].ret_type.concrete_shape == (0,)


@pytest.mark.parametrize("op", [relay.argmax, relay.argmin])
def test_positions_of_extremes_need_an_element_where_the_run_tells(op: Callable[..., Any]) -> None:
    x = relay.var("x", shape=(3, relay.Any()))
    for axis in (1, None):
        mod = tvm.IRModule.from_expr(relay.Function([x], op(x, axis=axis)))
        run = relay.create_executor("vm", mod).evaluate()
        assert run(np.zeros((3, 1), "float32")).numpy().max() == 0
        with pytest.raises(tvm.TVMError, match="requires an element along its axes, got none"):
            run(np.zeros((3, 0), "float32"))


@pytest.mark.parametrize(("op", "value"), [(relay.max, -np.inf), (relay.min, np.inf)])
def test_extremes_of_nothing_are_the_identity(op: Callable[..., Any], value: float) -> None:
    for extent in (0, relay.Any()):
        mod = tvm.IRModule.from_expr(op(relay.var("x", shape=(3, extent)), axis=1))
        found = relay.create_executor("vm", mod).evaluate()(np.zeros((3, 0), "float32")).numpy()
        np.testing.assert_array_equal(found, np.full(3, value, "float32"))


def test_positions_in_longer_rows_than_int32_counts_are_int64() -> None:
    row = relay.var("row", shape=(1 << 31,), dtype="int8")
    mod = relay.transform.InferType()(tvm.IRModule.from_expr(relay.argmax(row, axis=0)))
    assert mod["main"].ret_type.dtype == "int64"
