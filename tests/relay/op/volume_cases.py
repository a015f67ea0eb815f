"""Cases of convolution and pooling over one and three axes, with PyTorch as the reference."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch.nn.functional as F

from tests.relay.op.torch_reference import by_torch
from tvm import relay
from tvm.topi.nn.conv2d.winograd import kernel_matrix

from .cases import Array, Case, floats


def conv3d_cases() -> list[Case]:
    rows: list[tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]] = [
        ((1, 4, 5, 6, 7), (8, 4, 3, 3, 3), {"padding": 1}),
        ((2, 6, 4, 8, 8), (4, 3, 1, 3, 2), {"groups": 2, "padding": (0, 1, 1)}),
        ((1, 3, 9, 9, 16), (16, 3, 3, 3, 3), {"stride": 2, "dilation": (2, 1, 1)}),
    ]
    cases = []
    for data, weight, options in rows:
        attrs = {("strides" if k == "stride" else k): v for k, v in options.items()}
        cases.append(
            Case(
                "nn.conv3d",
                lambda x, w, a=attrs: relay.nn.conv3d(x, w, **a),
                (floats(*data), floats(*weight)),
                by_torch(F.conv3d, **options),
                1e-4,
            )
        )
    cases.append(
        Case(
            "nn.conv3d",
            lambda x, w: relay.nn.conv3d(x, w, data_layout="NDHWC", kernel_layout="DHWIO"),
            (floats(1, 4, 5, 6, 3), floats(2, 2, 2, 3, 8)),
            lambda x, w: (
                by_torch(F.conv3d)(x.transpose(0, 4, 1, 2, 3), w.transpose(4, 3, 0, 1, 2))
            ).transpose(0, 2, 3, 4, 1),
            1e-4,
        )
    )
    return cases


def transposed_cases() -> list[Case]:
    functions = {1: F.conv_transpose1d, 2: F.conv_transpose2d, 3: F.conv_transpose3d}
    options: list[dict[str, Any]] = [
        {},
        {"stride": 2, "padding": 1, "output_padding": 1},
        {"stride": 3, "groups": 2, "dilation": 2},
    ]
    cases = []
    for rank, function in functions.items():
        op = getattr(relay.nn, f"conv{rank}d_transpose")
        for option in options:
            attrs = {("strides" if k == "stride" else k): v for k, v in option.items()}
            shape, window = (2, 4, *(5, 6, 7)[:rank]), (4, 3, *(3, 2, 3)[:rank])
            cases.append(
                Case(
                    f"nn.conv{rank}d_transpose",
                    lambda x, w, op=op, a=attrs: op(x, w, **a),
                    (floats(*shape), floats(*window)),
                    by_torch(function, **option),
                    1e-4,
                )
            )
    return cases


def _max_pool3d(x: Array) -> Array:
    return by_torch(F.max_pool3d, kernel_size=3, stride=2, padding=1)(x)


def _avg_pool3d(x: Array) -> Array:
    return by_torch(F.avg_pool3d, kernel_size=3, stride=2, padding=1, count_include_pad=False)(x)


def volume_pool_cases() -> list[Case]:
    window = {"pool_size": 3, "strides": 2, "padding": 1}
    data = (floats(1, 3, 6, 7, 9),)
    cases = [
        Case("nn.max_pool3d", lambda x: relay.nn.max_pool3d(x, **window), data, _max_pool3d),
        Case("nn.avg_pool3d", lambda x: relay.nn.avg_pool3d(x, **window), data, _avg_pool3d, 1e-4),
    ]
    for kind in ("max", "avg"):
        for rank, shape in ((1, (2, 3, 10)), (3, (1, 2, 7, 8, 9))):
            for size in ((4, 3, 5)[:rank], (1,) * rank):
                cases.append(
                    Case(
                        f"nn.adaptive_{kind}_pool{rank}d",
                        lambda x, k=kind, r=rank, s=size: getattr(
                            relay.nn, f"adaptive_{k}_pool{r}d"
                        )(x, s),
                        (floats(*shape),),
                        by_torch(getattr(F, f"adaptive_{kind}_pool{rank}d"), output_size=size),
                        1e-4,
                    )
                )
    return cases


def winograd_cases() -> list[Case]:
    """Windows of a depth that is transformed, of one that looks like that, and of others."""
    nn, cases = relay.nn, []
    for depth, tile in ((3, 2), (3, 4), (4, 2), (2, 4)):

        def build(data: Any, weight: Any, depth: int = depth, tile: int = tile) -> Any:
            moved = nn.contrib_conv3d_winograd_weight_transform(weight, tile)
            window = {"channels": 4, "kernel_size": (depth, 3, 3)}
            return nn.contrib_conv3d_winograd_without_weight_transform(
                data, moved, tile, padding=1, **window
            )

        arrays = (floats(1, 3, 5, 7, 6), floats(4, 3, depth, 3, 3))
        name = "nn.contrib_conv3d_winograd_without_weight_transform"
        cases.append(Case(name, build, arrays, by_torch(F.conv3d, padding=1), 1e-4))
    transform = Case(
        "nn.contrib_conv3d_winograd_weight_transform",
        lambda w: nn.contrib_conv3d_winograd_weight_transform(w, 2),
        (floats(2, 3, 1, 3, 3),),
        lambda w: np.einsum("ya,xb,oizab->yxzoi", *[kernel_matrix(2)] * 2, w).astype("float32"),
    )
    return [*cases, transform]


def gemm_cases() -> list[Case]:
    """Weights in tiles that they fill, and in larger ones."""
    sizes = {"channels": 6, "kernel_size": (3, 2), "data_layout": "NHWC", "kernel_layout": "HWIO"}

    def build(data: Any, weight: Any) -> Any:
        tiles = relay.nn.contrib_conv2d_gemm_weight_transform(weight, 4, 8)
        return relay.nn.contrib_conv2d_gemm_without_weight_transform(
            data, tiles, strides=(2, 1), padding=(1, 0), dilation=(1, 2), **sizes
        )

    def expected(data: Array, weight: Array) -> Array:
        convolve = by_torch(F.conv2d, stride=(2, 1), padding=(1, 0), dilation=(1, 2))
        found = convolve(data.transpose(0, 3, 1, 2), weight.transpose(3, 2, 0, 1))
        return found.transpose(0, 2, 3, 1)

    def tiled(weight: Array) -> Array:
        matrix = np.zeros((32, 8), weight.dtype)
        matrix[:30, :6] = weight.reshape(30, 6)
        return matrix.reshape(4, 8, 2, 4).transpose(2, 0, 3, 1)

    name, weight = "nn.contrib_conv2d_gemm", floats(3, 2, 5, 6)
    return [
        Case(
            f"{name}_without_weight_transform", build, (floats(2, 9, 8, 5), weight), expected, 1e-4
        ),
        Case(
            f"{name}_weight_transform",
            lambda w: relay.nn.contrib_conv2d_gemm_weight_transform(w, 4, 8),
            (weight,),
            tiled,
        ),
    ]


def volume_cases() -> list[Case]:
    return [
        *conv3d_cases(),
        *transposed_cases(),
        *volume_pool_cases(),
        *winograd_cases(),
        *gemm_cases(),
    ]
