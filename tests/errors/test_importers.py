"""Models that the importers reject."""

from __future__ import annotations

import numpy as np
import onnx
import torch
from onnx import TensorProto, helper, numpy_helper

from tvm import relay
from tvm.error import OpAttributeUnImplemented, OpNotImplemented

from .messages import assert_rejected, rejection

CONV = torch.nn.Conv2d(3, 4, 3)
TRACED = torch.jit.trace(torch.nn.Sequential(CONV, torch.nn.ReLU()), torch.randn(1, 3, 6, 6))


def onnx_model(*nodes: onnx.NodeProto, **weights: np.ndarray) -> onnx.ModelProto:
    graph = helper.make_graph(
        list(nodes), "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 3])],
        [helper.make_tensor_value_info("out", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(value, name) for name, value in weights.items()],
    )  # fmt: skip
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)])


def test_onnx_operators_without_converter() -> None:
    model = onnx_model(
        helper.make_node("Decipher", ["x"], ["y"], name="volume"),
        helper.make_node("Decipher", ["y"], ["z"], name="again"),
        helper.make_node("Magic", ["z"], ["out"], name="trick", domain="my.domain"),
    )
    assert_rejected(
        lambda: relay.frontend.from_onnx(model),
        "the ONNX importer requires operators it knows, got 3 nodes of 2 unsupported operators: "
        "Decipher of opset 20, my.domain.Magic of opset 1",
        "Decipher of opset 20 (node volume, inputs x: float32[2, 3])",
        "hint: export with another opset",
        kind=OpNotImplemented,
    )


def test_onnx_node_with_wrong_types_is_named() -> None:
    model = onnx_model(
        helper.make_node("MatMul", ["x", "w"], ["y"], name="product"),
        helper.make_node("Relu", ["y"], ["out"], name="activation"),
        w=np.zeros((4, 5), "float32"),
    )
    assert_rejected(
        lambda: relay.frontend.from_onnx(model),
        "nn.dense requires equal inner dimensions, got (2, 3) and (5, 4)",
        "in ONNX node product (MatMul)",
    )


def test_onnx_shape_of_another_rank() -> None:
    model = onnx_model(helper.make_node("Relu", ["x"], ["out"]))
    assert_rejected(
        lambda: relay.frontend.from_onnx(model, shape={"x": (2,)}),
        "from_onnx requires 2 dimensions for the input 'x', got the shape (2,)",
    )


def test_torch_operators_without_converter() -> None:
    class Factors(torch.nn.Module):
        def forward(self, x):
            return torch.linalg.ldl_factor(x)[0] + torch.special.airy_ai(x)

    script = torch.jit.trace(Factors(), torch.randn(3, 3))
    assert_rejected(
        lambda: relay.frontend.from_pytorch(script, [("x", (3, 3))]),
        "the PyTorch importer requires operators it knows, got 2 nodes of 2 unsupported "
        "operators: aten::linalg_ldl_factor, aten::special_airy_ai",
        "aten::linalg_ldl_factor (node ", "Float[3, 3]", "hint: pass custom_convert_map",
        kind=OpNotImplemented,
    )  # fmt: skip


def test_torch_shape_that_the_model_cannot_take() -> None:
    assert_rejected(
        lambda: relay.frontend.from_pytorch(TRACED, [("x", (1, 5, 6, 6))]),
        "nn.conv2d requires 5 input channels in the weight (data has 5 in 1 group), "
        "got weight (4, 3, 3, 3)",
        "(aten::_convolution)",
        "data: Tensor[(1, 5, 6, 6), float32]",
    )


def test_torch_inputs_of_wrong_count_or_kind() -> None:
    assert_rejected(
        lambda: relay.frontend.from_pytorch(TRACED, []),
        "from_pytorch requires one input_info for each of the inputs ['input.1'], got 0",
    )
    assert_rejected(
        lambda: relay.frontend.from_pytorch(TRACED, [("x", (1, 3, "n", 6))]),
        "the shape of input 'x' requires integers, got 'n'",
        kind=TypeError,
    )
    text = rejection(
        lambda: relay.frontend.from_pytorch(TRACED, [("x", ((1, 3, 6, 6), "float31"))])
    )
    assert "float31" in text


def test_torch_shape_that_depends_on_data() -> None:
    script = torch.jit.trace(torch.tensor_split, (torch.randn(3, 3), torch.tensor([1])))
    assert_rejected(
        lambda: relay.frontend.from_pytorch(script, [("x", (3, 3)), ("at", ((1,), "int64"))]),
        "a shape or axis has to be known at import, 1 of 1 are not",
        "(aten::tensor_split)", "hint: trace the model",
        kind=OpAttributeUnImplemented,
    )  # fmt: skip
