"""ONNX models as modules of relax: what they compute, and how they read."""

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

import tvm
from tvm import relax
from tvm.error import OpNotImplemented
from tvm.relax.frontend.onnx import from_onnx


def model_of(nodes, inputs, weights=None, outputs=("y",), opset=17):
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info(n, TensorProto.FLOAT, shape) for n, shape in inputs.items()],
        [helper.make_tensor_value_info(n, TensorProto.FLOAT, None) for n in outputs],
        [numpy_helper.from_array(np.array(v), n) for n, v in (weights or {}).items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


def run(mod, *inputs):
    mod, params = relax.frontend.detach_params(mod)
    vm = relax.VirtualMachine(relax.build(mod, "llvm"), tvm.cpu())
    result = vm["main"](*[tvm.nd.array(x) for x in inputs], *params.get("main", []))
    return result.numpy() if hasattr(result, "numpy") else [r.numpy() for r in result]


def reference(model, **inputs):
    (result,) = ReferenceEvaluator(model).run(None, inputs)
    return result


def random(*shape):
    return np.random.default_rng(0).normal(size=shape).astype("float32")


def test_computed_shapes_are_symbolic() -> None:
    # y = reshape(x @ w, [shape(x)[0], 2, -1])
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["product"]),
        helper.make_node("Shape", ["product"], ["shape"]),
        helper.make_node("Gather", ["shape", "zero"], ["rows"]),
        helper.make_node("Concat", ["rows", "rest"], ["target"], axis=0),
        helper.make_node("Reshape", ["product", "target"], ["y"]),
    ]
    weights = {"w": random(4, 6), "zero": [0], "rest": [2, -1]}
    model = model_of(nodes, {"x": ["n", 4]}, weights)

    mod = from_onnx(model, keep_params_in_input=True)
    (block,) = mod["main"].body.blocks
    calls = [b.value for b in block.bindings if isinstance(b.value, relax.Call)]
    assert [call.op.name for call in calls] == ["relax.matmul", "relax.reshape"]
    n, *rest = mod["main"].ret_struct_info.shape.values
    assert n.name == "n" and [int(d) for d in rest] == [2, 3]
    for rows in (1, 3):
        x = random(rows, 4)
        np.testing.assert_allclose(run(mod, x), reference(model, x=x), rtol=1e-5, atol=1e-6)


def test_weights_are_constants_or_parameters() -> None:
    model = model_of(
        [helper.make_node("Gemm", ["x", "w", "b"], ["y"], transB=1)],
        {"x": [2, 4]},
        {"w": random(3, 4), "b": random(3)},
    )
    x = random(2, 4)
    assert len(from_onnx(model)["main"].params) == 1
    kept = from_onnx(model, keep_params_in_input=True)["main"]
    assert [p.name_hint for p in kept.params] == ["x", "w", "b"]
    assert kept.attrs["num_input"] == 1
    assert [tuple(p.shape) for p in kept.attrs["params"]] == [(3, 4), (3,)]
    for keep in (False, True):
        result = run(from_onnx(model, keep_params_in_input=keep), x)
        np.testing.assert_allclose(result, reference(model, x=x), rtol=1e-5, atol=1e-6)


def test_names_of_inputs_are_identifiers() -> None:
    model = model_of([helper.make_node("Add", ["0.a", "b:c"], ["y"])], {"0.a": [2], "b:c": [2]})
    assert [p.name_hint for p in from_onnx(model)["main"].params] == ["input_0_a", "b_c"]
    plain = from_onnx(model, sanitize_input_names=False)["main"]
    assert [p.name_hint for p in plain.params] == ["0.a", "b:c"]


def test_given_shapes_count_before_those_of_the_model() -> None:
    model = model_of([helper.make_node("Relu", ["x"], ["y"])], {"x": ["n", "m"]})
    main = from_onnx(model, shape_dict={"x": [tvm.tir.Var("k", "int64"), 3]})["main"]
    k, m = main.ret_struct_info.shape.values
    assert k.name == "k" and int(m) == 3


def test_dimensions_of_one_name_are_one_variable() -> None:
    inputs = {"a": ["batch-size", "past"], "b": ["batch-size", "new"], "m": [1, "past + new"]}
    nodes = [
        helper.make_node("Concat", ["a", "b"], ["c"], axis=1),
        helper.make_node("Mul", ["c", "m"], ["y"]),
    ]
    mod = from_onnx(model_of(nodes, inputs))
    a, b, m = [p.struct_info.shape.values for p in mod["main"].params]
    assert a[0].same_as(b[0]) and a[0].name == "batch_size"
    tvm.ir.assert_structural_equal(m[1], a[1] + b[1])
    calls = [binding.value for binding in mod["main"].body.blocks[0].bindings]
    assert calls[1].op.name == "relax.multiply", "the extents are known to be equal"
    x, y, scale = random(2, 3), random(2, 1), random(1, 4)
    expected = np.concatenate([x, y], axis=1) * scale
    np.testing.assert_allclose(run(mod, x, y, scale), expected, rtol=1e-6)


def test_dimensions_without_a_name_are_variables_of_their_own() -> None:
    nodes = [helper.make_node("Add", ["a", "b"], ["y"])]
    mod = from_onnx(model_of(nodes, {"a": [None], "b": ["p + q"]}))
    (a,), (b,) = [p.struct_info.shape.values for p in mod["main"].params]
    assert isinstance(a, tvm.tir.Var) and isinstance(b, tvm.tir.Var) and not a.same_as(b)
    np.testing.assert_allclose(run(mod, random(3), random(1)), random(3) + random(1))


def test_given_shapes_tell_dimensions_of_the_same_names() -> None:
    inputs = {"a": ["n", 3], "b": ["n", 3], "c": ["2 * n", 3]}
    nodes = [
        helper.make_node("Add", ["a", "b"], ["s"]),
        helper.make_node("Concat", ["s", "c"], ["y"], axis=0),
    ]
    main = from_onnx(model_of(nodes, inputs), {"a": [2, 3]})["main"]
    assert [int(d) for p in main.params for d in p.struct_info.shape.values] == [2, 3, 2, 3, 4, 3]
    k = tvm.tir.Var("k", "int64")
    main = from_onnx(model_of(nodes, inputs), {"a": [k, 3]})["main"]
    assert main.params[1].struct_info.shape.values[0].same_as(k)
    tvm.ir.assert_structural_equal(main.params[2].struct_info.shape.values[0], 2 * k)


@pytest.mark.parametrize(
    ("nodes", "shape", "weights"),
    [
        (
            [
                helper.make_node("Conv", ["x", "w", "b"], ["c"], pads=[1, 1, 1, 1]),
                helper.make_node("Relu", ["c"], ["r"]),
                helper.make_node("GlobalAveragePool", ["r"], ["y"]),
            ],
            (1, 3, 6, 6),
            {"w": random(4, 3, 3, 3), "b": random(4)},
        ),
        ([helper.make_node("NonZero", ["x"], ["y"])], (3, 4), {}),
        ([helper.make_node("Tile", ["x", "reps"], ["y"])], (2, 3), {"reps": [2, 1]}),
        ([helper.make_node("CumSum", ["x", "axis"], ["y"])], (2, 3), {"axis": 1}),
        (
            [
                helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"]),
                helper.make_node("DequantizeLinear", ["q", "s", "z"], ["y"]),
            ],
            (4, 5),
            {"s": np.float32(0.1), "z": np.uint8(128)},
        ),
    ],
    ids=["convolution", "nonzero", "tile", "cumsum", "quantised"],
)
def test_operators_agree_with_the_reference(nodes, shape, weights) -> None:
    model = model_of(nodes, {"x": shape}, weights, opset=19)
    x = random(*shape)
    np.testing.assert_allclose(
        run(from_onnx(model), x), reference(model, x=x), rtol=1e-4, atol=1e-5
    )


def test_control_flow_is_refused() -> None:
    branch = helper.make_graph(
        [helper.make_node("Neg", ["x"], ["b"])],
        "branch",
        [],
        [helper.make_tensor_value_info("b", TensorProto.FLOAT, [2])],
    )
    nodes = [
        helper.make_node("ReduceSum", ["x"], ["s"], keepdims=0),
        helper.make_node("Cast", ["s"], ["c"], to=TensorProto.BOOL),
        helper.make_node("If", ["c"], ["y"], then_branch=branch, else_branch=branch),
    ]
    with pytest.raises(OpNotImplemented, match="If is not translated"):
        from_onnx(model_of(nodes, {"x": [2]}))


def test_expanded_shapes_where_an_extent_may_be_one() -> None:
    # exporters write shapes of Expand as where(shape == 1, own, shape)
    nodes = [
        helper.make_node("Shape", ["x"], ["shape"]),
        helper.make_node("Equal", ["shape", "ones"], ["is_one"]),
        helper.make_node("Where", ["is_one", "ones", "shape"], ["target"]),
        helper.make_node("Expand", ["row", "target"], ["rows"]),
        helper.make_node("Add", ["x", "rows"], ["y"]),
    ]
    weights = {"ones": [1, 1], "row": random(1, 4)}
    model = model_of(nodes, {"x": ["n", 4]}, weights)
    mod = from_onnx(model)
    n, width = mod["main"].ret_struct_info.shape.values
    assert n.name == "n" and int(width) == 4
    for rows in (1, 5):
        x = random(rows, 4)
        np.testing.assert_allclose(run(mod, x), reference(model, x=x), rtol=1e-6)


def test_shapes_that_depend_on_whether_an_extent_is_one() -> None:
    nodes = [
        helper.make_node("Shape", ["x"], ["shape"]),
        helper.make_node("Equal", ["shape", "ones"], ["is_one"]),
        helper.make_node("Where", ["is_one", "threes", "shape"], ["target"]),
        helper.make_node("Expand", ["row", "target"], ["y"]),
    ]
    weights = {"ones": [1, 1], "threes": [3, 3], "row": random(1, 4)}
    model = model_of(nodes, {"x": ["n", 4]}, weights)
    mod = from_onnx(model)
    for rows in (1, 5):
        x = random(rows, 4)
        np.testing.assert_allclose(run(mod, x), reference(model, x=x), rtol=1e-6)
