"""Classical machine learning (ai.onnx.ml) beside ONNX Runtime: trees, linear models, encoders."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import helper
from onnx.reference import ReferenceEvaluator

from tvm.contrib import onnx_backend

RNG = np.random.default_rng(1)
DOMAIN = "ai.onnx.ml"


def f32(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype("float32")


def session_of(model: onnx.ModelProto) -> onnxruntime.InferenceSession:
    return onnxruntime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )


def check(
    op: str, inputs: list[np.ndarray], outputs: int = 1, opset: int = 3, reference: bool = False,
    **attrs: Any,
) -> None:  # fmt: skip
    """Compare one node with ONNX Runtime, or with ONNX's reference."""
    names, results = [f"x{i}" for i in range(len(inputs))], [f"y{i}" for i in range(outputs)]
    node = helper.make_node(op, names, results, domain=DOMAIN, **attrs)
    kinds = [helper.np_dtype_to_tensor_dtype(v.dtype) for v in inputs]
    graph = helper.make_graph(
        [node], "test",
        [helper.make_tensor_value_info(n, k, v.shape)
         for n, k, v in zip(names, kinds, inputs, strict=True)],
        [onnx.ValueInfoProto(name=name) for name in results],
    )  # fmt: skip
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid(DOMAIN, opset)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=10)
    feed = dict(zip(names, inputs, strict=True))
    run = ReferenceEvaluator(model).run if reference else session_of(model).run
    actual = onnx_backend.run_model(model, feed)
    for ours, theirs in zip(actual, run(None, feed), strict=True):
        assert ours.dtype == theirs.dtype
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-5)


def forest(
    kind: str, outputs: list[int], mode: str = "BRANCH_LEQ", positive: bool = False
) -> dict[str, Any]:
    """Attributes of five random trees of up to four levels over six features."""
    nodes: dict[str, list[Any]] = {name: [] for name in (
        "treeids", "nodeids", "featureids", "modes", "values", "truenodeids", "falsenodeids",
        "missing_value_tracks_true",
    )}  # fmt: skip
    leaves: dict[str, list[Any]] = {name: [] for name in ("treeids", "nodeids", "ids", "weights")}

    def grow(tree: int, level: int, count: list[int]) -> int:
        own = count[0]
        count[0] += 1
        at = len(nodes["nodeids"])
        is_leaf = level == 4 or (level and RNG.random() < 0.3)
        row = (tree, own, int(RNG.integers(6)), "LEAF" if is_leaf else mode,
               float(RNG.integers(-3, 4)), 0, 0, int(RNG.integers(2)))  # fmt: skip
        for values, value in zip(nodes.values(), row, strict=True):
            values.append(value)
        if is_leaf:
            for output in outputs:
                weight = float(RNG.random() if positive else RNG.standard_normal())
                for values, value in zip(leaves.values(), (tree, own, output, weight), strict=True):
                    values.append(value)
            return own
        nodes["truenodeids"][at] = grow(tree, level + 1, count)
        nodes["falsenodeids"][at] = grow(tree, level + 1, count)
        return own

    for tree in range(5):
        grow(tree, 0, [0])
    attrs = {f"nodes_{name}": values for name, values in nodes.items()}
    return {**attrs, **{f"{kind}_{name}": values for name, values in leaves.items()}}


@pytest.mark.parametrize("mode", ["BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_EQ"])
def test_regression_trees(mode: str) -> None:
    x = RNG.integers(-3, 4, (20, 6)).astype("float32")
    x[3, :] = np.nan
    attrs = forest("target", [0, 1], mode)
    check("TreeEnsembleRegressor", [x], n_targets=2, base_values=[0.5, -1.0], **attrs)


@pytest.mark.parametrize("aggregate", ["SUM", "AVERAGE", "MIN", "MAX"])
def test_trees_are_aggregated(aggregate: str) -> None:
    attrs = forest("target", [0])
    check("TreeEnsembleRegressor", [f32(20, 6)], n_targets=1, aggregate_function=aggregate, **attrs)


@pytest.mark.parametrize("post", ["NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO"])
def test_trees_classify(post: str) -> None:
    check("TreeEnsembleClassifier", [f32(20, 6)], 2, post_transform=post,
          classlabels_int64s=[3, 5, 9], **forest("class", [0, 1, 2]))  # fmt: skip


@pytest.mark.parametrize("positive", [False, True])
@pytest.mark.parametrize("classes", [[0], [1], [0, 1]])
def test_trees_tell_two_classes_apart(classes: list[int], positive: bool) -> None:
    check("TreeEnsembleClassifier", [f32(40, 6)], 2, classlabels_int64s=[3, 5],
          reference=len(classes) == 2, **forest("class", classes, positive=positive))  # fmt: skip


def test_boosted_trees_give_probabilities() -> None:
    check("TreeEnsembleClassifier", [f32(40, 6)], 2, classlabels_int64s=[0, 1],
          post_transform="LOGISTIC", base_values=[0.3], **forest("class", [0]))  # fmt: skip


def test_linear_models() -> None:
    x, weights = f32(7, 4), f32(12).tolist()
    check("LinearRegressor", [x], coefficients=weights, intercepts=[0.1, 0.2, 0.3], targets=3)
    for post in ("NONE", "SOFTMAX", "LOGISTIC"):
        check("LinearClassifier", [x], 2, coefficients=weights, intercepts=[0.1, 0.2, 0.3],
              classlabels_ints=[4, 2, 7], post_transform=post)  # fmt: skip
    for post in ("NONE", "LOGISTIC"):
        check("LinearClassifier", [x], 2, coefficients=weights[:4], intercepts=[0.1],
              classlabels_ints=[4, 2], post_transform=post)  # fmt: skip


@pytest.mark.parametrize("kernel", ["LINEAR", "RBF", "POLY", "SIGMOID"])
def test_support_vectors_regress(kernel: str) -> None:
    attrs = {"coefficients": f32(5).tolist(), "support_vectors": f32(20).tolist(), "rho": [0.2]}
    check("SVMRegressor", [f32(7, 4)], n_supports=5, kernel_type=kernel,
          kernel_params=[0.2, 1.0, 3.0], **attrs)  # fmt: skip
    check("SVMRegressor", [f32(7, 4)], n_supports=5, kernel_type=kernel, one_class=1,
          kernel_params=[0.2, 1.0, 3.0], **attrs)  # fmt: skip


def test_preprocessing() -> None:
    x = f32(3, 4)
    check("Scaler", [x], offset=[1.0, 2.0, 3.0, 4.0], scale=[0.5, 1.0, 2.0, 3.0])
    check("Scaler", [RNG.integers(0, 9, (3, 4))], offset=[1.0], scale=[0.5])
    for norm in ("MAX", "L1", "L2"):
        check("Normalizer", [x], norm=norm)
    check("Binarizer", [x], threshold=0.3)
    x[1, 2] = np.nan
    check("Imputer", [x], imputed_value_floats=[1.0, 2.0, 3.0, 4.0], replaced_value_float=np.nan)
    check("Imputer", [np.array([[1, 7], [7, 2]])], imputed_value_int64s=[5],
          replaced_value_int64=7)  # fmt: skip
    check("FeatureVectorizer", [f32(3, 2), f32(3, 4)], inputdimensions=[2, 3])
    check("ArrayFeatureExtractor", [f32(3, 4), np.array([[2, 0]])])
    check("OneHotEncoder", [np.array([[3, 9], [4, 1]])], cats_int64s=[1, 3, 4])


def test_labels_are_looked_up() -> None:
    x = np.array([[3, 9, 4], [1, -5, 100]])
    check("LabelEncoder", [x], keys_int64s=[4, 1, 3], values_floats=[0.5, 1.5, 2.5],
          default_float=-1.0)  # fmt: skip
    check("LabelEncoder", [x.astype("float32")], keys_floats=[4.0, 1.0], values_int64s=[7, 8])
    with_nan = np.array([np.nan, 1.0, 2.0], "float32")
    check("LabelEncoder", [with_nan], opset=4, keys_floats=[4.0, 1.0, np.nan],
          values_int64s=[7, 8, 9])  # fmt: skip


def machine(kernel: str, classes: int, has_probabilities: bool = False) -> dict[str, Any]:
    """Attributes of a random support vector machine over five features."""
    counts = [2, 3, 2, 4][:classes]
    total, pairs = sum(counts), classes * (classes - 1) // 2
    found = {
        "kernel_type": kernel, "kernel_params": [0.5, 0.2, 2.0], "vectors_per_class": counts,
        "support_vectors": f32(total * 5).tolist(), "rho": f32(pairs).tolist(),
        "coefficients": f32((classes - 1) * total).tolist(),
        "classlabels_ints": [3, 7, 1, 9][:classes],
    }  # fmt: skip
    if has_probabilities:
        found["prob_a"], found["prob_b"] = (-np.abs(f32(pairs))).tolist(), f32(pairs).tolist()
    return found


@pytest.mark.parametrize("kernel", ["LINEAR", "POLY", "RBF", "SIGMOID"])
@pytest.mark.parametrize("classes", [2, 4])
def test_support_vectors_choose_a_class(kernel: str, classes: int) -> None:
    check("SVMClassifier", [f32(9, 5)], 2, 1, **machine(kernel, classes))


@pytest.mark.parametrize("post", ["LOGISTIC", "SOFTMAX"])
@pytest.mark.parametrize("classes", [2, 3])
def test_scores_of_support_vectors_are_transformed(post: str, classes: int) -> None:
    check("SVMClassifier", [f32(9, 5)], 2, 1, **machine("RBF", classes), post_transform=post)


@pytest.mark.parametrize("classes", [2, 4])
def test_support_vectors_give_probabilities(classes: int) -> None:
    attrs = machine("RBF", classes, has_probabilities=True)
    node = helper.make_node("SVMClassifier", ["x"], ["l", "s"], domain=DOMAIN, **attrs)
    graph = helper.make_graph(
        [node], "t", [helper.make_tensor_value_info("x", 1, (9, 5))],
        [onnx.ValueInfoProto(name="l"), onnx.ValueInfoProto(name="s")],
    )  # fmt: skip
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid(DOMAIN, 1)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=10)
    feed = {"x": f32(9, 5)}
    found, wanted = onnx_backend.run_model(model, feed), session_of(model).run(None, feed)
    np.testing.assert_array_equal(found[0], wanted[0])
    # ONNX Runtime stops iterating within 0.005 of what is best
    np.testing.assert_allclose(found[1], wanted[1], atol=5e-3)
    np.testing.assert_allclose(found[1].sum(1), 1, atol=1e-5)


def test_linear_machines_score_each_class() -> None:
    attrs = {"kernel_params": [0.0, 0.0, 0.0], "coefficients": f32(15).tolist(), "rho": [0.3]}
    check("SVMClassifier", [f32(9, 5)], 2, 1, classlabels_ints=[3, 7, 1], **attrs)


def test_maps_of_classes_are_columns() -> None:
    node = helper.make_node("ZipMap", ["x"], ["y"], domain=DOMAIN, classlabels_int64s=[3, 7])
    x = f32(4, 2)
    with pytest.warns(UserWarning, match=r"its columns are the classes \[3, 7\]"):
        found = onnx_backend.run_node(node, [x]).y
    np.testing.assert_array_equal(found, x)
