"""torchvision's own operators in plain PyTorch: it has no CPU build here.

Importing this module declares and defines them, so that torchvision's detectors run.
"""

from __future__ import annotations

import math
import sys

import torch

from benchmarks.zoo import _TORCHVISION_OPERATORS as OPERATORS


def _suppressed(boxes: torch.Tensor, scores: torch.Tensor, threshold: float) -> torch.Tensor:
    area = (boxes[:, 2:] - boxes[:, :2]).prod(1)
    dropped = torch.zeros(len(boxes), dtype=torch.bool)
    kept = []
    for i in torch.argsort(scores, descending=True, stable=True).tolist():
        if dropped[i]:
            continue
        kept.append(i)
        low = torch.maximum(boxes[i, :2], boxes[:, :2])
        high = torch.minimum(boxes[i, 2:], boxes[:, 2:])
        common = (high - low).clamp(min=0).prod(1)
        dropped |= common / (area[i] + area - common) > threshold
    return torch.tensor(kept, dtype=torch.int64)


def _pooled(x, regions, scale, height, width, samples, aligned):
    """Means of samples in bins, each sample interpolated; outside the image there is nothing."""
    result = []
    for batch, *corners in regions.tolist():
        left, top, right, bottom = [c * scale - 0.5 * aligned for c in corners]
        tall, wide = bottom - top, right - left
        if not aligned:
            tall, wide = max(tall, 1.0), max(wide, 1.0)
        counts = [
            samples if samples > 0 else max(math.ceil(extent / bins), 1)
            for extent, bins in ((tall, height), (wide, width))
        ]
        steps = [
            torch.arange(bins * n) / n + 0.5 / n
            for bins, n in zip((height, width), counts, strict=True)
        ]  # fmt: skip
        rows, columns = top + steps[0] * tall / height, left + steps[1] * wide / width
        inside = _within(rows, x.shape[2])[:, None] & _within(columns, x.shape[3])
        found = _interpolated(x[int(batch)], rows, columns) * inside
        result.append(torch.nn.functional.avg_pool2d(found[None], counts)[0])
    return torch.stack(result) if result else x.new_zeros(0, x.shape[1], height, width)


def _within(places: torch.Tensor, extent: int) -> torch.Tensor:
    return (places >= -1) & (places <= extent)


def _interpolated(image: torch.Tensor, rows: torch.Tensor, columns: torch.Tensor) -> torch.Tensor:
    """The image at the crossings of rows and columns."""
    result = image
    for axis, places in ((1, rows), (2, columns)):
        last = image.shape[axis] - 1
        places = places.clamp(0, last)
        low = places.floor().long()
        part = places - low
        part = part[:, None] if axis == 1 else part
        first = result.index_select(axis, low)
        second = result.index_select(axis, (low + 1).clamp(max=last))
        result = first * (1 - part) + second * part
    return result


def _is_built() -> bool:
    return True


OPERATORS.define(
    "roi_align(Tensor input, Tensor rois, float spatial_scale, SymInt pooled_height, "
    "SymInt pooled_width, int sampling_ratio, bool aligned) -> Tensor"
)
OPERATORS.impl("nms", _suppressed, "CPU")
OPERATORS.impl("roi_align", _pooled, "CPU")
for _module in ("torchvision.extension", "torchvision.ops.roi_align"):
    sys.modules[_module]._has_ops = _is_built  # type: ignore[attr-defined]
