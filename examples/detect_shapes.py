"""Train a small detector, compile it, and follow shapes through the frames of a made-up camera.

usage: python examples/detect_shapes.py [--steps 400] [--frames 60] [--target llvm]

Needs PyTorch. The detector finds centres: a map of scores, and the size of the box at each place (Zhou et al.,
Objects as Points, 2019). Peaks and the best of them are part of the compiled program, so that a frame goes in and boxes
come out. It is compared with PyTorch on every frame.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from dataclasses import dataclass

import numpy as np
import torch
from rich.console import Console
from rich.table import Table
from torch import nn
from torch.nn import functional

import tvm
from tvm import relay
from tvm.contrib import graph_executor

HEIGHT, WIDTH, STRIDE = 96, 128, 4
SHAPES = 3  # in a frame
BEST = 8  # boxes that a frame gives
SURE = 0.3  # the score of a box that counts


class Scene:
    """Discs and boxes that move before a noisy background, and bounce at its borders."""

    def __init__(self, seed: int) -> None:
        draw = self.generator = np.random.default_rng(seed)
        self.half = draw.uniform(6, 14, (SHAPES, 2))
        self.is_disc = draw.random(SHAPES) < 0.5
        self.half[self.is_disc, 1] = self.half[self.is_disc, 0]
        self.limits = np.array([HEIGHT, WIDTH]) - self.half
        self.centre = draw.uniform(self.half, self.limits)
        self.speed = draw.uniform(-3, 3, (SHAPES, 2))
        self.colour = draw.uniform(0.3, 1.0, (SHAPES, 3, 1, 1))
        self.light = draw.uniform(0.0, 0.3, (3, 1, 1))

    def next(self) -> tuple[np.ndarray, np.ndarray]:
        """A frame (3, HEIGHT, WIDTH), and its boxes (SHAPES, 4): top, left, bottom, right in pixels."""
        self.centre += self.speed
        outside = (self.centre < self.half) | (self.centre > self.limits)
        self.speed[outside] *= -1
        self.centre = np.clip(self.centre, self.half, self.limits)
        y, x = np.mgrid[:HEIGHT, :WIDTH]
        frame = self.light * (1 + x / WIDTH) + self.generator.normal(0, 0.05, (3, HEIGHT, WIDTH))
        for (cy, cx), (h, w), disc, colour in zip(
            self.centre, self.half, self.is_disc, self.colour, strict=True
        ):
            dy, dx = np.abs(y - cy) / h, np.abs(x - cx) / w
            inside = (dy**2 + dx**2 <= 1) if disc else (np.maximum(dy, dx) <= 1)
            frame = np.where(inside, colour, frame)
        boxes = np.concatenate([self.centre - self.half, self.centre + self.half], axis=1)
        return frame.astype("float32"), boxes.astype("float32")


class Detector(nn.Module):
    """A frame (1, 3, HEIGHT, WIDTH) to scores (BEST,) and boxes (BEST, 4), the surest first."""

    def __init__(self) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        for inputs, outputs, stride in ((3, 16, 2), (16, 32, 2), (32, 32, 2), (32, 64, 1)):
            layers += [nn.Conv2d(inputs, outputs, 3, stride, 1), nn.ReLU()]
        self.body = nn.Sequential(*layers)
        self.head = nn.Conv2d(64, 3, 3, padding=1)

    def maps(self, frames: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Logits of centres (n, h, w) and half sizes (n, 2, h, w) in pixels, a value for STRIDE pixels."""
        wide = functional.interpolate(self.body(frames), scale_factor=2.0)
        found = self.head(wide)
        return found[:, 0], functional.softplus(found[:, 1:]) * STRIDE

    def forward(self, frame: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        logits, half = self.maps(frame)
        scores = torch.sigmoid(logits)
        peaks = scores * (scores == functional.max_pool2d(scores, 3, 1, 1))
        best, places = torch.topk(peaks.flatten(), BEST)
        columns = WIDTH // STRIDE
        row = torch.div(places, columns, rounding_mode="floor")
        centre = torch.stack([row, places - row * columns], 1) * float(STRIDE) + STRIDE / 2
        size = half[0].flatten(1)[:, places].t()
        return best, torch.cat([centre - size, centre + size], 1)


def train(model: Detector, steps: int, console: Console) -> None:
    """Fit the model to frames of fresh scenes."""
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    with console.status("training ...") as status:
        for step in range(steps):
            frames, boxes = zip(*[Scene(16 * step + i).next() for i in range(16)], strict=True)
            logits, half = model.maps(torch.from_numpy(np.stack(frames)))
            loss = loss_of(logits, half, torch.from_numpy(np.stack(boxes)))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            status.update(f"training, step {step + 1} of {steps}, loss {float(loss.detach()):.3f}")


def loss_of(logits: torch.Tensor, half: torch.Tensor, boxes: torch.Tensor) -> torch.Tensor:
    """Focal loss of the centres, each a small hill, and absolute differences of sizes there."""
    centre = (boxes[..., :2] + boxes[..., 2:]) / 2 / STRIDE - 0.5
    y, x = torch.meshgrid(*[torch.arange(float(n)) for n in logits.shape[1:]], indexing="ij")
    squares = (y - centre[..., :1, None]) ** 2 + (x - centre[..., 1:, None]) ** 2
    hills = torch.exp(-squares / 2).amax(1)
    at = torch.clamp(centre.round().long(), min=0)
    rows, columns = at[..., 0], at[..., 1]
    which = torch.arange(len(boxes))[:, None]
    hills[which, rows, columns] = 1.0
    chance = torch.sigmoid(logits)
    hit = (hills == 1) * (1 - chance) ** 2 * functional.logsigmoid(logits)
    miss = (1 - hills) ** 4 * chance**2 * functional.logsigmoid(-logits)
    sizes = half[which, :, rows, columns] - (boxes[..., 2:] - boxes[..., :2]) / 2
    return -(hit + miss).sum() / boxes[..., 0].numel() + 0.1 * sizes.abs().mean()


def compile_model(model: Detector, target: str) -> graph_executor.GraphModule:
    """Trace, import and build the model for frames of its size."""
    frame = torch.zeros(1, 3, HEIGHT, WIDTH)
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the tracer, about shapes that stay constant
        traced = torch.jit.trace(model, frame)
    mod, params = relay.frontend.from_pytorch(traced, [("frame", frame.shape)])
    return graph_executor.GraphModule(relay.build(mod, target, params=params)["default"](tvm.cpu()))


def overlap(found: np.ndarray, boxes: np.ndarray) -> np.ndarray:
    """The area that each pair of boxes shares, of the area that it covers: (found, boxes)."""
    low = np.maximum(found[:, None, :2], boxes[None, :, :2])
    high = np.minimum(found[:, None, 2:], boxes[None, :, 2:])
    shared = np.clip(high - low, 0, None).prod(-1)
    areas = [np.prod(b[:, 2:] - b[:, :2], axis=1) for b in (found, boxes)]
    return shared / (areas[0][:, None] + areas[1] - shared)


@dataclass
class Run:
    """What was found in the frames, and how long both took."""

    hits: int = 0  # shapes that a box covers by half
    boxes: int = 0  # of which the detector is sure
    difference: float = 0.0
    seconds: float = 0.0
    torch_seconds: float = 0.0


def follow(compiled: graph_executor.GraphModule, model: Detector, frames: int) -> Run:
    """Look for the shapes in the frames of one scene, both in turns."""
    scene, run = Scene(2**32 - 1), Run()  # a seed that training does not reach
    for _ in range(frames):
        frame, boxes = scene.next()
        start = time.perf_counter()
        compiled.run(frame=frame[None])
        scores, found = [compiled.get_output(i).numpy() for i in range(2)]
        middle = time.perf_counter()
        with torch.no_grad():
            theirs = model(torch.from_numpy(frame[None]))
        run.torch_seconds += time.perf_counter() - middle
        run.seconds += middle - start
        run.difference = max(run.difference, float(np.abs(scores - theirs[0].numpy()).max()))
        kept = found[scores > SURE]
        run.boxes += len(kept)
        run.hits += int((overlap(kept, boxes).max(0, initial=0) > 0.5).sum())
    return run


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=400, help="of training, 16 frames each")
    parser.add_argument("--frames", type=int, default=60, help="frames of the camera")
    parser.add_argument("--target", default="llvm", help="what to compile for (default: llvm)")
    arguments = parser.parse_args()
    console = Console()
    torch.manual_seed(0)
    model = Detector()
    train(model, arguments.steps, console)
    with console.status("compiling ..."):
        compiled = compile_model(model.eval(), arguments.target)

    run = follow(compiled, model, arguments.frames)
    table = Table("", "frames a second", title=f"{arguments.frames} frames of {SHAPES} shapes")
    for name, seconds in (("this package", run.seconds), ("PyTorch", run.torch_seconds)):
        table.add_row(name, f"{arguments.frames / seconds:.0f}")
    console.print(table)
    console.print(f"found {run.hits} of {SHAPES * arguments.frames} shapes with {run.boxes} boxes")
    console.print(f"largest difference of a score from PyTorch's: {run.difference:.1e}")
    return 0 if run.difference < 1e-4 else 1


if __name__ == "__main__":
    sys.exit(main())
