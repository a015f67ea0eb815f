from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from tvm import relay
from tvm.error import OpNotImplemented, TVMError

from .running import assert_close, run

RNG = np.random.default_rng(0)


def f32(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype("float32")


def make_model(
    op: str, inputs: dict[str, np.ndarray], attrs: dict[str, Any], constants: dict[str, Any],
    outputs: int = 1, opset: int = 17, domain: str = "",
) -> onnx.ModelProto:  # fmt: skip
    """A model of one node."""
    names = [f"out{i}" for i in range(outputs)]
    node = helper.make_node(op, [*inputs, *constants], names, name="node", domain=domain, **attrs)
    graph = helper.make_graph(
        [node], "test",
        [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape)
         for n, a in inputs.items()],
        [helper.make_tensor_value_info(n, TensorProto.UNDEFINED, None) for n in names],
        [numpy_helper.from_array(np.asarray(a), n) for n, a in constants.items()],
    )  # fmt: skip
    opsets = [helper.make_opsetid("", opset)]
    if domain:
        opsets.append(helper.make_opsetid(domain, 1))
    return helper.make_model(graph, opset_imports=opsets)


def check(
    op: str, inputs: list[np.ndarray], constants: list[Any] | None = None, outputs: int = 1,
    opset: int = 17, **attrs: Any,
) -> None:  # fmt: skip
    """Compare the compiled model with ONNX's reference evaluator."""
    named = {f"x{i}": a for i, a in enumerate(inputs)}
    given = {f"c{i}": a for i, a in enumerate(constants or [])}
    model = make_model(op, named, attrs, given, outputs, opset)
    expected = ReferenceEvaluator(model).run(None, named)
    mod, params = relay.frontend.from_onnx(model)
    for actual, wanted in zip(run(mod, params, named), expected, strict=True):
        assert_close(actual, wanted)


UNARY = [
    "Abs", "Ceil", "Cos", "Erf", "Exp", "Floor", "Neg", "Relu", "Round", "Sigmoid", "Sign", "Sin",
    "Tanh", "Elu", "Selu", "Celu", "LeakyRelu", "HardSigmoid", "HardSwish", "Softplus", "Softsign",
    "ThresholdedRelu", "Identity", "Reciprocal", "Mish",
]  # fmt: skip


@pytest.mark.parametrize("op", UNARY)
def test_unary(op: str) -> None:
    check(op, [f32(2, 5)], opset=18)


@pytest.mark.parametrize("op", ["Add", "Sub", "Mul", "Div", "Max", "Min", "Sum", "Pow"])
def test_binary_with_broadcasting(op: str) -> None:
    first = np.abs(f32(2, 1, 4)) + 0.5
    check(op, [first, f32(3, 4) + 3])


@pytest.mark.parametrize("op", ["Equal", "Less", "LessOrEqual", "Greater", "GreaterOrEqual"])
def test_comparisons(op: str) -> None:
    check(op, [f32(3, 4).round(), f32(4).round()])


@pytest.mark.parametrize(
    ("inputs", "attrs"),
    [
        ([f32(1, 4, 8, 9), f32(6, 4, 3, 3), f32(6)], {"pads": [1, 1, 1, 1]}),
        ([f32(2, 4, 8, 9), f32(6, 2, 3, 3)], {"group": 2, "strides": [2, 2]}),
        ([f32(1, 4, 8, 9), f32(6, 4, 3, 2)], {"dilations": [2, 1], "pads": [1, 0, 2, 1]}),
        ([f32(1, 4, 8, 9), f32(6, 4, 3, 3)], {"auto_pad": "SAME_UPPER", "strides": [2, 2]}),
        ([f32(1, 3, 9), f32(5, 3, 3)], {"pads": [1, 1]}),
    ],
)
def test_conv(inputs: list[np.ndarray], attrs: dict[str, Any]) -> None:
    weights = [np.asarray(w) for w in inputs[1:]]
    check("Conv", inputs[:1], weights, kernel_shape=list(weights[0].shape[2:]), **attrs)


def test_pooling() -> None:
    check("MaxPool", [f32(1, 3, 9, 10)], kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    check("MaxPool", [f32(1, 3, 9, 10)], kernel_shape=[2, 2], strides=[2, 2], ceil_mode=1)
    check("AveragePool", [f32(1, 3, 9, 10)], kernel_shape=[3, 3], pads=[1, 1, 1, 1])
    check("AveragePool", [f32(1, 3, 9, 10)], kernel_shape=[2, 2], count_include_pad=1)
    check("GlobalAveragePool", [f32(1, 3, 9, 10)])
    check("GlobalMaxPool", [f32(1, 3, 9, 10)])


def test_pooling_over_one_axis() -> None:
    check("MaxPool", [f32(1, 3, 9)], kernel_shape=[3], strides=[2], pads=[1, 1])
    check("AveragePool", [f32(1, 3, 9)], kernel_shape=[2], strides=[2])


@pytest.mark.parametrize(
    ("data", "weight", "attrs"),
    [
        ((1, 4, 5, 6), (4, 3, 3, 3), {"strides": [2, 2], "pads": [1, 0, 1, 1]}),
        ((1, 4, 5, 6), (4, 2, 2, 3), {"strides": [2, 1], "output_padding": [1, 0]}),
        ((1, 4, 5, 6), (4, 3, 3, 3), {"dilations": [2, 2]}),
        ((1, 4, 5, 6), (4, 3, 3, 3), {"strides": [2, 2], "auto_pad": "SAME_UPPER"}),
        ((1, 4, 5), (4, 3, 4), {"strides": [2], "pads": [1, 1]}),
        ((1, 1, 3, 3), (1, 2, 3, 3), {"strides": [3, 2], "output_shape": [10, 8]}),
    ],
)
def test_transposed_convolution(data, weight, attrs) -> None:
    check("ConvTranspose", [f32(*data)], [f32(*weight), f32(weight[1] * attrs.get("group", 1))],
          **attrs)  # fmt: skip


@pytest.mark.parametrize(
    "attrs",
    [
        {
            "mode": "nearest",
            "coordinate_transformation_mode": "asymmetric",
            "nearest_mode": "floor",
        },
        {"mode": "linear"},
        {"mode": "linear", "coordinate_transformation_mode": "align_corners"},
        {"mode": "cubic"},
    ],
    ids=lambda attrs: "-".join(attrs.values()),
)
def test_resize(attrs) -> None:
    none = np.zeros(0, "float32")
    check("Resize", [f32(1, 2, 4, 5)], [none, np.array([1, 1, 2, 3], "float32")], **attrs)
    check("Resize", [f32(1, 2, 4, 5)], [none, none, np.array([1, 2, 3, 7])], **attrs)


@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
def test_resize_by_odd_factors(mode) -> None:
    factors = np.array([1, 1, 1.7, 2.3], "float32")
    check("Resize", [f32(1, 2, 4, 5)], [np.zeros(0, "float32"), factors], mode=mode)


@pytest.mark.parametrize("policy", ["not_larger", "not_smaller"])
def test_resize_keeps_the_aspect_ratio(policy) -> None:
    none = np.zeros(0, "float32")
    check("Resize", [f32(1, 1, 2, 4)], [none, none, np.array([7, 8])], opset=18, axes=[2, 3],
          keep_aspect_ratio_policy=policy)  # fmt: skip


def test_local_response_normalization() -> None:
    check("LRN", [f32(6, 6, 3, 3)], size=5, alpha=0.1, bias=2.0)


def test_matrix_products() -> None:
    check("MatMul", [f32(3, 4), f32(4, 5)])
    check("MatMul", [f32(2, 3, 4), f32(2, 4, 5)])
    check("MatMul", [f32(2, 1, 3, 4), f32(3, 4, 5)])
    check("MatMul", [f32(4), f32(4, 5)])
    check("MatMul", [f32(2, 3, 4), f32(4)])
    check("Einsum", [f32(2, 3, 4), f32(2, 5, 4)], equation="bij,bkj->bik")
    check("Gemm", [f32(3, 4), f32(5, 4)], [f32(5)], transB=1)
    check("Gemm", [f32(4, 3), f32(4, 5)], [f32(3, 5)], transA=1, alpha=0.5, beta=2.0)


@pytest.mark.parametrize("op", ["ReduceMean", "ReduceMax", "ReduceL2", "ReduceLogSumExp"])
@pytest.mark.parametrize("axes", [[1], [0, -1]])
@pytest.mark.parametrize("keepdims", [0, 1])
def test_reductions(op: str, axes: list[int], keepdims: int) -> None:
    check(op, [f32(2, 3, 4)], axes=axes, keepdims=keepdims)


def test_reductions_with_axes_as_input() -> None:
    check("ReduceSum", [f32(2, 3, 4)], [np.array([1])], keepdims=0)
    check("ReduceMean", [f32(2, 3, 4)], [np.array([-1])], opset=18)
    check("ArgMax", [f32(2, 3, 4)], axis=1, keepdims=0)


def test_movement() -> None:
    x = f32(2, 3, 4)
    check("Reshape", [x], [np.array([0, -1])])
    check("Flatten", [x], axis=2)
    check("Transpose", [x], perm=[2, 0, 1])
    check("Squeeze", [f32(2, 1, 4)], [np.array([1])])
    check("Unsqueeze", [x], [np.array([0, -1])])
    check("Concat", [x, f32(2, 1, 4)], axis=1)
    check("Split", [f32(2, 6)], [np.array([2, 4])], outputs=2, axis=1)
    check("Expand", [f32(3, 1)], [np.array([2, 1, 4])])
    check("Tile", [f32(2, 3)], [np.array([2, 1])])
    check("Pad", [f32(2, 3)], [np.array([0, 1, 2, 0]), np.float32(1.5)])
    check("DepthToSpace", [f32(1, 8, 2, 3)], blocksize=2)
    check("SpaceToDepth", [f32(1, 2, 4, 6)], blocksize=2)
    check("Trilu", [f32(4, 4)], upper=0)
    check("Trilu", [f32(0, 4)], upper=1)
    check("CumSum", [f32(3, 4)], [np.array(1)])
    check("CumSum", [f32(3, 4)], [np.array(-1)], exclusive=1, reverse=1)


def test_slices() -> None:
    x = f32(4, 5, 6)
    check("Slice", [x], [np.array([1, 0]), np.array([3, 9]), np.array([0, 2]), np.array([1, 2])])
    check("Slice", [x], [np.array([-1]), np.array([-9]), np.array([1]), np.array([-1])])


def test_indexing() -> None:
    check("Gather", [f32(5, 3)], [np.array([[0, 4], [-1, 2]])], axis=0)
    check("Gather", [f32(5, 3)], [np.array(1)], axis=1)
    check("GatherElements", [f32(3, 3)], [np.array([[0, 1, 2], [2, 0, 0]])], axis=0)
    check("GatherND", [f32(2, 3, 4)], [np.array([[0, 1], [1, 2]])])
    check("OneHot", [np.array([0, 2])], [np.array(4), np.array([0, 1], "float32")], axis=-2)
    check("OneHot", [np.array([0, 2, -1])], [np.array(4), np.array([0.0, 1.0], "float32")])
    check("Where", [f32(3) > 0, f32(2, 3), f32(3)])


def test_scatters() -> None:
    indices = np.array([[1, -1, 0], [2, 0, 1]])
    check("ScatterElements", [f32(3, 3), indices, f32(2, 3)], axis=0)
    check("ScatterElements", [f32(3, 3), indices, f32(2, 3)], axis=0, reduction="add", opset=18)
    model = make_model(
        "ScatterElements", {"x": f32(3, 3), "i": indices, "u": f32(2, 3)},
        {"reduction": "update"}, {}, opset=18,
    )  # fmt: skip
    assert 'reduction="' not in str(relay.frontend.from_onnx(model)[0])  # as without one
    check("ScatterND", [f32(4, 3), np.array([[1], [-1]]), f32(2, 3)])
    check("ScatterND", [f32(4, 3), np.array([[1, 2], [3, 0]]), f32(2)])


def test_normalisation() -> None:
    check("LayerNormalization", [f32(2, 3, 8)], [f32(8), f32(8)])
    check("LayerNormalization", [f32(2, 3, 8)], [f32(3, 8), f32(3, 8)], axis=1)
    check("InstanceNormalization", [f32(2, 3, 5, 5)], [f32(3), f32(3)])
    scale, shift, mean, var = f32(3), f32(3), f32(3), np.abs(f32(3)) + 0.5
    check("BatchNormalization", [f32(2, 3, 5, 5)], [scale, shift, mean, var])
    check("GroupNormalization", [f32(2, 4, 3, 3)], [f32(2), f32(2)], opset=18, num_groups=2)
    check("MeanVarianceNormalization", [f32(2, 4, 3, 3)])
    check("Softmax", [f32(2, 3, 4)], axis=1)
    check("LpNormalization", [np.array([[3, 4], [0, 0]], "float32")], axis=1)
    check("LogSoftmax", [f32(2, 3, 4)], axis=-1)


def test_recurrent() -> None:
    w, r, b = f32(1, 20, 3), f32(1, 20, 5), f32(1, 40)
    check("LSTM", [f32(4, 2, 3)], [w, r, b], outputs=3, hidden_size=5)
    check("GRU", [f32(4, 2, 3)], [f32(1, 15, 3), f32(1, 15, 5), f32(1, 30)], 2, hidden_size=5)
    weights = [f32(2, 5, 3), f32(2, 5, 5), f32(2, 10)]
    check("RNN", [f32(4, 2, 3)], [w[:1] for w in weights], 2, hidden_size=5)


def test_casts_and_clips() -> None:
    check("Cast", [f32(3, 4) * 10], to=TensorProto.INT64)
    check("Cast", [np.array([0, 1, 2])], to=TensorProto.BOOL)
    check("Clip", [f32(3, 4)], [np.float32(2), np.float32(1)])
    check("Clip", [f32(3, 4)], [np.float32(-0.5), np.float32(0.5)])


def test_shapes_are_computed_at_import() -> None:
    nodes = [
        helper.make_node("Shape", ["x"], ["shape"]),
        helper.make_node("Gather", ["shape", "zero"], ["batch"]),
        helper.make_node("Unsqueeze", ["batch", "axis"], ["batch1"]),
        helper.make_node("Concat", ["batch1", "rest"], ["wanted"], axis=0),
        helper.make_node("Reshape", ["x", "wanted"], ["out"]),
    ]
    graph = helper.make_graph(
        nodes, "shapes", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 3, 4])],
        [helper.make_tensor_value_info("out", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(np.array(v), n)
         for n, v in (("zero", 0), ("axis", [0]), ("rest", [-1]))],
    )  # fmt: skip
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    mod, params = relay.frontend.from_onnx(model, shape={"x": (2, 3, 4)})
    x = f32(2, 3, 4)
    assert_close(run(mod, params, {"x": x})[0], x.reshape(2, 12))


def test_weights_can_stay_parameters() -> None:
    model = make_model("MatMul", {"x": f32(2, 3)}, {}, {"w": f32(3, 4)})
    mod, params = relay.frontend.from_onnx(model, freeze_params=False)
    assert set(params) == {"w"} and [p.name_hint for p in mod["main"].params] == ["x", "w"]
    x = f32(2, 3)
    assert_close(run(mod, params, {"x": x})[0], x @ params["w"].numpy())


def test_a_path_is_loaded(tmp_path) -> None:
    path = tmp_path / "model.onnx"
    onnx.save(make_model("Relu", {"x": f32(2, 3)}, {}, {}), path)
    mod, _ = relay.frontend.from_onnx(str(path))
    assert len(mod["main"].params) == 1
    (tmp_path / "broken.onnx").write_bytes(b"nonsense" * 10)
    with pytest.raises(TVMError, match="requires an ONNX file"):
        relay.frontend.from_onnx(str(tmp_path / "broken.onnx"))


def test_all_unsupported_operators_are_listed() -> None:
    nodes = [
        helper.make_node("Decipher", ["x"], ["y"], name="first"),
        helper.make_node("Magic", ["y"], ["out"], name="second", domain="my.domain"),
    ]
    graph = helper.make_graph(
        nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 3])],
        [helper.make_tensor_value_info("out", TensorProto.FLOAT, None)],
    )  # fmt: skip
    with pytest.raises(OpNotImplemented) as info:
        relay.frontend.from_onnx(helper.make_model(graph))
    text = str(info.value)
    for expected in ("Decipher", "my.domain.Magic", "first", "second", "x: float32[2, 3]"):
        assert expected in text


def test_a_shape_for_no_input_is_refused() -> None:
    model = make_model("Relu", {"image": f32(2, 3)}, {}, {})
    with pytest.raises(TVMError, match=r"(?s)'imgae'.*'image'") as found:
        relay.frontend.from_onnx(model, shape={"imgae": (1, 3)})
    assert isinstance(found.value, AssertionError)


def test_a_number_may_come_as_a_vector() -> None:
    model = make_model("Neg", {"x": f32()}, {}, {})
    mod, _ = relay.frontend.from_onnx(model, {"x": (1,)})
    assert tuple(relay.transform.InferType()(mod)["main"].ret_type.shape) == (1,)


def test_batches_are_multiplied_with_transposed_operands_on_demand() -> None:
    model = make_model("MatMul", {"a": f32(2, 3, 4), "b": f32(2, 4, 5)}, {}, {})
    plain, turned = [
        str(relay.frontend.from_onnx(model, convert_config={"use_nt_batch_matmul": flag})[0])
        for flag in (False, True)
    ]
    assert "transpose" not in plain and "transpose_b=True" in turned


def test_element_types_of_inputs_are_given_by_name() -> None:
    graph = helper.make_graph(
        [helper.make_node("Relu", ["x"], ["y"])], "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2])], [onnx.ValueInfoProto(name="y")],
    )  # fmt: skip
    model = helper.make_model(graph)
    mod, _ = relay.frontend.from_onnx(model, dtype={"x": "float16"})
    assert relay.transform.InferType()(mod)["main"].ret_type.dtype == "float16"
    with pytest.raises(TVMError, match="got a dtype for 'z', the model's inputs are"):
        relay.frontend.from_onnx(model, dtype={"z": "float16"})


def test_an_input_of_unknown_rank_needs_its_shape() -> None:
    graph = helper.make_graph(
        [helper.make_node("Relu", ["x"], ["y"])], "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, None)],
        [onnx.ValueInfoProto(name="y")],
    )  # fmt: skip
    model = helper.make_model(graph)
    with pytest.raises(TVMError, match="requires the number of dimensions of the input 'x'"):
        relay.frontend.from_onnx(model)
    mod, _ = relay.frontend.from_onnx(model, {"x": (2, 3)})
    assert tuple(relay.transform.InferType()(mod)["main"].ret_type.shape) == (2, 3)


def test_another_opset_is_that_of_the_attributes_too() -> None:
    graph = helper.make_graph(
        [helper.make_node("Squeeze", ["x"], ["y"], axes=[0])], "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3])],
        [onnx.ValueInfoProto(name="y")],
    )  # fmt: skip
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)])
    mod, _ = relay.frontend.from_onnx(model, opset=11)
    assert tuple(relay.transform.InferType()(mod)["main"].ret_type.shape) == (3,)
