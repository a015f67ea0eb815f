"""Cases of operators of special networks, with plain loops as the references."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
import torch.nn.functional as F

from tvm import relay

from .cases import RNG, Array, Case, floats


def _correlated(a: Array, b: Array, kernel: int, reach: int, step: int, stride: int, pad: int, products: bool) -> Array:  # fmt: skip
    widths = ((0, 0), (0, 0), (pad, pad), (pad, pad))
    a, b = np.pad(a, widths), np.pad(b, widths)
    border = reach + (kernel - 1) // 2
    radius = reach // stride
    rows, columns = [-(-(n - 2 * border) // step) for n in a.shape[2:]]
    out = []
    for dy in range(-radius, radius + 1):
        for dx in range(-radius, radius + 1):
            plane = np.zeros((a.shape[0], rows, columns), "float32")
            for i in range(rows):
                for j in range(columns):
                    y, x = i * step + reach, j * step + reach
                    y2, x2 = y + dy * stride, x + dx * stride
                    p = a[:, :, y : y + kernel, x : x + kernel]
                    q = b[:, :, y2 : y2 + kernel, x2 : x2 + kernel]
                    plane[:, i, j] = (p * q if products else abs(p - q)).mean((1, 2, 3))
            out.append(plane)
    return np.stack(out, 1)


def correlation_cases() -> list[Case]:
    cases = []
    for options in ((1, 2, 1, 1, 2, True), (3, 2, 2, 2, 3, False)):
        cases.append(Case(
            "nn.correlation",
            lambda a, b, o=options: relay.nn.correlation(a, b, *o, "NCHW"),
            (floats(2, 3, 8, 7), floats(2, 3, 8, 7)),
            lambda a, b, o=options: _correlated(a, b, *o), 1e-4,
        ))  # fmt: skip
    return cases


def _sample(image: Array, y: float, x: float) -> Array:
    height, width = image.shape[1:]
    if y < 0 or x < 0 or y >= height or x >= width:
        return np.zeros(image.shape[0])
    top, left = int(np.floor(y)), int(np.floor(x))
    bottom, right = min(top + 1, height - 1), min(left + 1, width - 1)
    dy, dx = y - top, x - left
    upper = image[:, top, left] * (1 - dx) + image[:, top, right] * dx
    lower = image[:, bottom, left] * (1 - dx) + image[:, bottom, right] * dx
    return upper * (1 - dy) + lower * dy


def _deformed(x: Array, offset: Array, w: Array, stride: int, pad: int, groups: int, own: int) -> Array:  # fmt: skip
    n, _, rows, columns = offset.shape
    kh, kw = w.shape[2:]
    moves = offset.reshape(n, own, kh, kw, 2, rows, columns)
    share = x.shape[1] // own
    patches = np.zeros((n, x.shape[1], kh, kw, rows, columns))
    for b, g, i, j, r, c in np.ndindex(n, own, kh, kw, rows, columns):
        dy, dx = moves[b, g, i, j, :, r, c]
        part = slice(g * share, (g + 1) * share)
        patches[b, part, i, j, r, c] = _sample(
            x[b, part], r * stride - pad + i + dy, c * stride - pad + j + dx
        )
    parts = [
        np.einsum("ncijrs,ocij->nors", p, k)
        for p, k in zip(np.split(patches, groups, 1), np.split(w, groups), strict=True)
    ]
    return np.concatenate(parts, 1).astype("float32")


def deformable_cases() -> list[Case]:
    cases = []
    for stride, pad, groups, own in ((1, 1, 1, 1), (2, 0, 2, 2)):
        rows, columns = [(n + 2 * pad - 3) // stride + 1 for n in (6, 7)]
        attrs = {"strides": stride, "padding": pad, "groups": groups, "deformable_groups": own}
        inputs = (floats(2, 4, 6, 7), floats(2, 18 * own, rows, columns), floats(4, 4 // groups, 3, 3))  # fmt: skip
        cases.append(Case(
            "nn.deformable_conv2d",
            lambda x, o, w, a=attrs: relay.nn.deformable_conv2d(x, o, w, **a),
            inputs, lambda x, o, w, s=stride, p=pad, g=groups, d=own: _deformed(x, o, w, s, p, g, d), 1e-4,
        ))  # fmt: skip
    last = {"data_layout": "NHWC", "kernel_layout": "HWIO", "padding": 1}
    cases.append(Case(
        "nn.deformable_conv2d",
        lambda x, o, w: relay.nn.deformable_conv2d(x, o, w, **last),
        (floats(1, 5, 4, 2), floats(1, 5, 4, 18), floats(3, 3, 2, 3)),
        lambda x, o, w: _deformed(
            x.transpose(0, 3, 1, 2), o.transpose(0, 3, 1, 2), w.transpose(3, 2, 0, 1), 1, 1, 1, 1
        ).transpose(0, 2, 3, 1), 1e-4,
    ))  # fmt: skip
    return cases


def _few_bits(*shape: int, bits: int) -> Array:
    return RNG.integers(0, 1 << bits, shape).astype("uint8")


def _meaning(w: Array, bits: int, unipolar: bool) -> Array:
    """What the weight's bits stand for: each -1 or 1 if unipolar."""
    if not unipolar:
        return w.astype("int64")
    return sum((((w >> b) & 1).astype("int64") * 2 - 1) << b for b in range(bits))


def _packed(x: Array, bits: int) -> Array:
    planes = np.stack([(x >> b) & 1 for b in range(bits)], 1)
    return np.packbits(planes, axis=-1)


def bitserial_cases() -> list[Case]:
    cases = [
        Case("nn.bitpack", lambda x: relay.nn.bitpack(x, 3, 1, 1, "uint8"), (_few_bits(2, 24, bits=3),), lambda x: _packed(x, 3), 0)
    ]  # fmt: skip
    for unipolar in (True, False):
        bits = (2, 1 if unipolar else 2)
        attrs = {"pack_dtype": "uint8", "out_dtype": "int32", "unipolar": unipolar}
        cases.append(Case(
            "nn.bitserial_dense",
            lambda x, w, b=bits, a=attrs: relay.nn.bitserial_dense(x, w, None, *b, **a),
            (_few_bits(3, 16, bits=2), _few_bits(5, 16, bits=bits[1])),
            lambda x, w, b=bits, u=unipolar: (x.astype("int64") @ _meaning(w, b[1], u).T).astype("int32"), 0,
        ))  # fmt: skip

        def conv(x: Array, w: Array, b: Any = bits, u: bool = unipolar) -> Array:
            kernel = torch.from_numpy(_meaning(w, b[1], u).astype("float64"))
            image = torch.from_numpy(x.astype("float64"))
            return F.conv2d(image, kernel, stride=2, padding=1).numpy().astype("int32")

        window = {"strides": 2, "padding": 1, "activation_bits": 2, "weight_bits": bits[1], **attrs}
        inputs = (_few_bits(1, 8, 5, 6, bits=2), _few_bits(4, 8, 3, 3, bits=bits[1]))
        cases.append(Case("nn.bitserial_conv2d", lambda x, w, a=window: relay.nn.bitserial_conv2d(x, w, **a), inputs, conv, 0))  # fmt: skip
        last = {**window, "data_layout": "NHWC", "kernel_layout": "HWIO"}
        turned = (inputs[0].transpose(0, 2, 3, 1).copy(), inputs[1].transpose(2, 3, 1, 0).copy())
        cases.append(Case(
            "nn.bitserial_conv2d", lambda x, w, a=last: relay.nn.bitserial_conv2d(x, w, **a), turned,
            lambda x, w, f=conv: f(x.transpose(0, 3, 1, 2), w.transpose(3, 2, 0, 1)).transpose(0, 2, 3, 1), 0,
        ))  # fmt: skip
    return cases


def special_cases() -> list[Case]:
    return [
        *correlation_cases(),
        *deformable_cases(),
        *bitserial_cases(),
        Case("nn.fifo_buffer", lambda x, b: relay.nn.fifo_buffer(x, b, 1), (floats(2, 3, 4), floats(2, 7, 4)), lambda x, b: np.concatenate([b[:, 3:], x], 1)),
        Case("nn.fifo_buffer", lambda x, b: relay.nn.fifo_buffer(x, b, -1), (floats(2, 3), floats(2, 4)), lambda x, b: np.concatenate([b[:, 3:], x], -1)),
    ]  # fmt: skip
