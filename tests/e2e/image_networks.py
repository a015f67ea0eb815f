"""Networks of images as their papers describe them, small: blocks that no package here has."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn
from torch.nn import functional as F

from benchmarks.networks import Example


def _conv(inside: int, outside: int, size: int = 3, stride: int = 1, groups: int = 1) -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(inside, outside, size, stride, size // 2, groups=groups, bias=False),
        nn.BatchNorm2d(outside), nn.SiLU(),
    )  # fmt: skip


class Ghost(nn.Module):
    """Half of the channels are cheap images of the other half."""

    def __init__(self, inside: int, outside: int) -> None:
        super().__init__()
        self.first = _conv(inside, outside // 2, 1)
        self.cheap = _conv(outside // 2, outside - outside // 2, 3, groups=outside // 2)

    def forward(self, x):
        x = self.first(x)
        return torch.cat([x, self.cheap(x)], 1)


class GhostNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stem = _conv(3, 16, stride=2)
        self.blocks = nn.Sequential(Ghost(16, 24), _conv(24, 24, 3, 2, 24), Ghost(24, 32))
        self.squeeze = nn.Sequential(
            nn.AdaptiveAvgPool2d(1), nn.Conv2d(32, 8, 1), nn.ReLU(), nn.Conv2d(8, 32, 1),
            nn.Hardsigmoid(),
        )  # fmt: skip
        self.head = nn.Linear(32, 10)

    def forward(self, x):
        x = self.blocks(self.stem(x))
        return self.head((x * self.squeeze(x)).mean((2, 3)))


class Added(nn.Module):
    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, x):
        return x + self.inner(x)


def _conv_mixer() -> nn.Module:
    blocks = [
        nn.Sequential(
            Added(nn.Sequential(nn.Conv2d(24, 24, 7, groups=24, padding="same"), nn.GELU(),
                                nn.BatchNorm2d(24))),
            nn.Conv2d(24, 24, 1), nn.GELU(), nn.BatchNorm2d(24),
        )
        for _ in range(2)
    ]  # fmt: skip
    return nn.Sequential(
        nn.Conv2d(3, 24, 4, 4), nn.GELU(), nn.BatchNorm2d(24), *blocks,
        nn.AdaptiveAvgPool2d((1, 1)), nn.Flatten(), nn.Linear(24, 10),
    )  # fmt: skip


class Mixer(nn.Module):
    """Dense layers over the places, then over the channels."""

    def __init__(self, places: int, channels: int) -> None:
        super().__init__()
        self.norms = nn.ModuleList([nn.LayerNorm(channels), nn.LayerNorm(channels)])
        self.places = nn.Sequential(nn.Linear(places, 32), nn.GELU(), nn.Linear(32, places))
        self.channels = nn.Sequential(nn.Linear(channels, 48), nn.GELU(), nn.Linear(48, channels))

    def forward(self, x):
        x = x + self.places(self.norms[0](x).mT).mT
        return x + self.channels(self.norms[1](x))


def _mlp_mixer() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(3, 24, 8, 8), nn.Flatten(2), nn.Unflatten(1, (24,)), Transposed(),
        Mixer(16, 24), Mixer(16, 24), nn.LayerNorm(24),
    )  # fmt: skip


class Transposed(nn.Module):
    def forward(self, x):
        return x.transpose(1, 2)


class RelativeAttention(nn.Module):
    """CoAtNet: attention with a bias for how far the places are apart."""

    def __init__(self, side: int, channels: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.table = nn.Parameter(torch.randn((2 * side - 1) ** 2, heads))
        places = torch.stack(
            torch.meshgrid(torch.arange(side), torch.arange(side), indexing="ij")
        ).flatten(1)
        apart = places[:, :, None] - places[:, None] + side - 1
        self.register_buffer("index", apart[0] * (2 * side - 1) + apart[1])
        self.qkv = nn.Linear(channels, 3 * channels, bias=False)
        self.out = nn.Linear(channels, channels)

    def forward(self, x):
        image = x.shape
        x = x.flatten(2).transpose(1, 2)
        q, k, v = (
            part.unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for part in self.qkv(x).chunk(3, dim=-1)
        )
        bias = self.table[self.index.view(-1)].view(*self.index.shape, -1).permute(2, 0, 1)
        weights = torch.softmax(q @ k.mT * q.shape[-1] ** -0.5 + bias, -1)
        x = self.out((weights @ v).transpose(1, 2).flatten(2))
        return x.transpose(1, 2).reshape(image)


class CoAtNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stem = _conv(3, 16, stride=2)
        self.inverted = nn.Sequential(
            _conv(16, 32, 1), _conv(32, 32, 3, 2, 32), SqueezeExcite(32), nn.Conv2d(32, 24, 1)
        )
        self.attention = Added(RelativeAttention(8, 24, 4))
        self.head = nn.Linear(24, 10)

    def forward(self, x):
        x = self.attention(self.inverted(self.stem(x)))
        return self.head(F.adaptive_avg_pool2d(x, 1).squeeze(-1).squeeze(-1))


class SqueezeExcite(nn.Module):
    def __init__(self, channels: int) -> None:
        super().__init__()
        self.weights = nn.Sequential(
            nn.Linear(channels, channels // 4), nn.ReLU(inplace=True),
            nn.Linear(channels // 4, channels), nn.Sigmoid(),
        )  # fmt: skip

    def forward(self, x):
        batch, channels = x.size()[:2]
        y = F.adaptive_avg_pool2d(x, 1).view(batch, channels)
        return x * self.weights(y).view(batch, channels, 1, 1).expand_as(x)


class EdgeNeXt(nn.Module):
    """Splits of the channels, each with those before it; attention between channels."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 32, 4, 4)
        self.parts = nn.ModuleList([nn.Conv2d(8, 8, 3, padding=1, groups=8) for _ in range(3)])
        self.norm = nn.LayerNorm(32, eps=1e-6)
        self.qkv = nn.Linear(32, 96)
        self.temperature = nn.Parameter(torch.ones(4, 1, 1))
        self.scale = nn.Parameter(1e-1 * torch.ones(32))

    def forward(self, x):
        x = self.stem(x)
        pieces = list(torch.split(x, 8, 1))
        for i, part in enumerate(self.parts):
            pieces[i] = part(pieces[i] if i == 0 else pieces[i] + pieces[i - 1])
        x = torch.cat(pieces, 1)
        batch, channels, rows, columns = x.shape
        tokens = x.reshape(batch, channels, rows * columns).permute(0, 2, 1)
        qkv = self.qkv(self.norm(tokens)).reshape(batch, -1, 3, 4, 8).permute(2, 0, 3, 4, 1)
        q, k, v = F.normalize(qkv[0], dim=-1), F.normalize(qkv[1], dim=-1), qkv[2]
        weights = (q @ k.transpose(-2, -1) * self.temperature).softmax(dim=-1)
        y = (weights @ v).permute(0, 3, 1, 2).reshape(batch, -1, channels)
        tokens = tokens + self.scale * y
        return tokens.permute(0, 2, 1).reshape(batch, channels, rows, columns)


class RepBlock(nn.Module):
    """RepVGG as it is trained: three branches whose sum a convolution could compute."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.large = nn.Sequential(nn.Conv2d(channels, channels, 3, 1, 1), nn.BatchNorm2d(channels))
        self.small = nn.Sequential(nn.Conv2d(channels, channels, 1), nn.BatchNorm2d(channels))
        self.same = nn.BatchNorm2d(channels)

    def forward(self, x):
        return F.relu(self.large(x) + self.small(x) + self.same(x), inplace=True)


class HighResolution(nn.Module):
    """HRNet: branches at several sizes that exchange what they find."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = _conv(3, 8, stride=2)
        self.shrink = nn.ModuleList([_conv(8, 16, 3, 2), _conv(16, 32, 3, 2)])
        self.branches = nn.ModuleList([_conv(c, c) for c in (8, 16, 32)])
        self.up = nn.ModuleList([nn.Conv2d(16, 8, 1), nn.Conv2d(32, 8, 1)])
        self.down = nn.ModuleList([nn.Conv2d(8, 16, 3, 2, 1), nn.Conv2d(8, 32, 5, 4, 2)])

    def forward(self, x):
        first = self.stem(x)
        second = self.shrink[0](first)
        third = self.shrink[1](second)
        levels = [b(v) for b, v in zip(self.branches, (first, second, third), strict=True)]
        size = levels[0].shape[-2:]
        large = levels[0]
        for up, level in zip(self.up, levels[1:], strict=True):
            large = large + F.interpolate(up(level), size=size, mode="bilinear", align_corners=True)
        rest = [F.relu(v + d(levels[0])) for v, d in zip(levels[1:], self.down, strict=True)]
        return F.relu(large), *rest


class NestedUNet(nn.Module):
    """UNet++: nodes between the two sides, and outputs of each depth."""

    def __init__(self) -> None:
        super().__init__()
        widths = (8, 16, 32)
        self.first = nn.ModuleList([_conv(i, o) for i, o in zip((3, 8, 16), widths, strict=True)])
        self.up = nn.Upsample(scale_factor=2, mode="bilinear", align_corners=True)
        self.node01, self.node11 = _conv(8 + 16, 8), _conv(16 + 32, 16)
        self.node02 = _conv(8 + 8 + 16, 8)
        self.heads = nn.ModuleList([nn.Conv2d(8, 2, 1), nn.Conv2d(8, 2, 1)])

    def forward(self, x):
        x00 = self.first[0](x)
        x10 = self.first[1](F.max_pool2d(x00, 2))
        x01 = self.node01(torch.cat([x00, self.up(x10)], 1))
        x20 = self.first[2](F.max_pool2d(x10, 2, ceil_mode=True))
        x11 = self.node11(torch.cat([x10, self.up(x20)], 1))
        x02 = self.node02(torch.cat([x00, x01, self.up(x11)], 1))
        return [self.heads[0](x01), self.heads[1](x02)]


class CrossStage(nn.Module):
    """YOLO's C2f: bottlenecks each of which is kept."""

    def __init__(self, inside: int, outside: int, count: int = 1) -> None:
        super().__init__()
        self.half = outside // 2
        self.enter = _conv(inside, 2 * self.half, 1)
        self.blocks = nn.ModuleList(
            [nn.Sequential(_conv(self.half, self.half), _conv(self.half, self.half))
             for _ in range(count)]
        )  # fmt: skip
        self.leave = _conv((2 + count) * self.half, outside, 1)

    def forward(self, x):
        found = list(self.enter(x).chunk(2, 1))
        found.extend(found[-1] + block(found[-1]) for block in self.blocks)
        return self.leave(torch.cat(found, 1))


class FastPyramidPooling(nn.Module):
    def __init__(self, channels: int) -> None:
        super().__init__()
        self.enter, self.leave = _conv(channels, channels, 1), _conv(4 * channels, channels, 1)
        self.pool = nn.MaxPool2d(kernel_size=5, stride=1, padding=2)

    def forward(self, x):
        levels = [self.enter(x)]
        for _ in range(3):
            levels.append(self.pool(levels[-1]))
        return self.leave(torch.cat(levels, 1))


class YoloTrunk(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(_conv(3, 8, 3, 2), _conv(8, 16, 3, 2), CrossStage(16, 16))
        self.deep = nn.Sequential(_conv(16, 32, 3, 2), CrossStage(32, 32), FastPyramidPooling(32))
        self.up = nn.Upsample(None, 2, "nearest")
        self.merge = CrossStage(48, 16)
        self.shrink = _conv(16, 32, 3, 2)
        self.last = CrossStage(64, 32)

    def forward(self, x):
        large = self.stem(x)
        small = self.deep(large)
        large = self.merge(torch.cat([self.up(small), large], 1))
        return large, self.last(torch.cat([self.shrink(large), small], 1))


class YoloV8(nn.Module):
    """Distances to the sides of boxes, each the mean of a distribution over bins."""

    def __init__(self, classes: int = 4, bins: int = 8) -> None:
        super().__init__()
        self.trunk, self.classes, self.bins = YoloTrunk(), classes, bins
        self.boxes = nn.ModuleList([nn.Conv2d(c, 4 * bins, 1) for c in (16, 32)])
        self.scores = nn.ModuleList([nn.Conv2d(c, classes, 1) for c in (16, 32)])

    def forward(self, x):
        levels = self.trunk(x)
        raw = [
            torch.cat((box(v), score(v)), 1).view(v.shape[0], 4 * self.bins + self.classes, -1)
            for v, box, score in zip(levels, self.boxes, self.scores, strict=True)
        ]
        box, scores = torch.cat(raw, 2).split((4 * self.bins, self.classes), 1)
        weights = torch.arange(self.bins, dtype=x.dtype).view(1, self.bins, 1, 1)
        batch, _, anchors = box.shape
        sides = box.view(batch, 4, self.bins, anchors).transpose(2, 1).softmax(1)
        low, high = (sides * weights).sum(1).chunk(2, 1)
        centres, strides = self._centres(levels)
        start, end = centres - low, centres + high
        return torch.cat(((start + end) / 2, end - start), 1) * strides, scores.sigmoid()

    @staticmethod
    def _centres(levels):
        places, strides = [], []
        for level, stride in zip(levels, (4, 8), strict=True):
            rows, columns = level.shape[-2:]
            y = torch.arange(rows, dtype=level.dtype) + 0.5
            x = torch.arange(columns, dtype=level.dtype) + 0.5
            y, x = torch.meshgrid(y, x, indexing="ij")
            places.append(torch.stack((x, y), -1).view(-1, 2))
            strides.append(torch.full((rows * columns, 1), stride, dtype=level.dtype))
        return torch.cat(places).T[None], torch.cat(strides).T


class YoloV5(nn.Module):
    """Anchors, and suppression of the boxes of each class that better ones overlap."""

    def __init__(self, classes: int = 4) -> None:
        super().__init__()
        self.trunk = YoloTrunk()
        self.heads = nn.ModuleList([nn.Conv2d(c, 3 * (5 + classes), 1) for c in (16, 32)])
        self.register_buffer("anchors", torch.rand(2, 3, 2) * 20 + 8)

    def forward(self, x):
        from torchvision.ops import nms

        found = []
        for i, (head, level) in enumerate(zip(self.heads, self.trunk(x), strict=True)):
            y = head(level)
            batch, _, rows, columns = y.shape
            y = y.view(batch, 3, -1, rows, columns).permute(0, 1, 3, 4, 2).contiguous().sigmoid()
            grid = torch.stack(
                torch.meshgrid(torch.arange(columns), torch.arange(rows), indexing="xy"), 2
            )
            stride = x.shape[2] / rows
            middle = (y[..., 0:2] * 2.0 - 0.5 + grid) * stride
            extent = (y[..., 2:4] * 2) ** 2 * self.anchors[i].view(1, 3, 1, 1, 2)
            found.append(torch.cat((middle, extent, y[..., 4:]), -1).view(batch, -1, y.shape[-1]))
        rows = torch.cat(found, 1)[0]
        rows = rows[rows[:, 4] > 0.4]
        scores, labels = (rows[:, 5:] * rows[:, 4:5]).max(1)
        boxes = torch.cat([rows[:, :2] - rows[:, 2:4] / 2, rows[:, :2] + rows[:, 2:4] / 2], 1)
        keep = nms(boxes + labels[:, None] * 1000.0, scores, 0.45)[:20]
        return boxes[keep], scores[keep], labels[keep]


class Detr(nn.Module):
    """Queries that a transformer turns into boxes."""

    def __init__(self) -> None:
        super().__init__()
        self.trunk = nn.Sequential(_conv(3, 16, 3, 2), _conv(16, 32, 3, 2), _conv(32, 32, 3, 2))
        self.transformer = nn.Transformer(32, 4, 1, 1, 64, dropout=0.0)
        self.queries = nn.Parameter(torch.rand(10, 32))
        self.rows, self.columns = (nn.Parameter(torch.rand(50, 16)) for _ in range(2))
        self.labels, self.boxes = nn.Linear(32, 5), nn.Linear(32, 4)

    def forward(self, x):
        image = self.trunk(x)
        rows, columns = image.shape[-2:]
        places = torch.cat([
            self.columns[:columns].unsqueeze(0).repeat(rows, 1, 1),
            self.rows[:rows].unsqueeze(1).repeat(1, columns, 1),
        ], dim=-1).flatten(0, 1).unsqueeze(1)  # fmt: skip
        queries = self.queries.unsqueeze(1).repeat(1, x.shape[0], 1)
        memory = places + 0.1 * image.flatten(2).permute(2, 0, 1)
        found = self.transformer(memory, queries).transpose(0, 1)
        return self.labels(found), self.boxes(found).sigmoid()


class SpatialTransformer(nn.Module):
    """Turns its image as a small network says, then reads it."""

    def __init__(self) -> None:
        super().__init__()
        self.where = nn.Sequential(nn.Conv2d(1, 4, 7), nn.MaxPool2d(2, 2), nn.ReLU(True),
                                   nn.Flatten(), nn.Linear(4 * 11 * 11, 6))  # fmt: skip
        self.head = nn.Conv2d(1, 4, 3)

    def forward(self, x):
        matrix = self.where(x).view(-1, 2, 3) * 0.1 + torch.eye(2, 3)
        grid = F.affine_grid(matrix, list(x.size()), align_corners=False)
        return self.head(F.grid_sample(x, grid, align_corners=False, padding_mode="border"))


class Capsules(nn.Module):
    """Routing by agreement between vectors."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(1, 16, 9, 2)
        self.weights = nn.Parameter(torch.randn(1, 200, 5, 6, 8) * 0.1)

    @staticmethod
    def _squash(x):
        squared = (x**2).sum(-1, keepdim=True)
        return squared / (1 + squared) * x / torch.sqrt(squared + 1e-8)

    def forward(self, x):
        u = self._squash(self.conv(x).view(x.size(0), -1, 8))
        votes = torch.matmul(self.weights, u[:, :, None, :, None]).squeeze(-1)
        logits = torch.zeros(*votes.shape[:3], 1)
        for _ in range(3):
            found = self._squash((F.softmax(logits, dim=2) * votes).sum(1, keepdim=True))
            logits = logits + (votes * found).sum(-1, keepdim=True)
        return found.squeeze(1).norm(dim=-1)


class Involution(nn.Module):
    """Kernels made for each place, over patches that unfold cuts."""

    def __init__(self) -> None:
        super().__init__()
        self.kernels = nn.Sequential(nn.Conv2d(8, 4, 1), nn.ReLU(), nn.Conv2d(4, 2 * 9, 1))
        self.enter = nn.Conv2d(3, 8, 1)

    def forward(self, x):
        x = self.enter(x)
        batch, channels, rows, columns = x.shape
        kernels = self.kernels(x).view(batch, 2, 1, 9, rows, columns)
        patches = F.unfold(x, 3, padding=1).view(batch, 2, channels // 2, 9, rows, columns)
        y = (kernels * patches).sum(3).view(batch, channels, rows, columns)
        return F.fold(F.unfold(y, 2, stride=2), (rows, columns), 2, stride=2)


class ConvRecurrent(nn.Module):
    """Next frames by a recurrent cell of convolutions."""

    def __init__(self) -> None:
        super().__init__()
        self.gates, self.head = nn.Conv2d(3 + 8, 32, 3, padding=1), nn.Conv2d(8, 3, 1)

    def forward(self, frames):
        h = c = torch.zeros(frames.shape[0], 8, *frames.shape[-2:])
        found = []
        for frame in frames.unbind(1):
            i, f, o, g = self.gates(torch.cat([frame, h], 1)).chunk(4, 1)
            c = f.sigmoid() * c + i.sigmoid() * g.tanh()
            h = o.sigmoid() * c.tanh()
            found.append(self.head(h))
        return torch.stack(found, 1)


class TextReader(nn.Module):
    """CRNN: columns of an image are steps of a sequence; greedy letters."""

    def __init__(self) -> None:
        super().__init__()
        self.trunk = nn.Sequential(
            _conv(1, 8), nn.MaxPool2d(2, 2), _conv(8, 16), nn.MaxPool2d((2, 2), (2, 1), (0, 1)),
            nn.Conv2d(16, 16, (4, 1)), nn.ReLU(),
        )  # fmt: skip
        self.rnn = nn.LSTM(16, 12, bidirectional=True)
        self.head = nn.Linear(24, 11)

    def forward(self, x):
        steps = self.trunk(x).squeeze(2).permute(2, 0, 1)
        scores = self.head(self.rnn(steps)[0]).log_softmax(2)
        return scores, scores.argmax(2).transpose(1, 0)


def row(make: Callable[[], nn.Module], *shapes: tuple[int, ...]) -> Callable[[], Example]:
    return lambda: (make(), tuple([torch.randn(shape) for shape in shapes]))


PICTURE = (1, 3, 32, 32)
IMAGE_NETWORKS: dict[str, Callable[[], Example]] = {
    "ghostnet": row(GhostNet, PICTURE),
    "convmixer": row(_conv_mixer, PICTURE),
    "mlp_mixer": row(_mlp_mixer, PICTURE),
    "coatnet": row(CoAtNet, PICTURE),
    "edgenext": row(EdgeNeXt, PICTURE),
    "repvgg": row(lambda: nn.Sequential(_conv(3, 16), RepBlock(16), RepBlock(16)), PICTURE),
    "hrnet": row(HighResolution, PICTURE),
    "unet_plus_plus": row(NestedUNet, PICTURE),
    "yolov8": row(YoloV8, (1, 3, 64, 64)),
    "detr_small": row(Detr, (1, 3, 64, 64)),
    "spatial_transformer": row(SpatialTransformer, (2, 1, 28, 28)),
    "capsules": row(Capsules, (2, 1, 27, 27)),
    "involution": row(Involution, (1, 3, 8, 8)),
    "conv_lstm": row(ConvRecurrent, (1, 4, 3, 8, 8)),
    "crnn": row(TextReader, (2, 1, 16, 40)),
}
# the number of boxes depends on the image
IMAGE_DETECTORS: dict[str, Callable[[], Example]] = {"yolov5": row(YoloV5, (1, 3, 64, 64))}
