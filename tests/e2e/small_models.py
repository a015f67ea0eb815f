"""Models that no package has: a U-Net, a detector, speech, sequences, graphs."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn
from torch.nn import functional as F

Example = tuple[nn.Module, tuple[torch.Tensor, ...]]


def _twice(inside: int, outside: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(inside, outside, 3, padding=1), nn.BatchNorm2d(outside), nn.ReLU(),
        nn.Conv2d(outside, outside, 3, padding=1), nn.BatchNorm2d(outside), nn.ReLU(),
    )  # fmt: skip


class UNet(nn.Module):
    """Down, up by a transposed convolution and by interpolation, with skips."""

    def __init__(self) -> None:
        super().__init__()
        self.down = nn.ModuleList([_twice(3, 8), _twice(8, 16), _twice(16, 32)])
        self.turned = nn.ConvTranspose2d(32, 16, 2, stride=2)
        self.up = nn.ModuleList([_twice(32, 16), _twice(24, 8)])
        self.head = nn.Conv2d(8, 2, 1)

    def forward(self, x):
        first = self.down[0](x)
        second = self.down[1](F.max_pool2d(first, 2))
        third = self.down[2](F.max_pool2d(second, 2))
        x = self.up[0](torch.cat([self.turned(third), second], 1))
        x = F.interpolate(x, scale_factor=2, mode="bilinear", align_corners=False)
        return self.head(self.up[1](torch.cat([x, first], 1)))


class Detector(nn.Module):
    """Anchors on a grid; the boxes that stay are those that no better one overlaps."""

    def __init__(self, classes: int = 4, kept: int = 20) -> None:
        super().__init__()
        self.backbone = nn.Sequential(
            nn.Conv2d(3, 16, 3, 2, 1), nn.BatchNorm2d(16), nn.SiLU(),
            nn.Conv2d(16, 32, 3, 2, 1), nn.BatchNorm2d(32), nn.SiLU(),
            nn.Conv2d(32, 32, 3, 2, 1), nn.SiLU(),
        )  # fmt: skip
        self.head = nn.Conv2d(32, 5 + classes, 1)
        self.kept = kept

    def forward(self, x):
        raw = self.head(self.backbone(x)).flatten(2).transpose(1, 2)[0]
        side = int(raw.shape[0] ** 0.5)
        y, x = torch.meshgrid(torch.arange(side), torch.arange(side), indexing="ij")
        centre = (raw[:, :2].sigmoid() * 2 - 0.5 + torch.stack([x, y], -1).reshape(-1, 2)) * 8
        half = (raw[:, 2:4].sigmoid() * 2) ** 2 * 8
        scores, labels = (raw[:, 4:5].sigmoid() * raw[:, 5:].softmax(-1)).max(-1)
        scores, order = scores.topk(self.kept)
        boxes = torch.cat([centre - half, centre + half], -1)[order]
        return boxes, scores * self._stays(boxes), labels[order]

    @staticmethod
    def _stays(boxes):
        """Suppression of boxes in the order of their scores."""
        low = torch.maximum(boxes[:, None, :2], boxes[None, :, :2])
        high = torch.minimum(boxes[:, None, 2:], boxes[None, :, 2:])
        inner = (high - low).clamp(min=0).prod(-1)
        area = (boxes[:, 2:] - boxes[:, :2]).prod(-1)
        overlaps = (inner / (area[:, None] + area[None] - inner) > 0.5).float().tril(-1)
        stays = torch.ones(boxes.shape[0])
        for _ in range(boxes.shape[0]):  # each round settles at least one more box
            stays = (overlaps @ stays == 0).float()
        return stays


class Speech(nn.Module):
    """Convolutions over time, recurrent layers both ways, log probabilities."""

    def __init__(self) -> None:
        super().__init__()
        self.front = nn.Sequential(
            nn.Conv1d(20, 24, 5, stride=2, padding=2), nn.BatchNorm1d(24), nn.GELU(),
            nn.Conv1d(24, 24, 3, padding=1, groups=4), nn.Hardtanh(0, 20),
        )  # fmt: skip
        self.lstm = nn.LSTM(24, 16, num_layers=2, bidirectional=True, batch_first=True)
        self.gru = nn.GRU(32, 12, batch_first=True)
        self.head = nn.Linear(12, 29)

    def forward(self, x):
        steps = self.front(x).transpose(1, 2)
        return F.log_softmax(self.head(self.gru(self.lstm(steps)[0])[0]), -1)


class Block(nn.Module):
    """Dilated convolutions that do not look ahead, and a residual."""

    def __init__(self, inside: int, outside: int, dilation: int) -> None:
        super().__init__()
        self.pad = 2 * dilation
        make = nn.utils.parametrizations.weight_norm
        self.first = make(nn.Conv1d(inside, outside, 3, padding=self.pad, dilation=dilation))
        self.second = make(nn.Conv1d(outside, outside, 3, padding=self.pad, dilation=dilation))
        self.skip = nn.Conv1d(inside, outside, 1)

    def forward(self, x):
        y = F.relu(self.first(x)[..., : -self.pad])
        y = F.relu(self.second(y)[..., : -self.pad])
        return F.relu(y + self.skip(x))


def _temporal() -> Example:
    blocks = [Block(4, 8, 1), Block(8, 8, 2), Block(8, 8, 4)]
    return nn.Sequential(*blocks), (torch.randn(2, 4, 30),)


class GraphNet(nn.Module):
    """Messages along edges, summed where they arrive; attention over the edges of each node."""

    def __init__(self) -> None:
        super().__init__()
        self.message = nn.Linear(12, 8)
        self.score = nn.Linear(8, 1)
        self.update = nn.GRUCell(8, 6)
        self.head = nn.Linear(6, 3)

    def forward(self, nodes, edges):
        source, target = edges[0], edges[1]
        for _ in range(2):
            messages = F.relu(self.message(torch.cat([nodes[source], nodes[target]], -1)))
            weights = self.score(messages).exp()
            total = torch.zeros(nodes.shape[0], 1).scatter_add(0, target[:, None], weights)
            spread = target[:, None].expand_as(messages)
            gathered = torch.zeros(nodes.shape[0], 8).scatter_add(0, spread, messages * weights)
            nodes = self.update(gathered / (total + 1e-6), nodes)
        best = torch.full((nodes.shape[0], 6), -1e9).scatter_reduce(
            0, target[:, None].expand(-1, 6), nodes[source], "amax"
        )
        return self.head(nodes), best.clamp(min=-10)


def _graph() -> Example:
    return GraphNet(), (torch.randn(10, 6), torch.randint(0, 10, (2, 30)))


SMALL_MODELS: dict[str, Callable[[], Example]] = {
    "unet": lambda: (UNet(), (torch.randn(1, 3, 32, 32),)),
    "detector": lambda: (Detector(), (torch.randn(1, 3, 64, 64),)),
    "speech": lambda: (Speech(), (torch.randn(1, 20, 32),)),
    "temporal": _temporal,
    "graph": _graph,
}
