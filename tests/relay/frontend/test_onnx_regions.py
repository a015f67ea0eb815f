"""Pooling of regions, beside ONNX Runtime."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, helper

from .onnx_agreement import ours, reference

RNG = np.random.default_rng(0)
INPUTS = {
    "x": RNG.standard_normal((2, 4, 9, 9)).astype("float32"),
    # the second is smaller than an element, the third leaves the map
    "rois": np.array([[0, 0, 9, 9], [3, 2, 3.5, 2.6], [4, 5, 25, 21]], "float32"),
    "batch": np.array([0, 1, 1], "int64"),
}


def roi_align(opset: int, **attrs: object) -> ModelProto:
    node = helper.make_node("RoiAlign", list(INPUTS), ["y"], output_height=3, output_width=2,
                            spatial_scale=0.5, **attrs)  # fmt: skip
    infos = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape)
        for name, a in INPUTS.items()
    ]
    result = helper.make_tensor_value_info("y", TensorProto.FLOAT, (3, 4, 3, 2))
    graph = helper.make_graph([node], "regions", infos, [result])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


@pytest.mark.parametrize("ratio", [0, 2])
@pytest.mark.parametrize("mode", ["avg", "max"])
@pytest.mark.parametrize("place", [None, "half_pixel", "output_half_pixel"])
def test_regions_are_placed_and_pooled_as_onnx_says(
    place: str | None, mode: str, ratio: int
) -> None:
    attrs = {"mode": mode, "sampling_ratio": ratio}
    model = (
        roi_align(10, **attrs)
        if place is None
        else roi_align(16, coordinate_transformation_mode=place, **attrs)
    )
    expected = reference(model, INPUTS)
    assert expected is not None
    np.testing.assert_allclose(ours(model, INPUTS, 3)[0], expected[0], rtol=1e-5, atol=1e-6)
