"""Cases of the operators of detection networks."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np

from tvm import relay, topi

from .cases import RNG, Array, Case, floats

References = topi.testing


def boxes(count: int, batch: int = 1) -> Array:
    """Boxes with a few that overlap much: corners in no order."""
    corners = RNG.uniform(0, 1, (batch, count, 4)).astype("float32")
    near = corners[:, : count // 2] + RNG.uniform(-0.05, 0.05, (batch, count // 2, 4))
    corners[:, -(count // 2) :] = near
    return corners


def detections(count: int, batch: int = 2, classes: int = 3) -> Array:
    """(batch, count, 6): class, score and corners."""
    kinds = RNG.integers(-1, classes, (batch, count, 1))
    scores = RNG.permutation(batch * count).reshape(batch, count, 1) / (batch * count)
    return np.concatenate([kinds, scores, boxes(count, batch)], -1).astype("float32")


def iou(a: Array, b: Array, pixel: float = 0.0) -> float:
    low = [np.minimum(x[:2], x[2:]) for x in (a, b)]
    high = [np.maximum(x[:2], x[2:]) + pixel for x in (a, b)]
    common = np.prod(np.maximum(np.minimum(*high) - np.maximum(*low), 0))
    union = sum([np.prod(h - lo) for h, lo in zip(high, low, strict=True)]) - common
    return float(common / union) if union > 0 else 0.0


def greedy(
    order: Any, corners: Array, loses: Callable[[int, int, float], bool], most: int = -1
) -> list[int]:
    kept: list[int] = []
    for j in order:
        if 0 <= most <= len(kept):
            break
        if not any(loses(k, j, iou(corners[k], corners[j])) for k in kept):
            kept.append(int(j))
    return kept


def valid_counts(data: Array, threshold: Any) -> list[Array]:
    counts = np.zeros(len(data), "int32")
    rows, indices = np.full_like(data, -1), np.full(data.shape[:2], -1, "int32")
    for b, batch in enumerate(data):
        good = np.flatnonzero((batch[:, 1] > threshold) & (batch[:, 0] >= 0))
        counts[b] = len(good)
        rows[b, : len(good)], indices[b, : len(good)] = batch[good], good
    return [counts, rows, indices]


def suppressed(
    data: Array, counts: Array, threshold: float, force: bool, top_k: int, most: int
) -> list[list[int]]:
    found = []
    for batch, count in zip(data, counts, strict=True):
        order = np.argsort(-batch[:count, 1], kind="stable")[: top_k if top_k > 0 else None]
        order = [j for j in order if batch[j, 0] >= 0]

        def loses(k: int, j: int, common: float, batch: Array = batch) -> bool:
            return common >= threshold and (force or batch[k, 0] == batch[j, 0])

        found.append(greedy(order, batch[:, 2:], loses, most))
    return found


def _nms_indices(data: Array, counts: Array, indices: Array, *options: Any) -> list[Array]:
    kept = suppressed(data, counts, *options)
    out = np.full(indices.shape, -1, "int32")
    for b, chosen in enumerate(kept):
        out[b, : len(chosen)] = indices[b, chosen]
    return [out, np.array([[len(chosen)] for chosen in kept], "int32")]


def _nms_boxes(data: Array, counts: Array, is_compact: bool, *options: Any) -> Array:
    out = np.full_like(data, -1)
    for b, chosen in enumerate(suppressed(data, counts, *options)):
        order = list(np.argsort(-data[b, : counts[b], 1], kind="stable"))
        for n, j in enumerate(chosen):
            out[b, n if is_compact else order.index(j)] = data[b, j]
    return out


def _all_class(corners: Array, scores: Array, most: int, limit: float, least: float) -> list[Any]:
    found = []
    for b, rows in enumerate(scores):
        for c, row in enumerate(rows):
            order = [j for j in np.argsort(-row, kind="stable") if row[j] > least]
            kept = greedy(order, corners[b], lambda k, j, common: common > limit, most)
            found += [(b, c, j) for j in kept]
    return found


def _onnx(corners: Array, scores: Array, *options: Any) -> list[Array]:
    found = _all_class(corners, scores, *options)
    out = np.zeros((scores.size, 3), "int64")
    out[: len(found)] = np.reshape(found, (-1, 3))
    return [out, np.array([len(found)], "int64")]


def _tensorflow(corners: Array, scores: Array, *options: Any) -> list[Array]:
    batch, classes, count = scores.shape
    rows = np.zeros((batch, classes * count, 2), "int64")
    values, totals = np.zeros((batch, classes * count), "float32"), np.zeros(batch, "int64")
    for b, c, j in _all_class(corners, scores, *options):
        rows[b, totals[b]], values[b, totals[b]] = (c, j), scores[b, c, j]
        totals[b] += 1
    return [rows, values, totals]


def _regular(
    corners: Array, scores: Array, per_class: int, most: int, classes: int, limit: float,
    least: float,
) -> list[Array]:  # fmt: skip
    batch = len(corners)
    out, kinds = np.zeros((batch, most, 4), "float32"), np.zeros((batch, most), "float32")
    values, totals = np.zeros((batch, most), "float32"), np.zeros(batch, "float32")
    offset = scores.shape[2] - classes
    for b in range(batch):
        found = []
        for c in range(classes):
            row = scores[b, :, c + offset]
            order = [j for j in np.argsort(-row, kind="stable") if row[j] >= least]
            kept = greedy(order, corners[b], lambda k, j, common: common > limit, per_class)
            found += [(-row[j], c, j) for j in kept]
        for n, (value, c, j) in enumerate(sorted(found, key=lambda f: f[0])[:most]):
            out[b, n], kinds[b, n], values[b, n] = corners[b, j], c, -value
            totals[b] += 1
    return [out, kinds, values, totals]


def _prior(
    data: Array, sizes: Any, ratios: Any, steps: Any, clip: bool, offsets: Any = (0.5, 0.5)
) -> Array:
    height, width = data.shape[2:]
    found = []
    for i in range(height):
        for j in range(width):
            y = (i + offsets[0]) * (steps[0] if steps[0] > 0 else 1 / height)
            x = (j + offsets[1]) * (steps[1] if steps[1] > 0 else 1 / width)
            shapes = [(s * height / width / 2, s / 2) for s in sizes]
            shapes += [
                (sizes[0] * height / width * r**0.5 / 2, sizes[0] / r**0.5 / 2) for r in ratios[1:]
            ]
            found += [(x - w, y - h, x + w, y + h) for w, h in shapes]
    out = np.array([found], "float32")
    return out.clip(0, 1) if clip else out


def _transform_loc(
    scores: Array, moves: Array, anchors: Array, threshold: float, background: bool
) -> list[Array]:
    batch, _, count = scores.shape
    rows, counts = np.full((batch, count, 6), -1, "float32"), np.zeros(batch, "int32")
    first = 0 if background else 1
    for b in range(batch):
        for a in range(count):
            kind = int(scores[b, first:, a].argmax()) + first
            score = scores[b, kind, a]
            kind = 0 if score < threshold else kind
            if kind == 0 and not background:
                continue
            low, high = anchors[0, a, :2], anchors[0, a, 2:]
            move, grow = moves[b].reshape(count, 2, 2)[a]
            center = move * 0.1 * (high - low) + (low + high) / 2
            half = np.exp(grow * 0.2) * (high - low) / 2
            corners = np.concatenate([center - half, center + half]).clip(0, 1)
            rows[b, counts[b]] = [kind - first, score, *corners]
            counts[b] += 1
    return [rows, counts]


def _proposal(
    scores: Array, moves: Array, image: Array, scales: Any, ratios: Any, stride: int,
    limit: float, pre: int, post: int, min_size: int, iou_loss: bool,
) -> Array:  # fmt: skip
    generate = import_module("tvm.topi.vision.rcnn.proposal").generate_anchor
    anchors = [generate(r, s, stride) for r in ratios for s in scales]
    batch, _, height, width = scores.shape
    out = []
    for b in range(batch):
        im_h, im_w, im_scale = image[b]
        rows = []
        for y in range(height):
            for x in range(width):
                for k, anchor in enumerate(anchors):
                    box = np.array(anchor) + [x * stride, y * stride] * 2
                    d = moves[b, 4 * k : 4 * k + 4, y, x]
                    if iou_loss:
                        box = box + d
                    else:
                        extent = box[2:] - box[:2] + 1
                        center = box[:2] + 0.5 * (extent - 1) + d[:2] * extent
                        half = 0.5 * (np.exp(d[2:]) * extent - 1)
                        box = np.concatenate([center - half, center + half])
                    box = box.clip(0, np.array([im_w - 1, im_h - 1] * 2))
                    score = scores[b, len(anchors) + k, y, x]
                    least = im_scale * min_size
                    if (box[2:] - box[:2] + 1 < least).any():
                        box, score = box + np.array([-1, -1, 1, 1]) * least / 2, -1.0
                    if x >= im_w // stride or y >= im_h // stride:
                        score = -1.0
                    rows.append((*box, score))
        table = np.array(rows, "float32")
        order = np.argsort(-table[:, 4], kind="stable")[:pre]
        kept: list[int] = []
        for j in order:
            if len(kept) < post and not any(
                iou(table[k, :4], table[j, :4], 1.0) > limit for k in kept
            ):
                kept.append(j)
        out += [(b, *table[kept[n % len(kept)], :4]) for n in range(post)]
    return np.array(out, "float32")


def _regions(count: int, batch: int, extent: float) -> Array:
    corners = np.sort(RNG.uniform(-2, extent + 2, (count, 2, 2)), axis=1).reshape(count, 4)
    return np.concatenate([RNG.integers(0, batch, (count, 1)), corners], 1).astype("float32")


def _scores(*shape: int) -> Array:
    """Distinct scores, so that the order is determined."""
    size = int(np.prod(shape))
    return (RNG.permutation(size).reshape(shape) / max(size, 1)).astype("float32")


def vision_cases() -> list[Case]:
    return [*_suppression_cases(), *_region_cases(), *_ssd_cases()]


def _suppression_cases() -> list[Case]:
    data = detections(24)
    counts = np.array([24, 13], "int32")
    indices = RNG.permutation(48).reshape(2, 24).astype("int32")
    corners, scores = boxes(15, 2), _scores(2, 3, 15)

    def nms(*options: Any, **named: Any) -> Any:
        def build(*args: Any) -> Any:
            found = relay.vision.non_max_suppression(*args, *options, **named)
            return found.astuple() if isinstance(found, relay.expr.TupleWrapper) else found

        return build

    def all_class(*options: Any) -> Any:
        return lambda b, s: relay.vision.all_class_non_max_suppression(b, s, *options).astuple()

    regular = (4, 9, 2, 0.3, 0.2)
    table: list[tuple[str, Any, tuple[Array, ...], Any]] = [
        ("vision.get_valid_counts", lambda a: relay.vision.get_valid_counts(a, 0.4).astuple(), (data,), lambda a: valid_counts(a, 0.4)),
        ("vision.get_valid_counts", lambda a, t: relay.vision.get_valid_counts(a, t).astuple(), (data, np.array(0.7, "float32")), valid_counts),
        ("vision.non_max_suppression", nms(-1, 0.5), (data, counts, indices), lambda *a: _nms_indices(*a, 0.5, False, -1, -1)),
        ("vision.non_max_suppression", nms(3, 0.3, True, 9), (data, counts, indices), lambda *a: _nms_indices(*a, 0.3, True, 9, 3)),
        ("vision.non_max_suppression", nms(-1, 0.0), (data, counts, indices), lambda d, c, i: [np.where(np.arange(24) < c[:, None], i, -1), c[:, None]]),
        ("vision.non_max_suppression", nms(4, 0.3, return_indices=False), (data, counts, indices), lambda d, c, i: _nms_boxes(d, c, False, 0.3, False, -1, 4)),
        ("vision.non_max_suppression", nms(-1, 0.5, return_indices=False, invalid_to_bottom=True), (data, counts, indices), lambda d, c, i: _nms_boxes(d, c, True, 0.5, False, -1, -1)),
        ("vision.all_class_non_max_suppression", all_class(-1, 0.5, 0.1), (corners, scores), lambda b, s: _onnx(b, s, -1, 0.5, 0.1)),
        ("vision.all_class_non_max_suppression", all_class(2, 0.2, 0.5), (corners, scores), lambda b, s: _onnx(b, s, 2, 0.2, 0.5)),
        ("vision.all_class_non_max_suppression", all_class(0, 0.2, 0.5), (corners, scores), lambda b, s: _onnx(b, s, 0, 0.2, 0.5)),
        ("vision.all_class_non_max_suppression", all_class(5, 0.4, 0.2, "tensorflow"), (corners, scores), lambda b, s: _tensorflow(b, s, 5, 0.4, 0.2)),
        ("vision.regular_non_max_suppression", lambda b, s: relay.vision.regular_non_max_suppression(b, s, *regular).astuple(), (corners, scores.transpose(0, 2, 1).copy()), lambda b, s: _regular(b, s, *regular)),
    ]  # fmt: skip
    return [Case(name, build, inputs, expected) for name, build, inputs, expected in table]


def _region_cases() -> list[Case]:
    maps, regions = floats(2, 5, 9, 11), _regions(7, 2, 18)
    channels_last = maps.transpose(0, 2, 3, 1).copy()
    vision = relay.vision
    anchors = {"scales": (8.0, 4.0), "ratios": (0.5, 1.0), "feature_stride": 16, "threshold": 0.5}
    limits = {"rpn_pre_nms_top_n": 30, "rpn_post_nms_top_n": 8, "rpn_min_size": 4}
    image = np.array([[80, 96, 1.0], [64, 60, 1.5]], "float32")
    rpn = (_scores(2, 8, 5, 6), floats(2, 16, 5, 6, low=-0.3, high=0.3), image)
    table: list[tuple[str, Any, tuple[Array, ...], Any]] = [
        ("vision.roi_align", lambda a, r: vision.roi_align(a, r, (3, 4), 0.5, 2), (maps, regions), lambda a, r: References.roi_align_nchw_python(a, r, (3, 4), 0.5, 2)),
        ("vision.roi_align", lambda a, r: vision.roi_align(a, r, 3, 0.5), (maps, regions), lambda a, r: References.roi_align_nchw_python(a, r, 3, 0.5, -1)),
        ("vision.roi_align", lambda a, r: vision.roi_align(a, r, 3, 0.5, 2, mode="max"), (maps, regions), lambda a, r: References.roi_align_nchw_python(a, r, 3, 0.5, 2, b"max")),
        ("vision.roi_align", lambda a, r: vision.roi_align(a, r, 3, 0.5, 2, "NHWC"), (channels_last, regions), lambda a, r: References.roi_align_nhwc_python(a, r, 3, 0.5, 2)),
        ("vision.roi_align", lambda a, r: vision.roi_align(a, r, 3, 0.5, 2), (maps, regions[:0]), lambda a, r: np.zeros((0, 5, 3, 3), "float32")),
        ("vision.roi_pool", lambda a, r: vision.roi_pool(a, r, (3, 2), 0.5), (maps, regions), lambda a, r: References.roi_pool_nchw_python(a, r, (3, 2), 0.5)),
        ("vision.roi_pool", lambda a, r: vision.roi_pool(a, r, 3, 0.5, "NHWC"), (channels_last, regions), lambda a, r: References.roi_pool_nchw_python(a.transpose(0, 3, 1, 2), r, 3, 0.5).transpose(0, 2, 3, 1)),
        ("vision.proposal", lambda *a: vision.proposal(*a, **anchors, **limits, iou_loss=False), rpn, lambda *a: _proposal(*a, *anchors.values(), *limits.values(), False)),
        ("vision.proposal", lambda *a: vision.proposal(*a, **anchors, **limits, iou_loss=True), rpn, lambda *a: _proposal(*a, *anchors.values(), *limits.values(), True)),
        ("vision.yolo_reorg", lambda a: vision.yolo_reorg(a, 2), (floats(2, 8, 4, 6),), lambda a: References.reorg_python(a, 2)),
        ("vision.yolo_reorg", lambda a: vision.yolo_reorg(a, 3), (floats(1, 9, 3, 6),), lambda a: References.reorg_python(a, 3)),
    ]  # fmt: skip
    return [Case(name, build, inputs, expected, 1e-4) for name, build, inputs, expected in table]


def _ssd_cases() -> list[Case]:
    sizes, ratios = (0.5, 0.25), (1.0, 2.0, 0.5)
    vision = relay.vision
    anchors = np.sort(RNG.uniform(0, 1, (1, 7, 2, 2)), axis=2).reshape(1, 7, 4).astype("float32")
    inputs = (_scores(2, 4, 7), floats(2, 28), anchors)
    table: list[tuple[str, Any, tuple[Array, ...], Any]] = [
        ("vision.multibox_prior", lambda a: vision.multibox_prior(a, sizes, ratios), (floats(1, 3, 4, 6),), lambda a: _prior(a, sizes, ratios, (-1, -1), False)),
        ("vision.multibox_prior", lambda a: vision.multibox_prior(a, sizes, ratios, (0.3, 0.2), clip=True), (floats(1, 3, 4, 6),), lambda a: _prior(a, sizes, ratios, (0.3, 0.2), True)),
        ("vision.multibox_transform_loc", lambda *a: vision.multibox_transform_loc(*a, threshold=0.6).astuple(), inputs, lambda *a: _transform_loc(*a, 0.6, False)),
        ("vision.multibox_transform_loc", lambda *a: vision.multibox_transform_loc(*a, threshold=0.3, keep_background=True).astuple(), inputs, lambda *a: _transform_loc(*a, 0.3, True)),
    ]  # fmt: skip
    return [Case(name, build, inputs, expected) for name, build, inputs, expected in table]
