"""Floating-point types of few bits that relay holds wider, beside ONNX's reference."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator

from tvm import relay
from tvm.contrib import onnx_backend
from tvm.relay.frontend.onnx.tensors import (
    element_type,
    numpy_type,
    tensor_array,
    tensor_dtype,
)

KINDS = ("FLOAT8E4M3FNUZ", "FLOAT8E5M2FNUZ", "FLOAT4E2M1", "FLOAT8E8M0")


def model_of(nodes: list[onnx.NodeProto], output: int) -> onnx.ModelProto:
    graph = helper.make_graph(
        nodes, "test", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n"])],
        [helper.make_tensor_value_info("y", output, ["n"])],
    )  # fmt: skip
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 24)], ir_version=11)


def numbers() -> np.ndarray:
    """All numbers of float16, infinity and NaN among them."""
    return np.arange(2**16, dtype="uint16").view("float16").astype("float32")


@pytest.mark.parametrize("saturate", [0, 1])
@pytest.mark.parametrize("kind", KINDS)
def test_numbers_become_the_nearest_of_few_bits(kind: str, saturate: int) -> None:
    to = getattr(TensorProto, kind)
    model = model_of([helper.make_node("Cast", ["x"], ["y"], to=to, saturate=saturate)], to)
    (wanted,), (found,) = (
        ReferenceEvaluator(model).run(None, {"x": numbers()}),
        onnx_backend.run_model(model, [numbers()]),
    )
    assert found.dtype == wanted.dtype
    np.testing.assert_array_equal(found.astype("float32"), wanted.astype("float32"))


@pytest.mark.parametrize("rounding", ["up", "down", "nearest"])
def test_powers_of_two_are_rounded_as_the_node_says(rounding: str) -> None:
    to, x = TensorProto.FLOAT8E8M0, np.float32([1e-39, 9e-39, 1.4, 1.5, 1.6, 3e38, np.inf, np.nan])
    model = model_of([helper.make_node("Cast", ["x"], ["y"], to=to, round_mode=rounding)], to)
    (wanted,) = ReferenceEvaluator(model).run(None, {"x": x})
    np.testing.assert_array_equal(
        onnx_backend.run_model(model, [x])[0].astype("float32"), wanted.astype("float32")
    )


def test_values_between_two_casts_have_few_bits() -> None:
    nodes = [
        helper.make_node("Cast", ["x"], ["t"], to=TensorProto.FLOAT4E2M1),
        helper.make_node("CastLike", ["x", "t"], ["u"]),
        helper.make_node("Cast", ["u"], ["y"], to=TensorProto.FLOAT),
    ]
    model = model_of(nodes, TensorProto.FLOAT)
    mod, _ = relay.frontend.from_onnx(model)
    assert relay.transform.InferType()(mod)["main"].ret_type.dtype == "float32"
    x = np.float32([0.3, 2.4, 2.5, -7, 100])
    np.testing.assert_array_equal(onnx_backend.run_model(model, [x])[0], [0.5, 2, 2, -6, 6])


@pytest.mark.parametrize("name", ["bfloat16", "float8_e4m3fn", "float8_e5m2fnuz", "int4", "uint4"])
def test_types_do_not_depend_on_what_the_package_holds_them_as(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Releases of onnx before 1.18 give float32 and int8 for them."""
    kind = np.dtype(getattr(ml_dtypes, name))
    tensor = onnx.numpy_helper.from_array(np.array([0.5, 3]).astype(kind))
    wide = np.array([0.5, 3]).astype(kind).astype("float32")
    monkeypatch.setattr(onnx.numpy_helper, "to_array", lambda *_: wide)
    monkeypatch.setattr(onnx.helper, "tensor_dtype_to_np_dtype", lambda _: np.dtype("float32"))
    assert numpy_type(tensor.data_type) == kind
    assert element_type(tensor_dtype(tensor.data_type)) in (tensor.data_type, TensorProto.FLOAT)
    held = tensor_array(tensor)
    assert held.dtype == (kind if name != "float8_e5m2fnuz" else np.float32)
    np.testing.assert_array_equal(held.astype("float32"), wide)
