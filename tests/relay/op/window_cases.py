"""Cases of convolutions and pools whose parameters are not the usual ones, with PyTorch as the reference."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F

from tests.relay.op.torch_reference import by_torch
from tvm import relay

from .cases import Array, Case, floats

_SPATIAL = {1: "W", 2: "HW", 3: "DHW"}


def _plain(rank: int) -> str:
    return f"NC{_SPATIAL[rank]}"


def _last(rank: int) -> str:
    return f"N{_SPATIAL[rank]}C"


def moved(x: Array, source: str, target: str) -> Array:
    """An array whose axes are `source` as one whose axes are `target`."""
    return np.ascontiguousarray(x.transpose([source.index(axis) for axis in target]))


def conv_cases() -> list[Case]:
    """Named channels and extents, results in another layout or another type."""
    cases = []
    for rank in (1, 2, 3):
        data, weight = (2, 4, *(7, 6, 5)[:rank]), (6, 4, *(3, 2, 2)[:rank])
        named = {"channels": 6, "kernel_size": weight[2:]}
        op, plain = (
            getattr(relay.nn, f"conv{rank}d"),
            by_torch(getattr(F, f"conv{rank}d"), padding=1),
        )
        moved_result = {"out_layout": _last(rank), "out_dtype": "float64"}
        cases.append(Case(
            f"nn.conv{rank}d",
            lambda x, w, op=op, o={**named, **moved_result}: op(x, w, padding=1, **o),
            (floats(*data), floats(*weight)),
            lambda x, w, f=plain, r=rank: moved(f(x.astype("float64"), w.astype("float64")), _plain(r), _last(r)),
            1e-4,
        ))  # fmt: skip
        cases.append(_transposed_case(rank))
    return [*cases, _blocked_result(), _conv_of_blocks()]


def _transposed_case(rank: int) -> Case:
    shape, window = (2, 4, *(5, 4, 3)[:rank]), (4, 3, *(3, 2, 3)[:rank])
    options = {
        "strides": 2, "padding": 1, "data_layout": _last(rank), "out_layout": _plain(rank),
        "kernel_layout": f"{_SPATIAL[rank]}IO", "channels": 3, "kernel_size": window[2:],
        "out_dtype": "float64", "output_padding": 1,
    }  # fmt: skip
    plain = by_torch(getattr(F, f"conv_transpose{rank}d"), stride=2, padding=1, output_padding=1)
    weight = floats(*window)
    return Case(
        f"nn.conv{rank}d_transpose",
        lambda x, w: getattr(relay.nn, f"conv{rank}d_transpose")(x, w, **options),
        (moved(floats(*shape), _plain(rank), _last(rank)), moved(weight, f"IO{_SPATIAL[rank]}", f"{_SPATIAL[rank]}IO")),
        lambda x, w: plain(moved(x, _last(rank), _plain(rank)).astype("float64"), weight.astype("float64")),
        1e-4,
    )  # fmt: skip


def _blocked_result() -> Case:
    """Of NCHW, in blocks of four channels."""
    return Case(
        "nn.conv2d",
        lambda x, w: relay.nn.conv2d(x, w, padding=(1, 1), out_layout="NCHW4c"),
        (floats(1, 3, 5, 6), floats(8, 3, 3, 3)),
        lambda x, w: by_torch(F.conv2d, padding=1)(x, w).reshape(1, 2, 4, 5, 6).transpose(0, 1, 3, 4, 2),
        1e-4,
    )  # fmt: skip


def _conv_of_blocks() -> Case:
    def build(x: Any, w: Any) -> Any:
        return relay.nn.conv2d(
            x, w, padding=(1, 1), channels=8, kernel_size=(3, 3), data_layout="NCHW4c",
            kernel_layout="OIHW4i4o", out_layout="NCHW",
        )  # fmt: skip

    def expected(x: Array, w: Array) -> Array:
        image = x.transpose(0, 1, 4, 2, 3).reshape(1, 8, 5, 6)
        kernel = w.transpose(0, 5, 1, 4, 2, 3).reshape(8, 8, 3, 3)
        return by_torch(F.conv2d, padding=1)(image, np.ascontiguousarray(kernel))

    arrays = (floats(1, 2, 5, 6, 4), floats(2, 2, 3, 3, 4, 4))
    return Case("nn.conv2d", build, arrays, expected, 1e-4)


def pool_cases() -> list[Case]:
    cases = []
    for rank in (1, 2, 3):
        for kind in ("max", "avg"):
            cases += [
                _window_case(rank, kind),
                _other_layout_case(rank, kind),
                _adaptive_case(rank, kind),
            ]
        cases.append(_beyond_case(rank))
    for kind in ("max", "avg"):
        reduced: Callable[..., Array] = np.max if kind == "max" else np.mean
        op = getattr(relay.nn, f"global_{kind}_pool2d")
        cases.append(Case(
            f"nn.global_{kind}_pool2d", lambda x, op=op: op(x, "NHWC", "NCHW"),
            (floats(2, 4, 5, 3),),
            lambda x, f=reduced: moved(f(x, (1, 2), keepdims=True), "NHWC", "NCHW"), 1e-4,
        ))  # fmt: skip
    return cases


def _mean_of_windows(x: Array, window: dict[str, Any], counts_zeros: bool) -> Array:
    """Average pooling with gaps in its windows, which PyTorch has not, by convolutions."""
    rank, size = x.ndim - 2, window["pool_size"]
    ones = torch.ones((1, 1, *size), dtype=torch.float64)
    data = torch.from_numpy(x.astype("float64")).reshape(-1, 1, *x.shape[2:])
    sums, counts = [
        getattr(F, f"conv{rank}d")(t, ones, None, window["strides"], window["padding"], window["dilation"])
        for t in (data, torch.ones_like(data))
    ]  # fmt: skip
    found = sums / (int(np.prod(size)) if counts_zeros else counts)
    return found.reshape(*x.shape[:2], *found.shape[2:]).float().numpy()


def _window_case(rank: int, kind: str) -> Case:
    """Gaps in the windows; windows that reach beyond the end."""
    size = (3, 3, 3)[:rank]
    window: dict[str, Any] = {"pool_size": size, "strides": 2, "padding": 1, "dilation": (2, 1, 1)[:rank]}  # fmt: skip
    if kind == "max":
        expected = by_torch(getattr(F, f"max_pool{rank}d"), kernel_size=size, stride=2, padding=1, dilation=window["dilation"], ceil_mode=True)  # fmt: skip
        window["ceil_mode"] = True
    else:
        window["count_include_pad"] = True
        expected = lambda x: _mean_of_windows(x, window, True)  # noqa: E731
    op = getattr(relay.nn, f"{kind}_pool{rank}d")
    return Case(f"nn.{kind}_pool{rank}d", lambda x: op(x, **window), (floats(2, 3, *(8, 7, 6)[:rank]),), expected, 1e-4)  # fmt: skip


def _beyond_case(rank: int) -> Case:
    """Means of windows that reach beyond the end."""
    options = {"ceil_mode": True, "count_include_pad": False}
    return Case(
        f"nn.avg_pool{rank}d",
        lambda x: getattr(relay.nn, f"avg_pool{rank}d")(x, 3, 2, padding=1, **options),
        (floats(2, 3, *(8, 4, 6)[:rank]),),
        by_torch(getattr(F, f"avg_pool{rank}d"), kernel_size=3, stride=2, padding=1, **options), 1e-4,
    )  # fmt: skip


def _other_layout_case(rank: int, kind: str) -> Case:
    size, layouts = (2, 3, 2)[:rank], (_last(rank), _plain(rank))
    op = getattr(relay.nn, f"{kind}_pool{rank}d")
    expected = by_torch(getattr(F, f"{kind}_pool{rank}d"), kernel_size=size, stride=1)
    return Case(
        f"nn.{kind}_pool{rank}d",
        lambda x: op(x, size, layout=layouts[0], out_layout=layouts[1]),
        (floats(2, *(5, 4, 6)[:rank], 3),),
        lambda x: expected(moved(x, *layouts)),
        1e-4,
    )


def _adaptive_case(rank: int, kind: str) -> Case:
    size, layouts = (2, 3, 2)[:rank], (_last(rank), _plain(rank))
    op = getattr(relay.nn, f"adaptive_{kind}_pool{rank}d")
    expected = by_torch(getattr(F, f"adaptive_{kind}_pool{rank}d"), output_size=size)
    return Case(
        f"nn.adaptive_{kind}_pool{rank}d",
        lambda x: op(x, size, *layouts),
        (floats(2, *(5, 4, 6)[:rank], 3),),
        lambda x: expected(moved(x, *layouts)),
        1e-4,
    )


def window_cases() -> list[Case]:
    return [*conv_cases(), *pool_cases()]
