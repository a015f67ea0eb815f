"""Drawn calls of operators on images and boxes."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import torch
from torch.nn import functional

from tvm import relay
from tvm.topi import testing as ref

from . import vision_cases as cases
from .drawing import Array, Draw, Drawn


def _last(array: Array) -> Array:
    return np.ascontiguousarray(np.moveaxis(array, 1, -1))


def _kernel(distance: float, alpha: float) -> float:
    d = abs(distance)
    if d <= 1:
        return (alpha + 2) * d**3 - (alpha + 3) * d**2 + 1
    return alpha * d**3 - 5 * alpha * d**2 + 8 * alpha * d - 4 * alpha if d < 2 else 0.0


def _place(i: int, extent: int, size: int, mode: str, roi: tuple[float, float]) -> float:
    if mode == "align_corners":
        return i * (extent - 1) / (size - 1) if size > 1 else 0.0
    if mode == "asymmetric":
        return i * extent / size
    if mode == "tf_crop_and_resize":
        start, end = roi
        if size == 1:
            return 0.5 * (start + end) * (extent - 1)
        return start * (extent - 1) + i * (end - start) * (extent - 1) / (size - 1)
    if mode == "tf_half_pixel_for_nn":
        return (i + 0.5) * extent / size
    if mode == "pytorch_half_pixel" and size == 1:
        return 0.0
    return (i + 0.5) * extent / size - 0.5


def _mix(
    extent: int, size: int, method: str, mode: str, rounding: str, roi: tuple[float, float],
    alpha: float, exclude: int,
) -> tuple[Array, Array]:  # fmt: skip
    """(size, extent) weights, and which places lie outside."""
    table, outside = np.zeros((size, extent)), np.zeros(size, bool)
    for i in range(size):
        at = _place(i, extent, size, mode, roi)
        outside[i] = mode == "tf_crop_and_resize" and not 0 <= at <= extent - 1
        if method == "nearest_neighbor":
            names = {"": "round" if mode == "align_corners" else "floor"}
            kind = names.get(rounding, rounding)
            whole = {
                "round": np.floor(at + 0.5), "floor": np.floor(at + 1e-5), "ceil": np.ceil(at - 1e-5),
                "round_prefer_floor": np.ceil(at - 0.5), "round_prefer_ceil": np.floor(at + 0.5),
            }[kind]  # fmt: skip
            table[i, int(np.clip(whole, 0, extent - 1))] = 1
            continue
        low = int(np.floor(at))
        for j in range(low - 1, low + 3):
            weight = max(0.0, 1 - abs(at - j)) if method == "linear" else _kernel(at - j, alpha)
            if method == "cubic" and exclude and not 0 <= j < extent:
                continue
            table[i, int(np.clip(j, 0, extent - 1))] += weight
        if method == "cubic" and exclude:
            table[i] /= table[i].sum()
    return table, outside


def resizes(d: Draw) -> Drawn:
    rank, is_last = d.number(1, 3), d.flag()
    data = d.array((d.number(1, 2), d.number(1, 3), *d.numbers(rank, 1, 6)))
    size = d.numbers(rank, 1, 8)
    method = d.pick("nearest_neighbor", "linear", "cubic")
    mode = d.pick("half_pixel", "align_corners", "asymmetric", "pytorch_half_pixel", "tf_crop_and_resize")  # fmt: skip
    if method == "nearest_neighbor" and d.flag():
        mode = "tf_half_pixel_for_nn"
    rounding = d.pick("", "floor", "ceil", "round", "round_prefer_floor", "round_prefer_ceil")
    alpha, exclude = d.pick(-0.5, -0.75), d.pick(0, 1)
    ends = [sorted(d.rng().uniform(-0.2, 1.2, 2).tolist()) for _ in range(rank)]
    beyond = d.pick(0.0, 2.5)
    expected, mask = data.astype("float64"), np.zeros((), bool)
    for k in range(rank):
        table, outside = _mix(data.shape[2 + k], size[k], method, mode, rounding, ends[k], alpha, exclude)  # fmt: skip
        expected = np.moveaxis(np.tensordot(table, expected, (1, 2 + k)), 0, 2 + k)
        mask = mask | outside.reshape([-1 if a == k else 1 for a in range(rank)])
    expected = np.where(mask, beyond, expected).astype("float32")
    layout = ("NWC", "NHWC", "NDHWC")[rank - 1] if is_last else ("NCW", "NCHW", "NCDHW")[rank - 1]
    if is_last:
        data, expected = _last(data), _last(expected)
    roi = [e[k] for k in range(2) for e in ends]
    own = {"roi": roi} if mode == "tf_crop_and_resize" else {}
    out = d.pick(None, "float64")
    return (
        lambda a: getattr(relay.image, f"resize{rank}d")(
            a, size, layout=layout, method=method, coordinate_transformation_mode=mode,
            rounding_method=rounding, cubic_alpha=alpha, cubic_exclude=exclude,
            extrapolation_value=beyond, out_dtype=out, **own,
        ),
        [data], expected.astype(out or "float32"),
    )  # fmt: skip


def crops(d: Draw) -> Drawn:
    data = d.array((d.number(1, 3), d.number(1, 3), *d.numbers(2, 1, 6)))
    count, size = d.number(0, 3), d.numbers(2, 1, 4)
    boxes = d.array((count, 4), low=-0.2, high=1.2)
    which = d.array((count,), "int32", 0, len(data))
    method, beyond, is_last = d.pick("bilinear", "nearest_neighbor"), d.pick(0, 1.5), d.flag()
    expected = np.zeros((count, data.shape[1], *size), "float32")
    extents = data.shape[2:]
    for n, y, x in itertools.product(range(count), *[range(s) for s in size]):
        at = [
            boxes[n, k] * (extents[k] - 1) + i * (boxes[n, 2 + k] - boxes[n, k]) * (extents[k] - 1) / (size[k] - 1)
            if size[k] > 1 else 0.5 * (boxes[n, k] + boxes[n, 2 + k]) * (extents[k] - 1)
            for k, i in enumerate((y, x))
        ]  # fmt: skip
        if any(not 0 <= a <= e - 1 for a, e in zip(at, extents, strict=True)):
            expected[n, :, y, x] = beyond
            continue
        image = data[which[n]]
        if method[0] == "n":
            i, j = [int(np.floor(a + 0.5)) for a in at]
            expected[n, :, y, x] = image[:, i, j]
            continue
        low = [int(np.floor(a)) for a in at]
        for i, j in itertools.product((0, 1), (0, 1)):
            weight = (1 - abs(at[0] - low[0] - i)) * (1 - abs(at[1] - low[1] - j))
            expected[n, :, y, x] += weight * image[:, min(low[0] + i, extents[0] - 1), min(low[1] + j, extents[1] - 1)]  # fmt: skip
    if is_last:
        data, expected = _last(data), _last(expected)
    return (
        lambda a, b, i: relay.image.crop_and_resize(
            a, b, i, size, "NHWC" if is_last else "NCHW", method, beyond
        ),
        [data, boxes, which], expected,
    )  # fmt: skip


def grids(d: Draw) -> Drawn:
    if d.flag():
        theta, size = d.array((d.number(1, 3), 2, 3)), d.numbers(2, 2, 5)
        found = functional.affine_grid(torch.from_numpy(theta), [len(theta), 1, *size], True)
        return lambda t: relay.image.affine_grid(t, size), [theta], found.permute(0, 3, 1, 2).numpy()  # fmt: skip
    data = d.array((d.number(1, 2), d.number(1, 3), *d.numbers(3, 1, 5)))
    grid = d.array((len(data), 3, *d.numbers(3, 1, 3)), low=-1.4, high=1.4)
    method, align = d.pick("nearest", "bilinear"), d.flag()
    padding = d.pick("zeros", "border", "reflection")
    found = functional.grid_sample(
        torch.from_numpy(data), torch.from_numpy(grid).permute(0, 2, 3, 4, 1), method, padding, align
    )  # fmt: skip
    return (
        lambda a, g: relay.image.grid_sample(a, g, method, "NCDHW", padding, align), [data, grid],
        found.numpy(),
    )  # fmt: skip


def dilations(d: Draw) -> Drawn:
    kernel, strides, dilation = d.numbers(2, 1, 3), d.numbers(2, 1, 2), d.numbers(2, 1, 2)
    before, after = d.numbers(2, 0, 1), d.numbers(2, 0, 1)
    spatial = [(k - 1) * s + d.number(1, 4) for k, s in zip(kernel, dilation, strict=True)]
    data = d.array((d.number(1, 2), d.number(1, 3), *spatial))
    weight = d.array((data.shape[1], *kernel))
    widths = [(0, 0), (0, 0), *zip(before, after, strict=True)]
    padded = np.pad(data, widths, constant_values=-np.inf)
    reach = [(k - 1) * t + 1 for k, t in zip(kernel, dilation, strict=True)]
    views = np.lib.stride_tricks.sliding_window_view(padded, reach, (2, 3))
    views = views[:, :, :: strides[0], :: strides[1], :: dilation[0], :: dilation[1]]
    expected = (views + weight[:, None, None]).max((-2, -1))
    expected = np.maximum(expected, np.finfo("float32").min)
    is_last = d.flag()
    if is_last:
        data, weight, expected = _last(data), np.moveaxis(weight, 0, -1).copy(), _last(expected)
    return (
        lambda a, w: relay.image.dilation2d(
            a, w, strides, (*before, *after), dilation, "NHWC" if is_last else "NCHW",
            "HWI" if is_last else "IHW",
        ),
        [data, weight], expected,
    )  # fmt: skip


def _detections(d: Draw, id_at: int, score_at: int, start: int, width: int) -> Array:
    batch, count = d.number(1, 2), d.number(0, 12)
    rng = d.rng()
    data = rng.uniform(0, 1, (batch, count, width)).astype("float32")
    data[..., start : start + 4] = rng.uniform(0, 1, (batch, count, 4))
    data[..., score_at] = rng.permutation(batch * count).reshape(batch, count) / max(batch * count, 1)  # fmt: skip
    if id_at >= 0:
        data[..., id_at] = rng.integers(-1, 3, (batch, count))
    return data


_PLACES = ((0, 1, 2, 6), (5, 4, 0, 6), (-1, 0, 1, 5), (-1, 4, 0, 5), (0, 5, 1, 6))


def valid_boxes(d: Draw) -> Drawn:
    id_at, score_at, _, width = places = d.pick(*_PLACES)
    data, threshold = _detections(d, *places), d.pick(0.0, 0.3, 0.7)
    counts = np.zeros(len(data), "int32")
    kept, indices = np.full_like(data, -1), np.full(data.shape[:2], -1, "int32")
    for b, rows in enumerate(data):
        good = [j for j, row in enumerate(rows) if row[score_at] > threshold and (id_at < 0 or row[id_at] >= 0)]  # fmt: skip
        counts[b] = len(good)
        kept[b, : len(good)], indices[b, : len(good)] = rows[good], good
    return (
        lambda a: relay.vision.get_valid_counts(a, threshold, id_at, score_at).astuple(), [data],
        [counts, kept, indices],
    )  # fmt: skip


def suppressions(d: Draw) -> Drawn:
    id_at, score_at, start, _ = places = d.pick(*_PLACES)
    data = _detections(d, *places)
    batch, count, _ = data.shape
    counts = np.array([d.number(0, count) for _ in range(batch)], "int32")
    indices = np.tile(d.rng().permutation(count), (batch, 1)).astype("int32")
    threshold, force, top_k = d.pick(0.2, 0.5), d.flag(), d.pick(-1, 3)
    most, given, bottom = d.pick(-1, 2), d.flag(), d.flag()
    kept: list[list[int]] = []
    orders = []
    for rows, n in zip(data, counts, strict=True):
        order = np.argsort(-rows[:n, score_at], kind="stable")
        orders.append(list(order))
        chosen = [j for j in order[: top_k if top_k > 0 else None] if id_at < 0 or rows[j, id_at] >= 0]  # fmt: skip

        def loses(k: int, j: int, common: float, rows: Array = rows) -> bool:
            return common >= threshold and (force or id_at < 0 or rows[k, id_at] == rows[j, id_at])

        kept.append(cases.greedy(chosen, rows[:, start : start + 4], loses, most))
    expected: Any
    if given:
        where = np.full((batch, count), -1, "int32")
        for b, chosen in enumerate(kept):
            where[b, : len(chosen)] = indices[b, chosen]
        expected = [where, np.array([[len(chosen)] for chosen in kept], "int32")]
    else:
        expected = np.full_like(data, -1)
        for b, chosen in enumerate(kept):
            for n, j in enumerate(chosen):
                expected[b, n if bottom else orders[b].index(j)] = data[b, j]

    def build(*args: Any) -> Any:
        found = relay.vision.non_max_suppression(
            *args, most, threshold, force, top_k, start, score_at, id_at, given, bottom
        )
        return found.astuple() if given else found

    return build, [data, counts, indices], expected


def regions(d: Draw) -> Drawn:
    data = d.array((d.number(1, 2), d.number(1, 5), *d.numbers(2, 1, 7)))
    count, size, scale = d.number(0, 4), d.numbers(2, 1, 3), d.pick(0.25, 1.0)
    corners = np.sort(d.array((count, 2, 2), low=-2, high=9), 1).reshape(count, 4)
    # numbers of images that a small step leaves as they are
    image = d.array((count, 1), "int32", 0, len(data)) + 0.25
    rois = np.concatenate([image, corners], 1).astype("float32")
    is_last = d.flag()
    layout = "NHWC" if is_last else "NCHW"
    if d.flag():
        expected = ref.roi_pool_nchw_python(data, rois, size, scale)
        if is_last:
            data, expected = _last(data), _last(expected)
        return lambda a, r: relay.vision.roi_pool(a, r, size, scale, layout), [data, rois], expected
    ratio, aligned, mode = d.pick(-1, 1, 2), d.flag(), d.pick("avg", "max")
    if aligned:  # all corners half a pixel on, and regions of less than one pixel as they are
        expected = _aligned(data, rois, size, scale, ratio, mode)
    else:
        expected = ref.roi_align_nchw_python(data, rois, size, scale, ratio, mode)
    if is_last:
        data, expected = _last(data), _last(expected)
    return (
        lambda a, r: relay.vision.roi_align(a, r, size, scale, ratio, layout, mode, aligned),
        [data, rois], expected,
    )  # fmt: skip


def _aligned(
    data: Array, rois: Array, size: tuple[int, ...], scale: float, ratio: int, mode: str
) -> Array:
    out = np.zeros((len(rois), data.shape[1], *size), "float32")
    for n, (image, x0, y0, x1, y1) in enumerate(rois.astype("float64")):
        lines = []
        for low, high, bins in ((y0, y1, size[0]), (x0, x1, size[1])):
            width = (high - low) * scale / bins
            count = ratio if ratio > 0 else int(np.ceil(width))
            step = (np.arange(count) + 0.5) / max(count, 1)
            lines.append(low * scale - 0.5 + (np.arange(bins)[:, None] + step) * width)
        for i, j in itertools.product(range(size[0]), range(size[1])):
            places = itertools.product(lines[0][i], lines[1][j])
            found = np.array([_pixel(data[int(image)], y, x) for y, x in places])
            if len(found):
                out[n, :, i, j] = found.max(0) if mode == "max" else found.mean(0)
    return out


def _pixel(image: Array, y: float, x: float) -> Array:
    extents = image.shape[1:]
    if any(not -1 <= a <= e for a, e in zip((y, x), extents, strict=True)):
        return np.zeros(len(image))
    at = [min(max(a, 0), e - 1) for a, e in zip((y, x), extents, strict=True)]
    low = [int(a) for a in at]
    total = np.zeros(len(image))
    for i, j in itertools.product((0, 1), (0, 1)):
        weight = (1 - abs(at[0] - low[0] - i)) * (1 - abs(at[1] - low[1] - j))
        total += weight * image[:, min(low[0] + i, extents[0] - 1), min(low[1] + j, extents[1] - 1)]
    return total


def anchors(d: Draw) -> Drawn:
    data = d.array((1, 1, *d.numbers(2, 1, 4)))
    sizes = tuple([d.pick(0.2, 0.5, 1.0) for _ in range(d.number(1, 3))])
    ratios = tuple([d.pick(1.0, 2.0, 0.5) for _ in range(d.number(1, 3))])
    steps, offsets, clip = d.pick((-1.0, -1.0), (0.3, 0.2)), d.pick((0.5, 0.5), (0.1, 0.7)), d.flag()  # fmt: skip
    height, width = data.shape[2:]
    found = []
    for i, j in itertools.product(range(height), range(width)):
        y = (i + offsets[0]) * (steps[0] if steps[0] > 0 else 1 / height)
        x = (j + offsets[1]) * (steps[1] if steps[1] > 0 else 1 / width)
        shapes = [(s * height / width / 2, s / 2) for s in sizes]
        first = sizes[0]
        shapes += [(first * height / width * r**0.5 / 2, first / r**0.5 / 2) for r in ratios[1:]]
        found += [(x - w, y - h, x + w, y + h) for w, h in shapes]
    expected = np.array([found], "float32")
    return (
        lambda a: relay.vision.multibox_prior(a, sizes, ratios, steps, offsets, clip), [data],
        expected.clip(0, 1) if clip else expected,
    )  # fmt: skip


def anchored_boxes(d: Draw) -> Drawn:
    batch, classes, count = d.number(1, 2), d.number(2, 4), d.number(1, 6)
    scores = d.array((batch, classes, count), low=0, high=1)
    moves = d.array((batch, count * 4), low=-1, high=1)
    low = d.array((1, count, 2), low=0, high=0.5)
    boxes = np.concatenate([low, low + d.array((1, count, 2), low=0.1, high=0.6)], -1)
    clip, threshold, background = d.flag(), d.pick(0.01, 0.5), d.flag()
    variances = d.pick((0.1, 0.1, 0.2, 0.2), (0.3, 0.2, 0.1, 0.4))
    rows, counts = np.full((batch, count, 6), -1, "float32"), np.zeros(batch, "int32")
    first = 0 if background else 1
    for b, a in itertools.product(range(batch), range(count)):
        kind = int(scores[b, first:, a].argmax()) + first
        score = scores[b, kind, a]
        kind = 0 if score < threshold else kind
        if kind == 0 and not background:
            continue
        start, end = boxes[0, a, :2], boxes[0, a, 2:]
        move = moves[b].reshape(count, 4)[a] * variances
        center = move[:2] * (end - start) + (start + end) / 2
        half = np.exp(move[2:]) * (end - start) / 2
        corners = np.concatenate([center - half, center + half])
        rows[b, counts[b]] = [kind - first, score, *(corners.clip(0, 1) if clip else corners)]
        counts[b] += 1
    return (
        lambda s, m, b: relay.vision.multibox_transform_loc(
            s, m, b, clip, threshold, variances, background
        ).astuple(),
        [scores, moves, boxes], [rows, counts],
    )  # fmt: skip


VISION = (
    resizes, crops, grids, dilations, valid_boxes, suppressions, regions, anchors, anchored_boxes,
)  # fmt: skip
