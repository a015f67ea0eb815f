"""Images that a model decodes, beside Pillow itself."""

from __future__ import annotations

import io

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, helper
from PIL import Image

import tvm
from tvm import relay
from tvm.contrib import onnx_backend

PIXELS = np.random.default_rng(0).integers(0, 256, (5, 7, 3), "uint8")


def file_of(kind: str, pixels: np.ndarray = PIXELS) -> np.ndarray:
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, kind)
    return np.frombuffer(file.getvalue(), "uint8")


def decoder(**attrs: str) -> ModelProto:
    """A decoder of files of any length, and the mean of what it gives."""
    nodes = [
        helper.make_node("ImageDecoder", ["file"], ["y"], **attrs),
        helper.make_node("Cast", ["y"], ["numbers"], to=TensorProto.FLOAT),
        helper.make_node("ReduceMean", ["numbers"], ["mean"], keepdims=0),
    ]
    inputs = [helper.make_tensor_value_info("file", TensorProto.UINT8, ["n"])]
    outputs = [
        helper.make_tensor_value_info("y", TensorProto.UINT8, [None, None, None]),
        helper.make_tensor_value_info("mean", TensorProto.FLOAT, []),
    ]
    graph = helper.make_graph(nodes, "decoder", inputs, outputs)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)


def grey(pixels: np.ndarray) -> np.ndarray:
    return np.asarray(Image.fromarray(pixels).convert("L"))[..., None]


@pytest.mark.parametrize(
    ("attrs", "wanted"),
    [
        ({}, PIXELS),
        ({"pixel_format": "BGR"}, PIXELS[..., ::-1]),
        ({"pixel_format": "Grayscale"}, grey(PIXELS)),
    ],
)
def test_one_program_decodes_files_of_any_size(attrs: dict[str, str], wanted: np.ndarray) -> None:
    with pytest.warns(UserWarning, match="ImageDecoder runs in Pillow"):
        mod, _ = relay.frontend.from_onnx(decoder(**attrs))
    run = relay.create_executor("vm", mod, tvm.cpu(), "llvm").evaluate()
    for kind in ("PNG", "BMP", "TIFF"):
        image, mean = run(file_of(kind))
        np.testing.assert_array_equal(image.numpy(), wanted)
        np.testing.assert_allclose(mean.numpy(), wanted.mean(), rtol=1e-5)
    assert run(file_of("PNG", PIXELS[:2]))[0].shape[0] == 2


@pytest.mark.filterwarnings("ignore:ImageDecoder runs in Pillow")
def test_a_file_that_is_no_image_is_rejected() -> None:
    rep = onnx_backend.prepare(decoder())
    np.testing.assert_array_equal(rep.run([file_of("PNG")])[0], PIXELS)
    with pytest.raises(tvm.TVMError, match="ImageDecoder requires the bytes of an image's file"):
        rep.run([np.zeros(8, "uint8")])


def test_an_unknown_pixel_format_is_rejected() -> None:
    with pytest.raises(tvm.error.OpAttributeInvalid, match="pixel_format of RGB, BGR, Grayscale"):
        relay.frontend.from_onnx(decoder(pixel_format="HSV"))
