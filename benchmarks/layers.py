"""Single layers of many networks beside ONNX Runtime's, alternating in one run.

usage: python -m benchmarks.layers [WORD ...] [--threads N] [--rounds N] [--opt-level N]

Words choose the layers whose names contain one of them. The ratio is the peer's time over ours:
above 1 we are faster.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn import functional

Shapes = tuple[tuple[int, ...], ...]


class Apply(nn.Module):
    """A function as a module."""

    def __init__(self, function: Callable[..., torch.Tensor]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *inputs: torch.Tensor) -> torch.Tensor:
        return self.function(*inputs)


def conv(rank: int, channels: int, out: int, kernel: int, **attrs: Any) -> nn.Module:
    """A convolution and what usually follows it."""
    kinds = (nn.Conv1d, nn.Conv2d, nn.Conv3d)
    return nn.Sequential(kinds[rank - 1](channels, out, kernel, **attrs), nn.ReLU())


def image(
    channels: int, size: int, out: int, kernel: int, **attrs: Any
) -> tuple[nn.Module, Shapes]:
    """A layer on a square image."""
    return conv(2, channels, out, kernel, **attrs), ((1, channels, size, size),)


def depthwise(channels: int, size: int, kernel: int, stride: int = 1) -> tuple[nn.Module, Shapes]:
    """A kernel for each channel."""
    attrs = {"padding": kernel // 2, "stride": stride, "groups": channels}
    return image(channels, size, channels, kernel, **attrs)


def applied(function: Callable[..., torch.Tensor], *shapes: tuple[int, ...]) -> Any:
    """A function of tensors."""
    return Apply(function), shapes


def shuffled(x: torch.Tensor) -> torch.Tensor:
    """Channels of three groups, interleaved."""
    n, c, h, w = x.shape
    return x.view(n, 3, c // 3, h, w).transpose(1, 2).reshape(n, c, h, w)


LAYERS: dict[str, Callable[[], tuple[nn.Module, Shapes]]] = {
    "efficientnet depthwise 5x5": lambda: depthwise(240, 28, 5),
    "efficientnet depthwise 5x5 stride 2": lambda: depthwise(144, 56, 5, 2),
    "efficientnet squeeze": lambda: image(672, 1, 28, 1),
    "convnext depthwise 7x7": lambda: depthwise(96, 56, 7),
    "convnext depthwise 7x7 narrow": lambda: depthwise(384, 14, 7),
    "convnext stem 4x4": lambda: image(3, 224, 96, 4, stride=4),
    "regnet groups of 16": lambda: image(152, 28, 152, 3, padding=1, groups=152 // 8),
    "resnext 32 groups of 4": lambda: image(128, 56, 128, 3, padding=1, groups=32),
    "resnext 32 groups of 32": lambda: image(1024, 7, 1024, 3, padding=1, groups=32),
    "shufflenet grouped 1x1": lambda: image(240, 28, 240, 1, groups=3),
    "shufflenet shuffle": lambda: applied(shuffled, (1, 240, 28, 28)),
    "wav2vec conv1d 3": lambda: (conv(1, 512, 512, 3, stride=2), ((1, 512, 3199),)),
    "wav2vec conv1d first": lambda: (conv(1, 1, 512, 10, stride=5), ((1, 1, 32000),)),
    "wav2vec conv1d positions": lambda: (
        conv(1, 768, 768, 128, padding=64, groups=16), ((1, 768, 49),)
    ),
    "whisper conv1d": lambda: (conv(1, 80, 384, 3, padding=1), ((1, 80, 3000),)),
    "unet transposed 2x2": lambda: (nn.ConvTranspose2d(256, 128, 2, 2), ((1, 256, 32, 32),)),
    "dcgan transposed 4x4": lambda: (
        nn.ConvTranspose2d(256, 128, 4, 2, 1), ((1, 256, 16, 16),)
    ),
    "hifigan transposed 1d": lambda: (nn.ConvTranspose1d(256, 128, 16, 8, 4), ((1, 256, 256),)),
    "resnet3d 3x3x3": lambda: (conv(3, 64, 64, 3, padding=1), ((1, 64, 8, 28, 28),)),
    "resnet3d stem": lambda: (
        conv(3, 3, 64, (3, 7, 7), stride=(1, 2, 2), padding=(1, 3, 3)), ((1, 3, 8, 112, 112),)
    ),
    "r2plus1d spatial": lambda: (
        conv(3, 64, 144, (1, 3, 3), padding=(0, 1, 1)), ((1, 64, 8, 28, 28),)
    ),
    "deeplab dilated 3x3": lambda: image(256, 33, 256, 3, padding=12, dilation=12),
    "resnet stride 2 3x3": lambda: image(128, 56, 128, 3, padding=1, stride=2),
    "resnet 512 channels 7x7": lambda: image(512, 7, 512, 3, padding=1),
    "resnet stem 7x7": lambda: image(3, 224, 64, 7, padding=3, stride=2),
    "vgg 3x3": lambda: image(64, 112, 128, 3, padding=1),
    "inception 149 columns": lambda: image(32, 149, 32, 3),
    "inception 73 columns": lambda: image(64, 73, 80, 1),
    "inception 1x7": lambda: image(192, 17, 192, (1, 7), padding=(0, 3)),
    "inception stem 3x3": lambda: image(32, 147, 64, 3, padding=1),
    "squeezenet expand": lambda: image(64, 13, 256, 3, padding=1),
    "yolo head 255": lambda: image(512, 13, 255, 1),
    "super resolution 5x5": lambda: image(1, 224, 64, 5, padding=2),
    "densenet concat": lambda: (
        Apply(lambda *x: functional.relu(torch.cat(x, 1))), ((1, 32, 28, 28),) * 8
    ),
    "max pool 3x3": lambda: (nn.MaxPool2d(3, 2, 1), ((1, 64, 112, 112),)),
    "max pool 3x3 stride 1": lambda: (nn.MaxPool2d(3, 1, 1), ((1, 192, 35, 35),)),
    "max pool 2x2": lambda: (nn.MaxPool2d(2, 2), ((1, 64, 56, 56),)),
    "average pool 2x2": lambda: (nn.AvgPool2d(2, 2), ((1, 64, 56, 56),)),
    "average pool 3x3": lambda: (nn.AvgPool2d(3, 1, 1), ((1, 192, 35, 35),)),
    "global average": lambda: (nn.AdaptiveAvgPool2d(1), ((1, 2048, 7, 7),)),
    "softmax rows": lambda: applied(lambda x: torch.softmax(x, -1), (1024, 1000)),
    "softmax long rows": lambda: applied(lambda x: torch.softmax(x, -1), (64, 32000)),
    "softmax channels": lambda: applied(lambda x: torch.softmax(x, 1), (1, 21, 129, 129)),
    "layer norm": lambda: (nn.LayerNorm(768), ((1, 197, 768),)),
    "layer norm of channels": lambda: applied(
        lambda x: functional.layer_norm(x.permute(0, 2, 3, 1), (96,)).permute(0, 3, 1, 2),
        (1, 96, 56, 56),
    ),
    "group norm": lambda: (nn.GroupNorm(32, 320), ((1, 320, 32, 32),)),
    "instance norm": lambda: (nn.InstanceNorm2d(64), ((1, 64, 64, 64),)),
    "mean of rows": lambda: applied(lambda x: x.mean(-1), (4096, 512)),
    "mean of columns": lambda: applied(lambda x: x.mean(0), (4096, 512)),
    "sum of the middle": lambda: applied(lambda x: x.sum(1), (16, 512, 96)),
    "sum of all": lambda: applied(lambda x: x.sum(), (512, 4096)),
    "max of rows": lambda: applied(lambda x: x.amax(-1), (4096, 500)),
    "argmax of rows": lambda: applied(lambda x: x.argmax(-1), (512, 1000)),
    "cumulative sum": lambda: applied(lambda x: x.cumsum(-1), (256, 4096)),
    "sorted row": lambda: applied(lambda x: x.topk(x.shape[-1], -1)[0], (1, 200000)),
    "top 10": lambda: applied(lambda x: x.topk(10, -1)[0], (64, 10000)),
    "transpose": lambda: applied(lambda x: x.transpose(1, 2).contiguous(), (8, 512, 512)),
    "transpose of heads": lambda: applied(
        lambda x: x.view(8, 128, 12, 64).transpose(1, 2).contiguous(), (8, 128, 768)
    ),
    "gelu": lambda: (nn.GELU(), ((1, 197, 3072),)),
    "silu": lambda: (nn.SiLU(), ((1, 240, 56, 56),)),
    "hard swish": lambda: (nn.Hardswish(), ((1, 240, 56, 56),)),
    "bilinear upsampling": lambda: (
        nn.Upsample(scale_factor=2, mode="bilinear"), ((1, 64, 64, 64),)
    ),
    "nearest upsampling": lambda: (nn.Upsample(scale_factor=2), ((1, 128, 40, 40),)),
    "pixel shuffle": lambda: (nn.PixelShuffle(2), ((1, 64, 128, 128),)),
    "embedding": lambda: (nn.Embedding(30000, 768), ((1, 512),)),
    "linear 1 row": lambda: (nn.Linear(4096, 4096), ((1, 4096),)),
    "linear 3 rows": lambda: (nn.Linear(1024, 4096), ((3, 1024),)),
    "linear odd": lambda: (nn.Linear(777, 333), ((100, 777),)),
    "matmul of inputs": lambda: applied(torch.matmul, (8, 256, 64), (8, 64, 256)),
    "lstm": lambda: (First(nn.LSTM(128, 128, batch_first=True)), ((1, 64, 128),)),
    "gru": lambda: (First(nn.GRU(128, 128, batch_first=True)), ((1, 64, 128),)),
}  # fmt: skip


class First(nn.Module):
    """The first result of a recurrent layer."""

    def __init__(self, layer: nn.Module) -> None:
        super().__init__()
        self.layer = layer

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layer(x)[0]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("words", nargs="*", help="parts of the names of layers (default: all)")
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--rounds", type=int, default=4, help="turns of each side")
    parser.add_argument("--opt-level", type=int, default=3)
    arguments = parser.parse_args()
    os.environ["TVM_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"] = str(arguments.threads)
    from rich.console import Console
    from rich.table import Table

    table = Table(
        "layer", "ours, us", "ONNX Runtime, us", "ratio", "build s", "max error",
        title=f"{arguments.threads} threads, opt_level {arguments.opt_level}",
    )  # fmt: skip
    ratios = []
    for name, make in LAYERS.items():
        if arguments.words and not any(word in name for word in arguments.words):
            continue
        times, seconds, error = measure(*make(), arguments)
        ratios.append(times["peer"] / times["ours"])
        figures = [f"{1e6 * times[side]:.0f}" for side in ("ours", "peer")]
        table.add_row(name, *figures, f"{ratios[-1]:.2f}", f"{seconds:.1f}", f"{error:.0e}")
    table.add_row("geometric mean", "", "", f"{statistics.geometric_mean(ratios):.2f}")
    Console(width=100).print(table)


def measure(
    module: nn.Module, shapes: Shapes, arguments: argparse.Namespace
) -> tuple[Mapping[str, float], float, float]:
    """Seconds of both sides, seconds of building, and the largest error."""
    import onnx

    from benchmarks.models import compiled_onnx, onnxruntime_in_place
    from benchmarks.timing import shortest

    torch.manual_seed(0)
    inputs = [
        torch.randint(0, 1000, shape) if isinstance(module, nn.Embedding) else torch.randn(shape)
        for shape in shapes
    ]
    feeds = {f"in{i}": x.numpy() for i, x in enumerate(inputs)}
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        path = Path(folder) / "layer.onnx"
        torch.onnx.export(
            module.eval(), tuple(inputs), str(path), opset_version=17, dynamo=False,
            input_names=list(feeds), output_names=["out"],
        )  # fmt: skip
        model = onnx.load(path)
    ours, seconds = compiled_onnx(model, feeds, arguments.opt_level)
    session, (expected,) = onnxruntime_in_place(model, feeds, arguments.threads)
    ours.run()
    error = np.abs(ours.get_output(0).numpy() - expected).max() / max(np.abs(expected).max(), 1e-9)
    times = shortest({"ours": ours.run, "peer": session}, arguments.rounds)
    return times, seconds, float(error)


if __name__ == "__main__":
    main()
