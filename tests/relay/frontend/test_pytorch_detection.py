"""torchvision's operators for detection, against plain PyTorch.

torchvision has no CPU build here, so its operators are declared with functions of our own.
"""

from __future__ import annotations

import pytest
import torch

from benchmarks.zoo import _TORCHVISION_OPERATORS as OPERATORS
from tvm import relay

from .running import assert_close

OPERATORS.define(
    "roi_align(Tensor input, Tensor rois, float spatial_scale, SymInt pooled_height, "
    "SymInt pooled_width, int sampling_ratio, bool aligned) -> Tensor"
)


def _suppressed(boxes: torch.Tensor, scores: torch.Tensor, threshold: float) -> torch.Tensor:
    area = (boxes[:, 2:] - boxes[:, :2]).prod(1)
    dropped = torch.zeros(len(boxes), dtype=torch.bool)
    kept = []
    for i in torch.argsort(scores, descending=True).tolist():
        if dropped[i]:
            continue
        kept.append(i)
        low = torch.maximum(boxes[i, :2], boxes[:, :2])
        high = torch.minimum(boxes[i, 2:], boxes[:, 2:])
        common = (high - low).clamp(min=0).prod(1)
        dropped |= common / (area[i] + area - common) > threshold
    return torch.tensor(kept, dtype=torch.int64)


def _pooled(x, regions, scale, height, width, samples, aligned):
    """Means of samples in bins, each sample interpolated."""
    result = []
    for batch, *corners in regions.tolist():
        left, top, right, bottom = [c * scale - 0.5 * aligned for c in corners]
        tall, wide = bottom - top, right - left
        if not aligned:
            tall, wide = max(tall, 1.0), max(wide, 1.0)
        steps = [torch.arange(n * samples) / samples + 0.5 / samples for n in (height, width)]
        rows = (top + steps[0] * tall / height).clamp(0, x.shape[2] - 1)
        columns = (left + steps[1] * wide / width).clamp(0, x.shape[3] - 1)
        grid = torch.stack(torch.meshgrid(columns, rows, indexing="xy"), -1)
        grid = grid / (torch.tensor([x.shape[3], x.shape[2]]) - 1) * 2 - 1
        found = torch.nn.functional.grid_sample(x[int(batch)][None], grid[None], align_corners=True)
        result.append(torch.nn.functional.avg_pool2d(found, samples)[0])
    return torch.stack(result) if result else x.new_zeros(0, x.shape[1], height, width)


OPERATORS.impl("nms", _suppressed, "CPU")
OPERATORS.impl("roi_align", _pooled, "CPU")
torch.manual_seed(0)


def _evaluate(function, *tensors: torch.Tensor):
    script = torch.jit.trace(function, tensors, check_trace=False)
    infos = [(f"x{i}", tuple(t.shape)) for i, t in enumerate(tensors)]
    mod, params = relay.frontend.from_pytorch(script, infos)
    call = relay.create_executor("vm", mod=mod, target="llvm").evaluate()
    return call(*[t.numpy() for t in tensors], **params)


def _boxes(count: int) -> torch.Tensor:
    corners = torch.rand(count, 2) * 6
    return torch.cat([corners, corners + 1 + torch.rand(count, 2) * 3], 1)


@pytest.mark.parametrize("threshold", [0.1, 0.5])
def test_boxes_that_overlap_better_ones_are_suppressed(threshold: float) -> None:
    def best(boxes, scores):
        kept = torch.ops.torchvision.nms(boxes, scores, threshold)
        return kept, boxes[kept], scores[kept]

    boxes, scores = _boxes(20), torch.randn(20)
    for actual, expected in zip(_evaluate(best, boxes, scores), best(boxes, scores), strict=True):
        assert_close(actual.numpy(), expected.numpy())


@pytest.mark.parametrize("aligned", [False, True])
def test_regions_are_pooled(aligned: bool) -> None:
    def pool(x, regions):
        return torch.ops.torchvision.roi_align(x, regions, 0.5, 3, 2, 2, aligned)

    regions = torch.cat([torch.tensor([[0.0], [1.0], [0.0]]), _boxes(3) + 1], 1)
    x = torch.randn(2, 3, 8, 9)
    assert_close(_evaluate(pool, x, regions).numpy(), pool(x, regions).numpy())


def test_best_of_candidates_known_at_run_time() -> None:
    def best(scores):
        candidates = scores[scores > 0]
        count = torch._shape_as_tensor(candidates)[0]
        values, places = candidates.topk(torch.minimum(count, torch.tensor(4)))
        return values, places

    for seed in (0, 1):
        scores = torch.randn(9, generator=torch.Generator().manual_seed(seed))
        for actual, expected in zip(_evaluate(best, scores), best(scores), strict=True):
            assert_close(actual.numpy(), expected.numpy())
