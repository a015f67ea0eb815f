"""ONNX's decoder of images, which Pillow does while the compiled model runs."""

from __future__ import annotations

import warnings

from tvm.error import OpAttributeInvalid
from tvm.ir.expr import RelayExpr
from tvm.relay.expr import const
from tvm.relay.op.packed_call import OPEN, packed_call
from tvm.runtime.foreign import PILLOW, described
from tvm.runtime.foreign.image_decoder import PIXEL_FORMATS

from .registry import OnnxNode, onnx_op


@onnx_op("ImageDecoder")
def _image_decoder(node: OnnxNode) -> RelayExpr:
    pixels = str(node.attr("pixel_format", "RGB"))
    if pixels not in PIXEL_FORMATS:
        raise OpAttributeInvalid(
            f"ImageDecoder {node.name} requires a pixel_format of {', '.join(PIXEL_FORMATS)}, "
            f"got {pixels!r}"
        )
    warnings.warn("ImageDecoder runs in Pillow, which the compiled model needs too", stacklevel=2)
    arguments = [*[const(part) for part in described(pixels.encode())], node[0]]
    channels = 1 if pixels == "Grayscale" else 3
    return packed_call(PILLOW.function, arguments, [[OPEN, OPEN, channels]], ["uint8"])[0]
