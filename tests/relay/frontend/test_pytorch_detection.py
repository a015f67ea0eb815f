"""torchvision's operators for detection, against plain PyTorch."""

from __future__ import annotations

import pytest
import torch

import tests.torchvision_operators  # noqa: F401
from tvm import relay

from .running import assert_close

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
