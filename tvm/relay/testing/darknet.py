"""Images as Darknet's networks take them, and the numbers of its layers and activations."""

from __future__ import annotations

from typing import Any

import numpy as np

Image = np.ndarray


def convert_image(image: Any) -> Image:
    """Rows of pixels of blue, green and red bytes as planes of red, green and blue, from 0 to 1."""
    planes = np.asarray(image).transpose(2, 0, 1) / 255.0
    return np.flip(planes, 0)


def load_image_color(test_image: str) -> Image:
    """The planes of an image file."""
    from PIL import Image as pictures

    with pictures.open(test_image) as picture:
        pixels = np.asarray(picture.convert("RGB"))
    return convert_image(pixels[:, :, ::-1])


def load_image(img: str, resize_width: int, resize_height: int) -> Image:
    """The planes of an image file, fitted into a size; what it leaves free is grey."""
    return letterbox_image(load_image_color(img), resize_width, resize_height)


def letterbox_image(image: Image, width: int, height: int) -> Image:
    """Planes scaled to fit into a size, in the middle of grey."""
    channels, rows, columns = image.shape
    scale = min(width / columns, height / rows)
    new_rows, new_columns = max(int(rows * scale), 1), max(int(columns * scale), 1)
    boxed = np.full((channels, height, width), 0.5, "float32")
    top, left = (height - new_rows) // 2, (width - new_columns) // 2
    scaled = _resized(image, new_rows, new_columns)
    boxed[:, top : top + new_rows, left : left + new_columns] = scaled
    return boxed


def _resized(image: Image, rows: int, columns: int) -> Image:
    """Planes between whose corners the new corners are the old ones."""
    for axis, count in ((1, rows), (2, columns)):
        extent = image.shape[axis]
        place = np.arange(count) * ((extent - 1) / max(count - 1, 1))
        low = np.minimum(place.astype(int), extent - 1)
        high = np.minimum(low + 1, extent - 1)
        part = (place - low).reshape([-1 if a == axis else 1 for a in range(3)])
        image = image.take(low, axis) * (1 - part) + image.take(high, axis) * part
    return image


class LAYERTYPE:
    """What Darknet calls its layers."""

    CONVOLUTIONAL = 0
    DECONVOLUTIONAL = 1
    CONNECTED = 2
    MAXPOOL = 3
    SOFTMAX = 4
    DETECTION = 5
    DROPOUT = 6
    CROP = 7
    ROUTE = 8
    COST = 9
    NORMALIZATION = 10
    AVGPOOL = 11
    LOCAL = 12
    SHORTCUT = 13
    ACTIVE = 14
    RNN = 15
    GRU = 16
    LSTM = 17
    CRNN = 18
    BATCHNORM = 19
    NETWORK = 20
    XNOR = 21
    REGION = 22
    YOLO = 23
    REORG = 24
    UPSAMPLE = 25
    LOGXENT = 26
    L2NORM = 27
    BLANK = 28


class ACTIVATION:
    """What Darknet calls its activations."""

    LOGISTIC = 0
    RELU = 1
    RELIE = 2
    LINEAR = 3
    RAMP = 4
    TANH = 5
    PLSE = 6
    LEAKY = 7
    ELU = 8
    LOGGY = 9
    STAIR = 10
    HARDTAN = 11
    LHTAN = 12
