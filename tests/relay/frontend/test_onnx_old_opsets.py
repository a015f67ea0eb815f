"""Forms of operators that only older opsets have, beside what their definitions say."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper

from tvm.contrib import onnx_backend

RNG = np.random.default_rng(0)


def f32(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype("float32")


def run(op: str, opset: int, inputs: list[np.ndarray], attrs: dict[str, Any]) -> Any:
    """The first result of one node."""
    names = [f"x{i}" for i in range(len(inputs))]
    node = helper.make_node(op, names, ["y", "z"][: 2 if op == "TopK" else 1], **attrs)
    graph = helper.make_graph(
        [node], "test",
        [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape)
         for n, x in zip(names, inputs, strict=True)],
        [onnx.ValueInfoProto(name="y")],
    )  # fmt: skip
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
    return onnx_backend.run_model(model, dict(zip(names, inputs, strict=True)))[0]


DATA, IMAGE = f32(2, 3, 4), f32(1, 4, 4, 4)


def _of_channels(values: np.ndarray) -> np.ndarray:
    return values.reshape(-1, 1, 1)


def _normal(x: np.ndarray, axes: tuple[int, ...], epsilon: float = 0.0) -> np.ndarray:
    return (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + epsilon)


Form = tuple[str, int, list[np.ndarray], dict[str, Any], Callable[..., np.ndarray]]

FORMS: list[Form] = [
    ("Add", 1, [DATA, f32(3)], {"broadcast": 1, "axis": 1}, lambda a, b: a + b[:, None]),
    ("Mul", 6, [DATA, f32(2, 3)], {"broadcast": 1, "axis": 0}, lambda a, b: a * b[..., None]),
    ("Sub", 6, [DATA, f32(4)], {"broadcast": 1}, lambda a, b: a - b),
    ("Div", 6, [DATA, f32(3)], {"broadcast": 1, "axis": -2}, lambda a, b: a / b[:, None]),
    ("Less", 1, [DATA, f32(2)], {"broadcast": 1, "axis": 0}, lambda a, b: a < b[:, None, None]),
    ("Pow", 1, [abs(DATA), f32(3)], {"broadcast": 1, "axis": 1}, lambda a, b: a ** b[:, None]),
    ("Add", 1, [DATA, f32(3, 4)], {"broadcast": 1, "consumed_inputs": [0, 0]}, np.add),
    ("Cast", 1, [DATA], {"to": "INT32"}, lambda x: x.astype("int32")),
    ("Clip", 6, [DATA], {"min": -0.5}, lambda x: x.clip(-0.5)),
    ("GlobalLpPool", 1, [IMAGE], {"p": 2.0},
     lambda x: np.sqrt((x * x).sum((2, 3), keepdims=True))),
    ("LpPool", 1, [IMAGE], {"p": 2.0, "kernel_shape": [2, 2], "strides": [2, 2]},
     lambda x: np.sqrt((x.reshape(1, 4, 2, 2, 2, 2) ** 2).sum((3, 5)))),
    ("MeanVarianceNormalization", 13, [IMAGE], {"axes": [0, 2, 3]},
     lambda x: _normal(x, (0, 2, 3))),
    ("InstanceNormalization", 1, [IMAGE, f32(4), f32(4)], {"consumed_inputs": [0, 0, 0]},
     lambda x, s, b: _normal(x, (2, 3), 1e-5) * _of_channels(s) + _of_channels(b)),
    ("BatchNormalization", 1, [IMAGE, f32(4), f32(4), f32(4), abs(f32(4))],
     {"consumed_inputs": [0, 0, 0, 1, 1], "is_test": 1, "epsilon": 1e-3},
     lambda x, s, b, m, v: (x - _of_channels(m)) / np.sqrt(_of_channels(v) + 1e-3)
     * _of_channels(s) + _of_channels(b)),
    ("Pad", 1, [DATA], {"paddings": [0, 0, 1, 0, 0, 2], "value": 3.0},
     lambda x: np.pad(x, ((0, 0), (0, 0), (1, 2)), constant_values=3)),
    ("Reshape", 1, [DATA], {"shape": [0, -1]}, lambda x: x.reshape(2, -1)),
    ("Slice", 1, [DATA], {"starts": [1, -2], "ends": [3, 1000], "axes": [1, 2]},
     lambda x: x[:, 1:3, -2:]),
    ("Squeeze", 11, [f32(1, 3, 1)], {"axes": [-1]}, lambda x: x[..., 0]),
    ("Unsqueeze", 11, [DATA], {"axes": [-1, 0]}, lambda x: x[None, ..., None]),
    ("Tile", 1, [DATA, np.array(2, "float32"), np.array(1, "float32")], {},
     lambda x, tiles, axis: np.tile(x, (1, 2, 1))),
    ("TopK", 1, [DATA], {"k": 2, "axis": 2}, lambda x: np.sort(x)[..., :-3:-1]),
    ("Upsample", 1, [IMAGE], {"height_scale": 2.0, "width_scale": 3.0},
     lambda x: x.repeat(2, 2).repeat(3, 3)),
    ("Upsample", 7, [IMAGE], {"scales": [1.0, 1.0, 2.0, 3.0]},
     lambda x: x.repeat(2, 2).repeat(3, 3)),
    ("Upsample", 13, [IMAGE, np.array([1, 1, 2, 3], "float32")], {},
     lambda x, scales: x.repeat(2, 2).repeat(3, 3)),
    ("Concat", 1, [DATA, DATA], {}, lambda a, b: np.concatenate([a, b], 1)),
    ("ReduceSum", 11, [DATA], {"axes": [0, -1], "keepdims": 0}, lambda x: x.sum((0, 2))),
    ("ReduceL1", 1, [DATA], {"axes": [1]}, lambda x: abs(x).sum(1, keepdims=True)),
    ("DepthToSpace", 1, [IMAGE], {"blocksize": 2},
     lambda x: x.reshape(1, 2, 2, 1, 4, 4).transpose(0, 3, 4, 1, 5, 2).reshape(1, 1, 8, 8)),
]  # fmt: skip


@pytest.mark.parametrize("form", FORMS, ids=[f"{form[0]}-{form[1]}" for form in FORMS])
def test_older_forms_mean_what_their_opset_says(form: Form) -> None:
    op, opset, inputs, attrs, expected = form
    found, wanted = run(op, opset, inputs, attrs), expected(*inputs)
    assert (found.shape, found.dtype) == (wanted.shape, wanted.dtype)
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)
