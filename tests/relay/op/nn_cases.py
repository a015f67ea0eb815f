"""Cases of the neural-network operators, with plain numpy references."""

from __future__ import annotations

from typing import Any

import numpy as np

from tvm import relay

from .cases import Array, Case, _softmax, floats


def conv_nd(
    data: Array,
    weight: Array,
    strides: tuple[int, ...] = (1, 1),
    padding: tuple[int, ...] = (0, 0, 0, 0),
    dilation: tuple[int, ...] = (1, 1),
    groups: int = 1,
) -> Array:
    """Convolution of N C spatial... by O I spatial..."""
    rank = len(strides)
    widths = [(0, 0), (0, 0)] + [(padding[i], padding[i + rank]) for i in range(rank)]
    padded = np.pad(data, widths).astype("float64")
    window = [(k - 1) * d + 1 for k, d in zip(weight.shape[2:], dilation, strict=True)]
    axes = tuple(range(2, 2 + rank))
    views = np.lib.stride_tricks.sliding_window_view(padded, window, axis=axes)
    step = (slice(None), slice(None), *[slice(None, None, s) for s in strides])
    views = views[step + tuple([slice(None, None, d) for d in dilation])]
    out_of, in_of = weight.shape[0] // groups, data.shape[1] // groups
    parts = []
    for g in range(groups):
        part = views[:, g * in_of : (g + 1) * in_of]
        kernel = weight[g * out_of : (g + 1) * out_of].astype("float64")
        axes_of_part = [1, *range(2 + rank, 2 + 2 * rank)]
        found = np.tensordot(part, kernel, (axes_of_part, [1, *range(2, 2 + rank)]))
        parts.append(np.moveaxis(found, -1, 1))
    return np.concatenate(parts, 1).astype("float32")


def conv_cases() -> list[Case]:
    rows: list[tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]] = [
        ((1, 16, 9, 9), (32, 16, 3, 3), {"padding": (1, 1, 1, 1)}),
        ((1, 3, 11, 13), (16, 3, 7, 7), {"strides": (2, 2), "padding": (3, 3, 3, 3)}),
        ((2, 8, 7, 7), (24, 8, 1, 1), {}),
        ((1, 10, 6, 5), (7, 10, 3, 3), {"padding": (0, 1, 2, 1)}),
        ((1, 16, 8, 8), (16, 16, 3, 3), {"dilation": (2, 2), "padding": (2, 2, 2, 2)}),
        ((1, 16, 1, 1), (48, 16, 1, 1), {}),
        ((1, 12, 8, 8), (8, 3, 3, 3), {"groups": 4, "padding": (1, 1, 1, 1)}),
        ((1, 16, 9, 9), (16, 1, 3, 3), {"groups": 16, "padding": (1, 1, 1, 1)}),
        ((2, 24, 10, 7), (24, 1, 3, 3), {"groups": 24, "strides": (2, 2), "padding": (1, 1, 1, 1)}),
        ((1, 6, 5, 5), (12, 1, 3, 3), {"groups": 6}),
    ]
    cases = []
    for data, weight, attrs in rows:
        cases.append(
            Case(
                "nn.conv2d",
                lambda x, w, a=attrs: relay.nn.conv2d(x, w, **a),
                (floats(*data), floats(*weight)),
                lambda x, w, a=attrs: conv_nd(x, w, **a),
                1e-4,
            )
        )
    cases.append(
        Case(
            "nn.conv2d",
            lambda x, w: relay.nn.conv2d(x, w, padding=1, data_layout="NHWC", kernel_layout="HWIO"),
            (floats(1, 6, 7, 8), floats(3, 3, 8, 16)),
            lambda x, w: conv_nd(
                x.transpose(0, 3, 1, 2), w.transpose(3, 2, 0, 1), padding=(1, 1, 1, 1)
            ).transpose(0, 2, 3, 1),
            1e-4,
        )
    )
    cases.append(
        Case(
            "nn.conv2d",
            _residual_block,
            (floats(1, 16, 8, 8), floats(16, 16, 3, 3), floats(16)),
            lambda x, w, b: np.maximum(
                conv_nd(x, w, padding=(1, 1, 1, 1)) + b[:, None, None] + x, 0
            ),
            1e-4,
        )
    )
    cases.append(
        Case(
            "nn.conv1d",
            lambda x, w: relay.nn.conv1d(x, w, strides=2, padding=1),
            (floats(2, 6, 17), floats(8, 6, 3)),
            lambda x, w: conv_nd(x, w, (2,), (1, 1), (1,)),
            1e-4,
        )
    )
    cases.append(
        Case(
            "nn.conv2d_transpose",
            lambda x, w: relay.nn.conv2d_transpose(
                x, w, strides=(2, 2), padding=(1, 1), output_padding=(1, 1)
            ),
            (floats(1, 4, 5, 5), floats(4, 6, 3, 3)),
            lambda x, w: _transposed(x, w, 2, 1, 1),
            1e-4,
        )
    )
    return cases


def _residual_block(x: Any, w: Any, b: Any) -> Any:
    out = relay.nn.conv2d(x, w, padding=(1, 1))
    return relay.nn.relu(relay.add(relay.nn.bias_add(out, b), x))


def _transposed(x: Array, w: Array, stride: int, pad: int, extra: int) -> Array:
    n, _, height, width = x.shape
    k = w.shape[2]
    full = np.zeros(
        (n, w.shape[1], (height - 1) * stride + k + extra, (width - 1) * stride + k + extra)
    )
    for y in range(height):
        for z in range(width):
            spread = np.einsum("nc,cfyx->nfyx", x[:, :, y, z], w)
            full[:, :, y * stride : y * stride + k, z * stride : z * stride + k] += spread
    return full[:, :, pad : full.shape[2] - pad, pad : full.shape[3] - pad].astype("float32")


def product_cases() -> list[Case]:
    cases = []
    for m, n, k in ((1, 40, 16), (12, 96, 33), (7, 5, 9), (128, 30, 8), (6, 16, 1), (37, 48, 9)):
        cases.append(
            Case(
                "nn.dense", relay.nn.dense, (floats(m, k), floats(n, k)), lambda a, b: a @ b.T, 1e-4
            )
        )
    cases.append(
        Case(
            "nn.dense", relay.nn.dense, (floats(2, 3, 8), floats(16, 8)), lambda a, b: a @ b.T, 1e-4
        )
    )
    weight = floats(77, 12)
    cases.append(
        Case(
            "nn.dense",
            lambda a: relay.nn.dense(a, relay.const(weight)),
            (floats(5, 12),),
            lambda a: a @ weight.T,
            1e-4,
        )
    )
    for ta, tb in ((False, False), (True, False), (False, True), (True, True)):
        shape_a, shape_b = ((8, 6) if ta else (6, 8)), ((16, 8) if tb else (8, 16))
        cases.append(
            Case(
                "nn.matmul",
                lambda a, b, ta=ta, tb=tb: relay.nn.matmul(a, b, transpose_a=ta, transpose_b=tb),
                (floats(*shape_a), floats(*shape_b)),
                lambda a, b, ta=ta, tb=tb: (a.T if ta else a) @ (b.T if tb else b),
                1e-4,
            )
        )
    for a, b, tb in (
        ((3, 8, 16), (3, 32, 16), True), ((3, 7, 5), (3, 5, 9), False), ((1, 6, 16), (4, 16, 16), True), ((2, 37, 6), (2, 19, 6), True),
        ((2, 16, 8), (1, 8, 48), False),
    ):  # fmt: skip
        cases.append(
            Case(
                "nn.batch_matmul",
                lambda x, y, tb=tb: relay.nn.batch_matmul(x, y, transpose_b=tb),
                (floats(*a), floats(*b)),
                lambda x, y, tb=tb: x @ (y.swapaxes(1, 2) if tb else y),
                1e-4,
            )
        )
    return cases


def pool_nd(
    x: Array,
    size: tuple[int, int],
    strides: tuple[int, int],
    padding: tuple[int, int, int, int],
    kind: str,
    ceil_mode: bool = False,
    include: bool = False,
) -> Array:
    """Pooling, window by window."""
    n, c, height, width = x.shape
    counts = []
    for i, extent in enumerate((height, width)):
        room = extent + padding[i] + padding[i + 2] - size[i]
        counts.append((room + (strides[i] - 1 if ceil_mode else 0)) // strides[i] + 1)
    out = np.zeros((n, c, *counts), "float32")
    for y in range(counts[0]):
        for z in range(counts[1]):
            y0, x0 = y * strides[0] - padding[0], z * strides[1] - padding[1]
            y1, x1 = y0 + size[0], x0 + size[1]
            part = x[:, :, max(y0, 0) : min(y1, height), max(x0, 0) : min(x1, width)]
            if kind == "max":
                out[:, :, y, z] = part.max((2, 3))
                continue
            count = part.shape[2] * part.shape[3]
            if include:
                bottom, right = min(y1, height + padding[2]), min(x1, width + padding[3])
                count = (bottom - y0) * (right - x0)
            out[:, :, y, z] = part.sum((2, 3)) / count
    return out


def pool_cases() -> list[Case]:
    cases = []
    for kind in ("max", "avg"):
        name = f"nn.{kind}_pool2d"
        op = relay.nn.max_pool2d if kind == "max" else relay.nn.avg_pool2d
        for shape, size, strides, padding, ceil_mode, include in (
            ((1, 4, 8, 8), (2, 2), (2, 2), (0, 0, 0, 0), False, False),
            ((1, 3, 9, 7), (3, 3), (2, 2), (1, 1, 1, 1), False, True),
            ((2, 2, 9, 7), (3, 3), (2, 2), (1, 1, 1, 1), True, False),
            ((1, 2, 6, 6), (3, 2), (2, 1), (0, 1, 1, 0), False, False),
        ):
            more = {"ceil_mode": ceil_mode}
            if kind == "avg":
                more["count_include_pad"] = include
            cases.append(
                Case(
                    name,
                    lambda x, op=op, z=size, s=strides, p=padding, m=more: op(
                        x, z, s, padding=p, **m
                    ),
                    (floats(*shape),),
                    lambda x, z=size, s=strides, p=padding, k=kind, c=ceil_mode, i=include: pool_nd(
                        x, z, s, p, k, c, i
                    ),
                    1e-4,
                )
            )
        shape = (2, 3, 6, 8)
        whole = (lambda x: x.max((2, 3), keepdims=True)) if kind == "max" else (
            lambda x: x.mean((2, 3), keepdims=True)
        )  # fmt: skip
        whole_op = getattr(relay.nn, f"global_{kind}_pool2d")
        cases.append(Case(f"nn.global_{kind}_pool2d", whole_op, (floats(*shape),), whole, 1e-4))
        adaptive = getattr(relay.nn, f"adaptive_{kind}_pool2d")
        for size in ((1, 1), (3, 4), (4, 3)):
            cases.append(
                Case(
                    f"nn.adaptive_{kind}_pool2d",
                    lambda x, a=adaptive, z=size: a(x, z),
                    (floats(*shape),),
                    lambda x, z=size, k=kind: _adaptive(x, z, k),
                    1e-4,
                )
            )
        line = getattr(relay.nn, f"{kind}_pool1d")
        cases.append(
            Case(
                f"nn.{kind}_pool1d",
                lambda x, op=line: op(x, 2, 2),
                (floats(1, 3, 8),),
                lambda x, k=kind: getattr(x.reshape(1, 3, 4, 2), "max" if k == "max" else "mean")(
                    3
                ),
                1e-4,
            )
        )
    return cases


def _adaptive(x: Array, size: tuple[int, int], kind: str) -> Array:
    out = np.zeros((*x.shape[:2], *size), "float32")
    for i in range(size[0]):
        for j in range(size[1]):
            y0, y1 = i * x.shape[2] // size[0], -(-(i + 1) * x.shape[2] // size[0])
            x0, x1 = j * x.shape[3] // size[1], -(-(j + 1) * x.shape[3] // size[1])
            part = x[:, :, y0:y1, x0:x1]
            out[:, :, i, j] = part.max((2, 3)) if kind == "max" else part.mean((2, 3))
    return out


def _normalised(x: Array, axes: tuple[int, ...]) -> Array:
    mean = x.mean(axes, keepdims=True)
    return (x - mean) / np.sqrt(x.var(axes, keepdims=True) + 1e-5)


def other_cases() -> list[Case]:
    nn = relay.nn
    image, channels = floats(2, 6, 5, 4), floats(6)
    rows: list[tuple[str, Any, tuple[Array, ...], Any]] = [
        ("nn.relu", nn.relu, (floats(3, 16),), lambda x: np.maximum(x, 0)),
        ("nn.leaky_relu", lambda x: nn.leaky_relu(x, 0.1), (floats(3, 7),), lambda x: np.where(x > 0, x, x * 0.1)),
        ("nn.prelu", nn.prelu, (image, channels), lambda x, a: np.where(x > 0, x, x * a[:, None, None])),
        ("nn.bias_add", nn.bias_add, (image, channels), lambda x, b: x + b[:, None, None]),
        ("nn.bias_add", lambda x, b: nn.bias_add(x, b, -1), (floats(3, 6), channels), lambda x, b: x + b),
        ("nn.softmax", nn.softmax, (floats(3, 128),), _softmax),
        ("nn.softmax", nn.softmax, (floats(2, 3, 37),), _softmax),
        ("nn.softmax", lambda x: nn.softmax(x, 1), (image,), lambda x: _softmax(x, 1)),
        ("nn.softmax", nn.softmax, (floats(64),), _softmax),
        ("nn.log_softmax", nn.log_softmax, (floats(3, 48),), lambda x: np.log(_softmax(x))),
        ("nn.dropout", nn.dropout, (image,), lambda x: x),
        ("nn.pad", lambda x: nn.pad(x, ((0, 0), (1, 2), (0, 3)), 1.5), (floats(2, 3, 4),), lambda x: np.pad(x, ((0, 0), (1, 2), (0, 3)), constant_values=1.5)),
        ("nn.pad", lambda x: nn.pad(x, ((1, 2), (2, 1)), pad_mode="reflect"), (floats(4, 5),), lambda x: np.pad(x, ((1, 2), (2, 1)), mode="reflect")),
        ("nn.pad", lambda x: nn.pad(x, ((1, 2), (2, 1)), pad_mode="edge"), (floats(4, 5),), lambda x: np.pad(x, ((1, 2), (2, 1)), mode="edge")),
        ("nn.mirror_pad", lambda x: nn.mirror_pad(x, ((1, 2), (2, 1))), (floats(4, 5),), lambda x: np.pad(x, ((1, 2), (2, 1)), mode="symmetric")),
        ("nn.layer_norm", nn.layer_norm, (floats(3, 5, 64), floats(64), floats(64)), lambda x, g, b: _normalised(x, (2,)) * g + b),
        ("nn.layer_norm", lambda x, g, b: nn.layer_norm(x, g, b, axis=1), (image, channels, floats(6)), lambda x, g, b: _normalised(x, (1,)) * g[:, None, None] + b[:, None, None]),
        ("nn.instance_norm", nn.instance_norm, (image, channels, floats(6)), lambda x, g, b: _normalised(x, (2, 3)) * g[:, None, None] + b[:, None, None]),
        ("nn.group_norm", lambda x, g, b: nn.group_norm(x, g, b, 3), (image, channels, floats(6)), lambda x, g, b: _normalised(x.reshape(2, 3, 2, 5, 4), (2, 3, 4)).reshape(x.shape) * g[:, None, None] + b[:, None, None]),
        ("nn.l2_normalize", lambda x: nn.l2_normalize(x, 1e-6, [1]), (floats(3, 9),), lambda x: x / np.sqrt((x * x).sum(1, keepdims=True))),
        ("nn.batch_norm", lambda x, g, b, m, v: nn.batch_norm(x, g, b, m, v)[0], (image, channels, floats(6), floats(6), floats(6, low=0.5)), lambda x, g, b, m, v: (x - m[:, None, None]) / np.sqrt(v[:, None, None] + 1e-5) * g[:, None, None] + b[:, None, None]),
    ]  # fmt: skip
    return [Case(n, b, i, e, 1e-4) for n, b, i, e in rows]


def nn_cases() -> list[Case]:
    return conv_cases() + product_cases() + pool_cases() + other_cases()
