"""From the output layers of YOLO networks to boxes in images.

dets = fill_network_boxes((net_w, net_h), (im_w, im_h), thresh, True, layers)
do_nms_sort(dets, classes, nms_thresh)
show_detections(image, dets, thresh, names, classes)

A detection is a dictionary: `bbox`, `classes`, `prob` (of each class), `objectness`, `sort_class`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cmp_to_key
from typing import Any, NamedTuple

import numpy as np

Detection = dict[str, Any]
COLORS = ((1, 0, 1), (0, 0, 1), (0, 1, 1), (0, 1, 0), (1, 1, 0), (1, 0, 0))


class Box(NamedTuple):
    """A box by its centre and size, in parts of the image or in pixels."""

    x: float
    y: float
    w: float
    h: float


def nms_comparator(a: Detection, b: Detection) -> int:
    """The order by falling probability of `sort_class`, or by falling objectness without one."""
    chosen = b.get("sort_class", -1)
    if chosen >= 0:
        difference = a["prob"][chosen] - b["prob"][chosen]
    else:
        difference = a["objectness"] - b["objectness"]
    return int(difference < 0) - int(difference > 0)


def fill_network_boxes(
    net_shape: Sequence[int],
    im_shape: Sequence[int],
    thresh: float,
    relative: bool,
    tvm_out: Sequence[Mapping[str, Any]],
) -> list[Detection]:
    """The detections of all output layers.

    Parameters
    ----------
    net_shape, im_shape : two ints
        Width and height of the network's input and of the image.
    thresh : float
        The least objectness.
    relative : bool
        Whether boxes are in parts of the image; else in pixels.
    tvm_out : sequence of dict
        A layer's `type` ("Yolo" or "Region"), `output` (boxes, values, rows, columns), `biases`
        (widths and heights of boxes), `classes`, and `mask` (which boxes) for "Yolo".
    """
    found: list[Detection] = []
    for layer in tvm_out:
        if layer["type"] not in ("Yolo", "Region"):
            raise ValueError(f"fill_network_boxes knows Yolo and Region, got {layer['type']!r}")
        found += _detections(layer, net_shape, thresh)
    for detection in found:
        detection["bbox"] = _in_image(detection["bbox"], net_shape, im_shape, relative)
    return found


def _detections(
    layer: Mapping[str, Any], net_shape: Sequence[int], thresh: float
) -> list[Detection]:
    values, biases = np.asarray(layer["output"]), np.asarray(layer["biases"]).reshape(-1, 2)
    rows, columns = values.shape[2:]
    is_yolo = layer["type"] == "Yolo"
    # sizes are in pixels of the network, or in places of the layer
    unit = net_shape if is_yolo else (columns, rows)
    found = []
    for n, row, column in np.argwhere(values[:, 4] > thresh):
        x, y, w, h, objectness, *scores = values[n, :, row, column]
        width, height = biases[int(layer["mask"][n]) if is_yolo else n]
        prob = objectness * np.array(scores[: int(layer["classes"])])
        box = Box(
            (column + x) / columns,
            (row + y) / rows,
            np.exp(w) * width / unit[0],
            np.exp(h) * height / unit[1],
        )
        found.append({
            "bbox": box,
            "classes": int(layer["classes"]),
            "prob": np.where(prob > thresh, prob, 0),
            "objectness": float(objectness),
            "sort_class": -1,
        })  # fmt: skip
    return found


def _in_image(box: Box, net_shape: Sequence[int], im_shape: Sequence[int], relative: bool) -> Box:
    """A box of the letterboxed input, in the image."""
    scale = min(net_shape[0] / im_shape[0], net_shape[1] / im_shape[1])
    new = [int(extent * scale) for extent in im_shape]
    free = [(n - m) / 2 / n for n, m in zip(net_shape, new, strict=True)]
    ratio = [n / m for n, m in zip(net_shape, new, strict=True)]
    found = Box(
        (box.x - free[0]) * ratio[0],
        (box.y - free[1]) * ratio[1],
        box.w * ratio[0],
        box.h * ratio[1],
    )
    if relative:
        return found
    return Box(*[v * im_shape[i % 2] for i, v in enumerate(found)])


def do_nms_sort(dets: list[Detection], classes: int, thresh: float) -> None:
    """Of boxes of one class that overlap more than `thresh`, only the most probable keeps it."""
    dets.sort(key=lambda detection: detection["objectness"] == 0)
    for chosen in range(classes):
        for detection in dets:
            detection["sort_class"] = chosen
        dets.sort(key=cmp_to_key(nms_comparator))
        for i, best in enumerate(dets):
            if best["prob"][chosen] == 0:
                continue
            for other in dets[i + 1 :]:
                if _overlap(best["bbox"], other["bbox"]) > thresh:
                    other["prob"][chosen] = 0


def _overlap(a: Box, b: Box) -> float:
    """The intersection over the union."""
    common = 1.0
    for p, q, m, n in ((a.x, b.x, a.w, b.w), (a.y, b.y, a.h, b.h)):
        common *= max(min(p + m / 2, q + n / 2) - max(p - m / 2, q - n / 2), 0.0)
    union = a.w * a.h + b.w * b.h - common
    return common / union if union > 0 else 0.0


def get_detections(
    im: np.ndarray, det: Detection, thresh: float, names: Sequence[str], classes: int
) -> tuple[str, float, tuple[int, int, int, int], tuple[float, ...]] | None:
    """What to show of one detection: its label, its probability, its corners (left, top, right, bottom) in pixels, and a colour.

    Parameters
    ----------
    im : planes of the image.
    """
    likely = [k for k in range(classes) if det["prob"][k] > thresh]
    if not likely:
        return None
    _, rows, columns = im.shape
    box = det["bbox"]
    corners = (
        max(int((box.x - box.w / 2) * columns), 0),
        max(int((box.y - box.h / 2) * rows), 0),
        min(int((box.x + box.w / 2) * columns), columns - 1),
        min(int((box.y + box.h / 2) * rows), rows - 1),
    )
    offset = likely[0] * 123457 % classes
    return (
        ", ".join([names[k] for k in likely]),
        float(det["prob"][likely[0]]),
        corners,
        tuple([_color(channel, offset, classes) for channel in (2, 1, 0)]),
    )


def _color(channel: int, offset: int, count: int) -> float:
    """One of a row of colours that run into each other."""
    place = offset / count * 5
    low, part = int(place), place % 1
    return (1 - part) * COLORS[low][channel] + part * COLORS[min(low + 1, 5)][channel]


def draw_detections(
    font_path: str | None,
    im: np.ndarray,
    dets: Sequence[Detection],
    thresh: float,
    names: Sequence[str],
    classes: int,
) -> None:
    """Draw boxes and labels into the planes of an image.

    Parameters
    ----------
    font_path : a TrueType file for the labels; None for Pillow's own.
    """
    for detection in dets:
        found = get_detections(im, detection, thresh, names, classes)
        if found is None:
            continue
        label, _, (left, top, right, bottom), color = found
        _draw_box(im, (left, top, right, bottom), color)
        mask = _letters(label, font_path, max(int(im.shape[1] * 0.03), 8))
        rows = slice(max(top - mask.shape[0], 0), max(top, mask.shape[0]))
        part = im[:, rows, left : left + mask.shape[1]]
        mask = mask[: part.shape[1], : part.shape[2]]
        part[:] = np.where(mask, 0.0, np.array(color)[:, None, None])


def _draw_box(im: np.ndarray, corners: Sequence[int], color: Sequence[float]) -> None:
    left, top, right, bottom = corners
    width = max(int(im.shape[1] * 0.006), 1)
    shade = np.array(color)[:, None, None]
    for rows, columns in (
        (slice(top, top + width), slice(left, right + 1)),
        (slice(max(bottom - width + 1, 0), bottom + 1), slice(left, right + 1)),
        (slice(top, bottom + 1), slice(left, left + width)),
        (slice(top, bottom + 1), slice(max(right - width + 1, 0), right + 1)),
    ):
        im[:, rows, columns] = shade


def _letters(text: str, font_path: str | None, size: int) -> np.ndarray:
    """Where a text has ink."""
    from PIL import Image, ImageDraw, ImageFont

    font = ImageFont.load_default() if font_path is None else ImageFont.truetype(font_path, size)
    left, top, right, bottom = font.getbbox(text)
    picture = Image.new("L", (int(right - left) + 2, int(bottom - top) + 2))
    ImageDraw.Draw(picture).text((1 - left, 1 - top), text, fill=255, font=font)
    return np.asarray(picture) > 127


def show_detections(
    im: np.ndarray, dets: Sequence[Detection], thresh: float, names: Sequence[str], classes: int
) -> None:
    """Print what was found, and where."""
    for detection in dets:
        found = get_detections(im, detection, thresh, names, classes)
        if found is not None:
            label, probability, corners, _ = found
            print(f"class: {label}, probability: {probability:.3f}, corners: {corners}")
