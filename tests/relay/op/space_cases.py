"""Cases of operators on neighbourhoods, blocks and losses, with PyTorch as the reference."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
import torch.nn.functional as F

from tests.relay.op.torch_reference import by_torch
from tvm import relay

from .cases import Array, Case, floats, ints


def _last(function: Any) -> Any:
    """A function of NCHW images for NHWC ones."""
    return lambda x: function(np.ascontiguousarray(x.transpose(0, 3, 1, 2))).transpose(0, 2, 3, 1)


def _depth_first(x: Array) -> Array:
    """The channel order DCR from CRD, for blocks of two."""
    n, c, h, w = x.shape
    return x.reshape(n, 4, c // 4, h, w).transpose(0, 2, 1, 3, 4).reshape(n, c, h, w)


def block_cases() -> list[Case]:
    shuffle, unshuffle = (
        by_torch(F.pixel_shuffle, upscale_factor=2),
        by_torch(F.pixel_unshuffle, downscale_factor=2),
    )
    deep, wide = floats(2, 8, 3, 4), floats(2, 3, 4, 6)

    def gathered(x: Array) -> Array:
        n, c, h, w = unshuffle(x).shape
        return unshuffle(x).reshape(n, c // 4, 4, h, w).transpose(0, 2, 1, 3, 4).reshape(n, c, h, w)

    blocks = floats(2, 5, 6, 3)
    return [
        Case("nn.depth_to_space", lambda x: relay.nn.depth_to_space(x, 2, mode="CRD"), (deep,), shuffle),
        Case("nn.depth_to_space", lambda x: relay.nn.depth_to_space(x, 2), (deep,), lambda x: shuffle(np.ascontiguousarray(_depth_first(x)))),
        Case("nn.depth_to_space", lambda x: relay.nn.depth_to_space(x, 2, "NHWC", "CRD"), (floats(2, 3, 4, 8),), _last(shuffle)),
        Case("nn.space_to_depth", lambda x: relay.nn.space_to_depth(x, 2), (wide,), gathered),
        Case("nn.space_to_depth", lambda x: relay.nn.space_to_depth(x, 2, "NHWC"), (floats(2, 4, 6, 3),), _last(gathered)),
        Case("nn.space_to_batch_nd", lambda x: relay.nn.space_to_batch_nd(x, (2, 3), ((1, 0), (0, 3)), 0.5), (blocks,), _space_to_batch),
        Case("nn.batch_to_space_nd", lambda x: relay.nn.batch_to_space_nd(x, (2, 3), ((1, 0), (0, 3))), (_space_to_batch(blocks),), lambda x: blocks),
    ]  # fmt: skip


def _space_to_batch(x: Array) -> Array:
    padded = np.pad(x, ((0, 0), (1, 0), (0, 3), (0, 0)), constant_values=0.5)
    parts = [padded[:, i::2, j::3] for i in range(2) for j in range(3)]
    return np.concatenate(parts).astype("float32")


def upsampling_cases() -> list[Case]:
    image, volume = floats(1, 2, 4, 5), floats(1, 2, 3, 4, 5)
    return [
        Case("nn.upsampling", lambda x: relay.nn.upsampling(x, 2, 3), (image,), lambda x: x.repeat(2, 2).repeat(3, 3)),
        Case("nn.upsampling", lambda x: relay.nn.upsampling(x, 2, 2, method="bilinear", align_corners=True), (image,), by_torch(F.interpolate, scale_factor=2, mode="bilinear", align_corners=True), 1e-4),
        Case("nn.upsampling3d", lambda x: relay.nn.upsampling3d(x, 2, 2, 2, method="trilinear"), (volume,), by_torch(F.interpolate, scale_factor=2, mode="trilinear"), 1e-4),
    ]  # fmt: skip


def _dilated(x: Array) -> Array:
    out = np.full((3, 7), 0.5, "float32")
    out[:, ::3] = x
    return out


def loss_cases() -> list[Case]:
    chances = np.exp(floats(4, 5))
    chances = (chances / chances.sum(1, keepdims=True)).astype("float32")
    cases = [
        Case("nn.cross_entropy", relay.nn.cross_entropy, (chances, floats(4, 5)), lambda p, t: np.float32(-(np.log(p) * t).sum() / 4)),
        Case("nn.cross_entropy_with_logits", relay.nn.cross_entropy_with_logits, (floats(4, 5), floats(4, 5)), lambda p, t: np.float32(-(p * t).sum() / 4)),
    ]  # fmt: skip
    targets = ints(3, 4, low=0, high=5, dtype="int64")
    targets[0, 0] = -100
    for reduction in ("none", "mean", "sum"):
        cases.append(
            Case(
                "nn.nll_loss",
                lambda p, t, w, r=reduction: relay.nn.nll_loss(p, t, w, r),
                (floats(3, 5, 4), targets, floats(5, low=0.1)),
                lambda p, t, w, r=reduction: F.nll_loss(
                    torch.from_numpy(p), torch.from_numpy(t), torch.from_numpy(w), reduction=r
                ).numpy(),
                1e-4,
            )
        )
    return cases


def space_cases() -> list[Case]:
    return [
        *block_cases(),
        *upsampling_cases(),
        *loss_cases(),
        Case("nn.lrn", lambda x: relay.nn.lrn(x, 3, 1, 1.5, 0.2, 0.6), (floats(2, 7, 3, 4),), by_torch(F.local_response_norm, size=3, alpha=0.2, beta=0.6, k=1.5), 1e-4),
        Case("nn.dilate", lambda x: relay.nn.dilate(x, (1, 3), 0.5), (floats(3, 3),), _dilated),
    ]  # fmt: skip
