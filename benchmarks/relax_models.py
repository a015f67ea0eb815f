"""Models written twice, for PyTorch and with relax.frontend.nn, of the same weights and symbolic sizes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch.nn import functional as F

from tvm.relax.frontend import nn
from tvm.relax.frontend.nn import op


@dataclass
class Model:
    """A model in both forms, and what it is run with."""

    torch: torch.nn.Module
    nn: nn.Module
    inputs: list[tuple[tuple[Any, ...], str]]  # shapes, in which a text is a symbolic extent
    sizes: list[tuple[int, ...]]
    arrays: Callable[..., list[np.ndarray]]  # of sizes

    def data(self, sizes: Any) -> list[np.ndarray]:
        """Inputs of these sizes."""
        return self.arrays(*(sizes or self.sizes[0]))


WIDTH, HEADS, LAYERS, VOCABULARY, POSITIONS = 768, 12, 12, 50257, 1024


class TorchBlock(torch.nn.Module):
    """A layer of GPT-2."""

    def __init__(self) -> None:
        super().__init__()
        self.ln_1, self.ln_2 = torch.nn.LayerNorm(WIDTH), torch.nn.LayerNorm(WIDTH)
        self.qkv, self.out = torch.nn.Linear(WIDTH, 3 * WIDTH), torch.nn.Linear(WIDTH, WIDTH)
        self.up, self.down = torch.nn.Linear(WIDTH, 4 * WIDTH), torch.nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x: Any, mask: Any) -> Any:
        b, s, _ = x.shape
        qkv = self.qkv(self.ln_1(x)).view(b, s, 3 * HEADS, WIDTH // HEADS).permute(0, 2, 1, 3)
        q, k, v = qkv.split(HEADS, 1)
        scores = torch.softmax(q @ k.transpose(2, 3) * (WIDTH // HEADS) ** -0.5 + mask, -1)
        x = x + self.out((scores @ v).permute(0, 2, 1, 3).reshape(b, s, WIDTH))
        return x + self.down(F.gelu(self.up(self.ln_2(x)), approximate="tanh"))


class TorchGPT(torch.nn.Module):
    """GPT-2 without its head; masks and positions are inputs."""

    def __init__(self) -> None:
        super().__init__()
        self.wte = torch.nn.Embedding(VOCABULARY, WIDTH)
        self.wpe = torch.nn.Embedding(POSITIONS, WIDTH)
        self.h = torch.nn.ModuleList([TorchBlock() for _ in range(LAYERS)])
        self.ln_f = torch.nn.LayerNorm(WIDTH)

    def forward(self, ids: Any, positions: Any, mask: Any) -> Any:
        x = self.wte(ids) + self.wpe(positions)
        for block in self.h:
            x = block(x, mask)
        return self.ln_f(x)


class Block(nn.Module):
    """A layer of GPT-2."""

    def __init__(self) -> None:
        self.ln_1, self.ln_2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x: nn.Tensor, mask: nn.Tensor) -> nn.Tensor:
        b, s, _ = x.shape
        qkv = op.reshape(self.qkv(self.ln_1(x)), (b, s, 3 * HEADS, WIDTH // HEADS))
        q, k, v = op.split(op.permute_dims(qkv, [0, 2, 1, 3]), 3, 1)
        scores = op.matmul(q, op.permute_dims(k, [0, 1, 3, 2])) * (WIDTH // HEADS) ** -0.5 + mask
        mixed = op.permute_dims(op.matmul(op.softmax(scores), v), [0, 2, 1, 3])
        x = x + self.out(op.reshape(mixed, (b, s, WIDTH)))
        return x + self.down(op.gelu(self.up(self.ln_2(x)), approximate="tanh"))


class GPT(nn.Module):
    """The same with relax.frontend.nn."""

    def __init__(self) -> None:
        self.wte, self.wpe = nn.Embedding(VOCABULARY, WIDTH), nn.Embedding(POSITIONS, WIDTH)
        self.h = nn.ModuleList([Block() for _ in range(LAYERS)])
        self.ln_f = nn.LayerNorm(WIDTH)

    def forward(self, x0: nn.Tensor, x1: nn.Tensor, x2: nn.Tensor) -> nn.Tensor:
        x = self.wte(x0) + self.wpe(x1)
        for block in self.h:
            x = block(x, x2)
        return self.ln_f(x)


def gpt2() -> Model:
    """Of any batch and sequence."""

    def arrays(batch: int, sequence: int) -> list[np.ndarray]:
        ids = np.random.default_rng(0).integers(0, VOCABULARY, (batch, sequence))
        positions = np.broadcast_to(np.arange(sequence), ids.shape).copy()
        mask = np.triu(np.full((sequence, sequence), -1e9, "float32"), 1)
        return [ids, positions, mask]

    rows = (("b", "s"), "int64")
    sizes = [(1, 1), (1, 16), (1, 128), (4, 64)]
    return Model(TorchGPT().eval(), GPT(), [rows, rows, (("s", "s"), "float32")], sizes, arrays)


# channels and steps of ResNet-18's stages
STAGES = ((64, 64, 1), (64, 64, 1), (64, 128, 2), (128, 128, 1), (128, 256, 2), (256, 256, 1), (256, 512, 2), (512, 512, 1))  # fmt: skip


class TorchResidual(torch.nn.Module):
    """Two convolutions and what goes past them."""

    def __init__(self, inside: int, outside: int, stride: int) -> None:
        super().__init__()
        self.first = torch.nn.Conv2d(inside, outside, 3, stride, 1)
        self.second = torch.nn.Conv2d(outside, outside, 3, 1, 1)
        self.past = torch.nn.Conv2d(inside, outside, 1, stride) if stride > 1 else None

    def forward(self, x: Any) -> Any:
        y = self.second(torch.relu(self.first(x)))
        return torch.relu(y + (x if self.past is None else self.past(x)))


class TorchResNet(torch.nn.Module):
    """ResNet-18 with its norms folded."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = torch.nn.Conv2d(3, 64, 7, 2, 3)
        self.blocks = torch.nn.ModuleList([TorchResidual(*stage) for stage in STAGES])
        self.head = torch.nn.Linear(512, 1000)

    def forward(self, x: Any) -> Any:
        x = F.max_pool2d(torch.relu(self.stem(x)), 3, 2, 1)
        for block in self.blocks:
            x = block(x)
        return self.head(x.mean((2, 3)))


class Residual(nn.Module):
    """Two convolutions and what goes past them."""

    def __init__(self, inside: int, outside: int, stride: int) -> None:
        self.first = nn.Conv2D(inside, outside, 3, stride, 1)
        self.second = nn.Conv2D(outside, outside, 3, 1, 1)
        self.past = nn.Conv2D(inside, outside, 1, stride) if stride > 1 else None

    def forward(self, x: nn.Tensor) -> nn.Tensor:
        y = self.second(op.relu(self.first(x)))
        return op.relu(y + (x if self.past is None else self.past(x)))


class ResNet(nn.Module):
    """The same with relax.frontend.nn."""

    def __init__(self) -> None:
        self.stem = nn.Conv2D(3, 64, 7, 2, 3)
        self.blocks = nn.ModuleList([Residual(*stage) for stage in STAGES])
        self.head = nn.Linear(512, 1000)

    def forward(self, x0: nn.Tensor) -> nn.Tensor:
        from tvm import relax

        x = op.relu(self.stem(x0))
        x = op.wrap_nested(relax.op.nn.max_pool2d(x._expr, (3, 3), (2, 2), (1, 1)), "pooled")
        for block in self.blocks:
            x = block(x)
        pooled = op.wrap_nested(relax.op.mean(x._expr, [2, 3]), "pooled")
        return self.head(pooled)


def _images(batch: int, rows: int, columns: int) -> list[np.ndarray]:
    shape = (batch, 3, rows, columns)
    return [np.random.default_rng(0).normal(size=shape).astype("float32")]


def resnet18_batch() -> Model:
    """Of any batch."""
    sizes = [(1, 224, 224), (4, 224, 224)]
    return Model(TorchResNet().eval(), ResNet(), [(("b", 3, 224, 224), "float32")], sizes, _images)


def resnet18_image() -> Model:
    """Of images of any size."""
    sizes = [(1, 160, 160), (1, 224, 224), (1, 224, 320)]
    return Model(TorchResNet().eval(), ResNet(), [((1, 3, "h", "w"), "float32")], sizes, _images)


MODELS: Mapping[str, Callable[[], Model]] = {
    "gpt2": gpt2,
    "resnet18 batch": resnet18_batch,
    "resnet18 image": resnet18_image,
}
