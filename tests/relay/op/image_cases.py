"""Cases of the operators on images, with PyTorch as the reference."""

from __future__ import annotations

import numpy as np
import torch.nn.functional as F

from tests.relay.op.torch_reference import by_torch
from tvm import relay

from .cases import Array, Case, floats


def resize_cases() -> list[Case]:
    torch_modes = {"linear": ("linear", "bilinear", "trilinear"), "cubic": (None, "bicubic", None)}
    cases = []
    for rank, shape, size in (
        (1, (2, 3, 7), (12,)),
        (2, (1, 2, 7, 9), (11, 5)),
        (3, (1, 2, 4, 5, 6), (6, 4, 9)),
    ):
        op = getattr(relay.image, f"resize{rank}d")
        for method, names in torch_modes.items():
            mode = names[rank - 1]
            if mode is None:
                continue
            for corners in (False, True):
                coordinates = "align_corners" if corners else "half_pixel"
                cases.append(
                    Case(
                        f"image.resize{rank}d",
                        lambda x, op=op, s=size, m=method, c=coordinates: op(
                            x, s, method=m, coordinate_transformation_mode=c, cubic_alpha=-0.75
                        ),
                        (floats(*shape),),
                        by_torch(F.interpolate, size=size, mode=mode, align_corners=corners),
                        1e-4,
                    )
                )
        cases.append(
            Case(
                f"image.resize{rank}d",
                lambda x, op=op, s=size: op(
                    x, s, method="nearest_neighbor", rounding_method="floor",
                    coordinate_transformation_mode="asymmetric",
                ),
                (floats(*shape),),
                by_torch(F.interpolate, size=size, mode="nearest"),
            )
        )  # fmt: skip
    return [*cases, *_tensorflow_cases()]


def _cropped(x: Array, roi: tuple[float, ...], size: int, beyond: float) -> Array:
    """One axis between two ends, linearly; `beyond` outside."""
    start, end = roi
    at = start * (len(x) - 1) + np.arange(size) * (end - start) * (len(x) - 1) / (size - 1)
    found = np.interp(at, np.arange(len(x)), x)
    return np.where((at < 0) | (at > len(x) - 1), beyond, found)


def _tensorflow_cases() -> list[Case]:
    line = floats(8)

    def cropped(x: Array) -> Array:
        return _cropped(x[0, 0], (0.25, 1.25), 6, -3.0)[None, None].astype("float32")

    return [
        Case(
            "image.resize1d",
            lambda x: relay.image.resize1d(
                x, 6, (0.25, 1.25), coordinate_transformation_mode="tf_crop_and_resize",
                extrapolation_value=-3.0,
            ),
            (line[None, None],),
            cropped,
        ),
        Case(
            "image.resize1d",
            lambda x: relay.image.resize1d(
                x, 4, method="nearest_neighbor", rounding_method="floor",
                coordinate_transformation_mode="tf_half_pixel_for_nn",
            ),
            (line[None, None],),
            lambda x: x[:, :, 1::2],
        ),
    ]  # fmt: skip


def _crops(data: Array, boxes: Array, which: Array) -> Array:
    found = []
    for (top, left, bottom, right), image in zip(boxes, which, strict=True):
        rows = [
            [_cropped(row, (left, right), 3, 0.0) for row in channel] for channel in data[image]
        ]
        columns = np.moveaxis(np.array(rows), 1, -1)
        inside = [[_cropped(c, (top, bottom), 4, 0.0) for c in channel] for channel in columns]
        found.append(np.moveaxis(np.array(inside), -1, 1))
    return np.array(found).astype("float32")


def grid_cases() -> list[Case]:
    cases = []
    for method in ("bilinear", "nearest", "bicubic"):
        for padding in ("zeros", "border", "reflection"):
            for corners in (True, False):
                cases.append(_grid_case(method, padding, corners, 2))
                if method != "bicubic":
                    cases.append(_grid_case(method, padding, corners, 3))
    theta = floats(2, 2, 3)
    reference = by_torch(F.affine_grid, size=(2, 1, 4, 5), align_corners=True)
    cases.append(
        Case(
            "image.affine_grid",
            lambda t: relay.image.affine_grid(t, (4, 5)),
            (theta,),
            lambda t: reference(t).transpose(0, 3, 1, 2),
        )
    )
    return cases


def _grid_case(method: str, padding: str, corners: bool, rank: int) -> Case:
    shape = (2, 3, 5, 6, 4)[: rank + 2]
    grid = floats(2, rank, *(3, 4, 2)[:rank], low=-1.6, high=1.6)
    sample = by_torch(F.grid_sample, mode=method, padding_mode=padding, align_corners=corners)
    return Case(
        "image.grid_sample",
        lambda x, g: relay.image.grid_sample(
            x, g, method, "NCHW" if rank == 2 else "NCDHW", padding, corners
        ),
        (floats(*shape), grid),
        lambda x, g: sample(x, np.ascontiguousarray(np.moveaxis(g, 1, -1))),
        1e-4,
    )


def _dilated(x: Array, w: Array) -> Array:
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)), constant_values=-np.inf)
    out = np.full((*x.shape[:2], 3, 4), -np.inf, "float32")
    for ky in range(3):
        for kx in range(2):
            view = padded[:, :, ky : ky + 5 : 2, 2 * kx : 2 * kx + 7 : 2]
            out = np.maximum(out, view[:, :, :3, :4] + w[:, ky, kx][None, :, None, None])
    return out


def image_cases() -> list[Case]:
    boxes = np.array([[0.1, 0.2, 0.9, 0.8], [0.5, -0.2, 1.2, 0.9]], "float32")
    which = np.array([1, 0], "int32")
    return [
        *resize_cases(),
        *grid_cases(),
        Case(
            "image.crop_and_resize",
            lambda x, b, i: relay.image.crop_and_resize(x, b, i, (4, 3), "NCHW"),
            (floats(2, 2, 6, 7), boxes, which),
            _crops,
            1e-4,
        ),
        Case(
            "image.crop_and_resize",
            lambda x, b, i: relay.image.crop_and_resize(x, b, i, (4, 3), "NHWC"),
            (floats(2, 6, 7, 2), boxes, which),
            lambda x, b, i: _crops(x.transpose(0, 3, 1, 2), b, i).transpose(0, 2, 3, 1),
            1e-4,
        ),
        Case(
            "image.dilation2d",
            lambda x, w: relay.image.dilation2d(x, w, 2, 1, (1, 2)),
            (floats(1, 2, 6, 8), floats(2, 3, 2)),
            _dilated,
        ),
        Case(
            "image.dilation2d",
            lambda x, w: relay.image.dilation2d(
                x, w, 2, 1, (1, 2), data_layout="NHWC", kernel_layout="HWI"
            ),
            (floats(1, 6, 8, 2), floats(3, 2, 2)),
            lambda x, w: _dilated(x.transpose(0, 3, 1, 2), w.transpose(2, 0, 1)).transpose(
                0, 2, 3, 1
            ),
        ),
    ]
