"""Models of several parts, or with more than one input: encoders with decoders, diffusion."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F

from benchmarks.networks import Example, FirstOutput
from tests.e2e.transformer_sizes import IMAGE, TEXT, WAVES

_T5 = {"vocab_size": 100, "d_model": 32, "d_kv": 8, "d_ff": 64, "num_layers": 2, "num_heads": 4}
_WHISPER = {
    "vocab_size": 100, "num_mel_bins": 20, "d_model": 32, "encoder_layers": 2, "decoder_layers": 2,
    "encoder_attention_heads": 4, "decoder_attention_heads": 4, "encoder_ffn_dim": 64,
    "decoder_ffn_dim": 64, "max_source_positions": 16, "max_target_positions": 24,
    "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 1,
}  # fmt: skip
_SEGFORMER = {
    "num_encoder_blocks": 2, "depths": [1, 1], "sr_ratios": [2, 1], "hidden_sizes": [16, 32],
    "num_attention_heads": [1, 2], "patch_sizes": [7, 3], "strides": [4, 2], "mlp_ratios": [2, 2],
    "decoder_hidden_size": 16,
}  # fmt: skip
_MAMBA = {"vocab_size": 100, "hidden_size": 32, "state_size": 8, "num_hidden_layers": 2}
_EXPERTS = {
    **TEXT, "num_key_value_heads": 2, "num_local_experts": 4, "num_experts_per_tok": 2,
    "pad_token_id": 0, "head_dim": 8,
}  # fmt: skip


def _made(
    name: str, kind: str, options: dict[str, Any], inputs: dict[str, Any], output: str
) -> Callable[[], Example]:
    def make() -> Example:
        import transformers

        config = getattr(transformers, f"{name}Config")(**options)
        config.use_cache = False
        if hasattr(config, "text_config"):
            config.text_config.use_cache = False
        model = getattr(transformers, f"{name}{kind}")(config)
        tensors = [
            torch.randint(3, 99, shape) if is_ids else torch.randn(shape)
            for is_ids, shape in inputs.values()
        ]
        return FirstOutput(model, output, tuple(inputs)), tuple(tensors)

    return make


def _clip() -> Example:
    import transformers

    config = transformers.CLIPConfig(text_config=TEXT, vision_config=IMAGE, projection_dim=16)
    model = transformers.CLIPModel(config)
    ids, image = torch.randint(3, 99, (2, 12)), torch.randn(1, 3, 32, 32)
    names = ("input_ids", "pixel_values")
    return FirstOutput(model, "logits_per_image", names), (ids, image)


class Residual(nn.Module):
    """A convolution block that is told the time."""

    def __init__(self, inside: int, outside: int) -> None:
        super().__init__()
        self.first = nn.Sequential(nn.GroupNorm(4, inside), nn.SiLU(),
                                   nn.Conv2d(inside, outside, 3, padding=1))  # fmt: skip
        self.time = nn.Linear(32, outside)
        self.second = nn.Sequential(nn.GroupNorm(4, outside), nn.SiLU(),
                                    nn.Conv2d(outside, outside, 3, padding=1))  # fmt: skip
        self.skip = nn.Conv2d(inside, outside, 1)

    def forward(self, x: torch.Tensor, time: torch.Tensor) -> torch.Tensor:
        inner = self.first(x) + self.time(F.silu(time))[:, :, None, None]
        return self.skip(x) + self.second(inner)


class Diffusion(nn.Module):
    """Predicts noise: residual blocks, attention within the image and to a text, skips."""

    def __init__(self) -> None:
        super().__init__()
        self.time = nn.Sequential(nn.Linear(16, 32), nn.SiLU(), nn.Linear(32, 32))
        self.enter = nn.Conv2d(4, 16, 3, padding=1)
        self.down = Residual(16, 32)
        self.norm = nn.GroupNorm(8, 32)
        self.within = nn.MultiheadAttention(32, 4, batch_first=True)
        self.across = nn.MultiheadAttention(32, 4, kdim=24, vdim=24, batch_first=True)
        self.up = Residual(48, 16)
        self.leave = nn.Conv2d(16, 4, 3, padding=1)

    def forward(self, x: torch.Tensor, time: torch.Tensor, text: torch.Tensor) -> torch.Tensor:
        angles = time[:, None] * torch.exp(-torch.arange(8) * 0.9)[None]
        when = self.time(torch.cat([angles.sin(), angles.cos()], -1))
        first = self.enter(x)
        inner = self.down(F.avg_pool2d(first, 2), when)
        rows = self.norm(inner).flatten(2).transpose(1, 2)
        rows = rows + self.within(rows, rows, rows, need_weights=False)[0]
        rows = rows + self.across(rows, text, text, need_weights=False)[0]
        inner = inner + rows.transpose(1, 2).reshape(inner.shape)
        large = F.interpolate(inner, scale_factor=2.0, mode="nearest")
        return self.leave(self.up(torch.cat([large, first], 1), when))


def _diffusion() -> Example:
    inputs = torch.randn(1, 4, 16, 16), torch.tensor([7.0]), torch.randn(1, 5, 24)
    return Diffusion(), inputs


_IDS = (True, (1, 12))
COMPOSED_MODELS: dict[str, Callable[[], Example]] = {
    "t5": _made("T5", "Model", _T5, {"input_ids": _IDS, "decoder_input_ids": _IDS},
                "last_hidden_state"),
    "whisper": _made("Whisper", "Model", _WHISPER, {
        "input_features": (False, (1, 20, 32)), "decoder_input_ids": _IDS,
    }, "last_hidden_state"),
    "clip": _clip,
    "wav2vec2": _made("Wav2Vec2", "Model", WAVES, {"input_values": (False, (1, 400))},
                      "last_hidden_state"),
    "segformer": _made("Segformer", "ForSemanticSegmentation", _SEGFORMER, {
        "pixel_values": (False, (1, 3, 64, 64)),
    }, "logits"),
    "mamba": _made("Mamba", "Model", _MAMBA, {"input_ids": _IDS}, "last_hidden_state"),
    "mixtral": _made("Mixtral", "Model", _EXPERTS, {"input_ids": _IDS}, "last_hidden_state"),
    "yolos": _made("Yolos", "Model", {**IMAGE, "image_size": [32, 32], "num_detection_tokens": 5},
                   {"pixel_values": (False, (1, 3, 32, 32))}, "last_hidden_state"),
    "diffusion": _diffusion,
}  # fmt: skip
