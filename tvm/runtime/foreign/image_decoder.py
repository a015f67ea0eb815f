"""Files of images that Pillow decodes."""

from __future__ import annotations

import io
from collections.abc import Sequence

import numpy as np

from tvm.error import TVMError
from tvm.runtime.foreign.node import Array, ForeignNode

# ONNX's names of what a pixel consists of, and Pillow's
PIXEL_FORMATS = {"RGB": "RGB", "BGR": "RGB", "Grayscale": "L"}


def read_image_decoder(text: bytes) -> ForeignNode:
    """The decoder for pixels that a text names."""
    try:
        from PIL import Image
    except ImportError:
        raise TVMError(
            "the compiled model decodes images, which requires the package pillow",
            hint="pip install pillow",
        ) from None
    pixels = text.decode()
    mode = PIXEL_FORMATS[pixels]

    def run(arrays: Sequence[Array]) -> list[Array]:
        try:
            with Image.open(io.BytesIO(arrays[0].tobytes())) as file:
                image = np.asarray(file.convert(mode))
        except OSError as error:
            raise TVMError(
                f"ImageDecoder requires the bytes of an image's file, got {arrays[0].size} others: "
                f"{error}"
            ) from None
        rows = image.reshape(*image.shape[:2], -1)
        return [rows[..., ::-1] if pixels == "BGR" else rows]

    return ForeignNode("ImageDecoder", 1, run)
