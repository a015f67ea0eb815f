"""What the names of dimensions tell, and formulas of them."""

from __future__ import annotations

import onnx
import pytest
from onnx import TensorProto, helper

from tvm import relay

F32 = TensorProto.FLOAT


def test_given_shapes_tell_dimensions_of_the_same_names() -> None:
    dims = {"ids": ["batch", "new"], "past": ["batch", "past"], "mask": ["batch", "past + new"]}
    graph = helper.make_graph(
        [
            helper.make_node("Concat", ["past", "ids"], ["keys"], axis=1),
            helper.make_node("Mul", ["keys", "mask"], ["y"]),
        ],
        "test",
        [helper.make_tensor_value_info(name, F32, shape) for name, shape in dims.items()],
        [onnx.ValueInfoProto(name="y")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)
    given = {"ids": (2, 1), "past": (2, 6)}
    main = relay.frontend.from_onnx(model, given)[0]["main"]
    shapes = [[int(d) for d in p.checked_type.shape] for p in main.params]
    assert shapes == [[2, 1], [2, 6], [2, 7]]
    # a formula is as open as its names
    mask = relay.frontend.from_onnx(model, {"ids": (2, 1)})[0]["main"].params[2]
    assert int(mask.checked_type.shape[0]) == 2
    assert isinstance(mask.checked_type.shape[1], relay.Any)


@pytest.mark.parametrize("terms", [2, 20000])
def test_dimensions_may_have_any_name(terms: int) -> None:
    name = "+".join(["n"] * terms)
    model = helper.make_model(
        helper.make_graph(
            [helper.make_node("Relu", ["x"], ["y"])],
            "g",
            [helper.make_tensor_value_info("x", F32, [name, "n"])],
            [helper.make_tensor_value_info("y", F32, None)],
        )
    )
    x = relay.frontend.from_onnx(model)[0]["main"].params[0]
    assert all(isinstance(extent, relay.Any) for extent in x.checked_type.shape)
