"""Random ONNX operators: shapes, types, distributions, seeds."""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import TensorProto, helper

from tvm.contrib import onnx_backend


def draw(op: str, *inputs: np.ndarray, outputs: int = 1, name: str = "", **attrs: Any) -> Any:
    names = [f"x{i}" for i in range(len(inputs))]
    results = [f"y{i}" for i in range(outputs)]
    node = helper.make_node(op, names, results, name=name, **attrs)
    found = onnx_backend.run_node(node, list(inputs))
    return found if outputs > 1 else found[0]


def test_uniform_numbers_lie_between_bounds() -> None:
    x = draw("RandomUniform", shape=[100, 200], low=2.0, high=6.0, dtype=TensorProto.DOUBLE)
    assert x.shape == (100, 200) and x.dtype == "float64"
    assert x.min() >= 2 and x.max() < 6
    assert abs(x.mean() - 4) < 0.05
    half = draw("RandomUniformLike", x[0], dtype=TensorProto.FLOAT16)
    assert half.shape == (200,) and half.dtype == "float16"


def test_normal_numbers_have_a_mean_and_a_scale() -> None:
    x = draw("RandomNormalLike", np.zeros((100, 200), "float32"), mean=3.0, scale=2.0)
    assert x.dtype == "float32"
    assert abs(x.mean() - 3) < 0.05 and abs(x.std() - 2) < 0.05


def test_a_seed_decides_the_numbers() -> None:
    first, again, other = [draw("RandomNormal", shape=[9], seed=s) for s in (1.0, 1.0, 1.5)]
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)


def test_nodes_without_seed_differ_by_name() -> None:
    first, other = [draw("RandomUniform", shape=[9], name=name) for name in ("a", "b")]
    assert not np.array_equal(first, other)


def test_classes_are_drawn_by_their_probabilities() -> None:
    logs = np.log(np.array([[0.5, 0.25, 0.25], [1e-9, 1.0, 1e-9]], "float32")) + 3
    drawn = draw("Multinomial", logs, sample_size=4000, dtype=TensorProto.INT64)
    assert drawn.shape == (2, 4000) and drawn.dtype == "int64"
    assert abs((drawn[0] == 0).mean() - 0.5) < 0.05
    assert (drawn[1] == 1).all()


def test_coins_fall_by_their_probabilities() -> None:
    fell = draw("Bernoulli", np.full((100, 100), 0.3, "float32"), dtype=TensorProto.BOOL)
    assert fell.dtype == "bool" and abs(fell.mean() - 0.3) < 0.03


def test_dropout_of_training_keeps_the_mean() -> None:
    inputs = np.ones((100, 100), "float32"), np.float32(0.25), np.array(True)
    y, kept = draw("Dropout", *inputs, outputs=2)
    np.testing.assert_allclose(y, kept / np.float32(0.75))
    assert abs(y.mean() - 1) < 0.03


def test_seeds_may_be_integers() -> None:
    whole, real = [draw("RandomUniform", shape=[9], seed=seed) for seed in (3, 3.0)]
    np.testing.assert_array_equal(whole, real)
