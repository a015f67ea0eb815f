"""Networks beside the main ones, at their usual sizes: what a compiler fitted to those is slow at.

Transformers have a few of their layers, since all are alike.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F

Example = tuple[nn.Module, tuple[torch.Tensor, ...]]


class FirstOutput(nn.Module):
    """The tensor that a model returns under a name; `inputs` are names of its parameters."""

    def __init__(self, model: nn.Module, name: str, inputs: tuple[str, ...] = ()) -> None:
        super().__init__()
        self.model = model
        self.name = name
        self.inputs = inputs

    def forward(self, *inputs: torch.Tensor) -> torch.Tensor:
        named = dict(zip(self.inputs, inputs, strict=True)) if self.inputs else {}
        result = self.model(**named) if named else self.model(*inputs)
        return result[self.name] if isinstance(result, dict) else getattr(result, self.name)


def transformer(
    prefix: str,
    data: Callable[[], torch.Tensor],
    kind: str = "Model",
    part: str = "",
    with_mask: bool = False,
    **options: Any,
) -> Callable[[], Example]:
    """A transformer of the package with that name; `part` is the attribute to take of it."""

    def make() -> Example:
        import transformers

        config = getattr(transformers, f"{prefix}Config")(**options)
        config.use_cache = False
        config._attn_implementation = "eager"
        model = getattr(transformers, f"{prefix}{kind}")(config)
        model = getattr(model, part) if part else model
        if not with_mask:
            return FirstOutput(model, "last_hidden_state"), (data(),)
        ids = data()
        names = ("input_ids", "attention_mask")
        return FirstOutput(model, "last_hidden_state", names), (ids, torch.ones_like(ids))

    return make


def tokens(count: int = 128) -> Callable[[], torch.Tensor]:
    """Random words."""
    return lambda: torch.randint(0, 1000, (1, count))


def normal(*shape: int) -> Callable[[], torch.Tensor]:
    """Random numbers."""
    return lambda: torch.randn(shape)


def layers(*modules: nn.Module | None) -> nn.Sequential:
    """Modules in a row."""
    return nn.Sequential(*[module for module in modules if module is not None])


def normed(
    inside: int, outside: int, kernel: int = 3, stride: int = 1, then: nn.Module | None = None
) -> nn.Sequential:
    """A convolution of the same size, its norm and what follows."""
    conv = nn.Conv2d(inside, outside, kernel, stride, kernel // 2, bias=False)
    return layers(conv, nn.BatchNorm2d(outside), then or nn.ReLU())


class UNet(nn.Module):
    """Down by pooling, up by transposed convolutions, with skips."""

    def __init__(self) -> None:
        super().__init__()
        widths = (3, 32, 64, 128, 256)

        def twice(i: int, o: int) -> nn.Module:
            return layers(normed(i, o), normed(o, o))

        self.down = nn.ModuleList([twice(*widths[i : i + 2]) for i in range(4)])
        self.turned = nn.ModuleList(
            [nn.ConvTranspose2d(2 * w, w, 2, stride=2) for w in (128, 64, 32)]
        )
        self.up = nn.ModuleList([twice(2 * w, w) for w in (128, 64, 32)])
        self.head = nn.Conv2d(32, 2, 1)

    def forward(self, x):
        skips = []
        for stage in self.down[:-1]:
            skips.append(stage(x))
            x = F.max_pool2d(skips[-1], 2)
        x = self.down[-1](x)
        for turned, stage, skip in zip(self.turned, self.up, reversed(skips), strict=True):
            x = stage(torch.cat([turned(x), skip], 1))
        return self.head(x)


class Speech(nn.Module):
    """A convolution over time, recurrent layers in both directions."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv1d(80, 256, 5, stride=2, padding=2)
        self.gru = nn.GRU(256, 256, 2, batch_first=True, bidirectional=True)
        self.head = nn.Linear(512, 40)

    def forward(self, x):
        return self.head(self.gru(torch.relu(self.conv(x)).transpose(1, 2))[0])


class TemporalNetwork(nn.Module):
    """Dilated convolutions over time with residuals."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(
            [nn.Conv1d(64, 64, 3, padding=2**i, dilation=2**i) for i in range(8)]
        )

    def forward(self, x):
        for layer in self.layers:
            x = x + torch.relu(layer(x))
        return x


class WaveNet(nn.Module):
    """Gated dilated causal convolutions."""

    def __init__(self) -> None:
        super().__init__()

        def dilated() -> nn.ModuleList:
            return nn.ModuleList(
                [
                    nn.Conv1d(32, 32, 2, dilation=2 ** (i % 8), padding=2 ** (i % 8))
                    for i in range(16)
                ]
            )

        self.first = nn.Conv1d(1, 32, 1)
        self.filters, self.gates = dilated(), dilated()
        self.mixed = nn.ModuleList([nn.Conv1d(32, 32, 1) for _ in range(16)])

    def forward(self, x):
        length, skips = x.shape[2], 0
        x = self.first(x)
        for filtered, gate, mixed in zip(self.filters, self.gates, self.mixed, strict=True):
            y = torch.tanh(filtered(x)[:, :, :length]) * torch.sigmoid(gate(x)[:, :, :length])
            y = mixed(y)
            skips = skips + y
            x = x + y
        return skips


class Residual(nn.Module):
    """A block beside the identity."""

    def __init__(self, *block: nn.Module) -> None:
        super().__init__()
        self.block = nn.Sequential(*block)

    def forward(self, x):
        return x + self.block(x)


def style_transfer() -> nn.Module:
    """Reflected borders, instance norms, upsampling."""

    def conv(i: int, o: int, kernel: int, stride: int = 1) -> list[nn.Module]:
        return [
            nn.ReflectionPad2d(kernel // 2), nn.Conv2d(i, o, kernel, stride),
            nn.InstanceNorm2d(o, affine=True), nn.ReLU(),
        ]  # fmt: skip

    return layers(
        *conv(3, 32, 9), *conv(32, 64, 3, 2), *conv(64, 128, 3, 2),
        *[Residual(*conv(128, 128, 3), *conv(128, 128, 3)[:-1]) for _ in range(5)],
        nn.Upsample(scale_factor=2), *conv(128, 64, 3), nn.Upsample(scale_factor=2),
        *conv(64, 32, 3), nn.ReflectionPad2d(4), nn.Conv2d(32, 3, 9),
    )  # fmt: skip


def generator() -> nn.Module:
    """Transposed convolutions from a point to an image."""
    blocks: list[nn.Module] = []
    for i, (inside, outside) in enumerate(((100, 512), (512, 256), (256, 128), (128, 64))):
        blocks += [
            nn.ConvTranspose2d(inside, outside, 4, 2 if i else 1, 1 if i else 0, bias=False),
            nn.BatchNorm2d(outside), nn.ReLU(),
        ]  # fmt: skip
    return layers(*blocks, nn.ConvTranspose2d(64, 3, 4, 2, 1), nn.Tanh())


def tiny_detector() -> nn.Module:
    """Leaky convolutions and pooling, a head of 255 channels."""
    leaky, widths = nn.LeakyReLU(0.1), (3, 16, 32, 64, 128, 256)
    blocks: list[nn.Module] = []
    for i in range(5):
        blocks += [normed(widths[i], widths[i + 1], then=leaky), nn.MaxPool2d(2)]
    rest = [
        normed(256, 512, then=leaky),
        normed(512, 1024, then=leaky),
        normed(1024, 256, then=leaky),
    ]
    return layers(*blocks, *rest, nn.Conv2d(256, 255, 1))


class SplitStages(nn.Module):
    """Half the channels go on through bottlenecks; all that came of them is joined."""

    def __init__(self, inside: int, outside: int, count: int) -> None:
        super().__init__()
        half, act = outside // 2, nn.SiLU()
        self.first = normed(inside, outside, 1, then=act)
        self.blocks = nn.ModuleList(
            [
                Residual(normed(half, half, then=act), normed(half, half, then=act))
                for _ in range(count)
            ]
        )
        self.last = normed((2 + count) * half, outside, 1, then=act)

    def forward(self, x):
        parts = list(self.first(x).chunk(2, 1))
        for block in self.blocks:
            parts.append(block(parts[-1]))
        return self.last(torch.cat(parts, 1))


class Detector(nn.Module):
    """A pyramid of split stages, up and joined."""

    def __init__(self) -> None:
        super().__init__()
        act = nn.SiLU()
        self.down = nn.ModuleList([
            layers(normed(3, 16, 3, 2, act), normed(16, 32, 3, 2, act), SplitStages(32, 32, 1),
                   normed(32, 64, 3, 2, act), SplitStages(64, 64, 2)),
            layers(normed(64, 128, 3, 2, act), SplitStages(128, 128, 2)),
            layers(normed(128, 256, 3, 2, act), SplitStages(256, 256, 1), normed(256, 128, 1, 1, act)),
        ])  # fmt: skip
        self.pooled = normed(512, 256, 1, then=act)
        self.up = nn.ModuleList([SplitStages(384, 128, 1), SplitStages(192, 64, 1)])
        self.head = nn.Conv2d(64, 84, 1)

    def forward(self, x):
        fine = self.down[0](x)
        middle = self.down[1](fine)
        pools = [self.down[2](middle)]
        for _ in range(3):
            pools.append(F.max_pool2d(pools[-1], 5, 1, 2))
        x = self.pooled(torch.cat(pools, 1))
        for stage, skip in zip(self.up, (middle, fine), strict=True):
            x = stage(torch.cat([F.interpolate(x, scale_factor=2), skip], 1))
        return self.head(x).flatten(2).sigmoid()


class PointNet(nn.Module):
    """Each point by itself, then the largest of all."""

    def __init__(self) -> None:
        super().__init__()
        widths = (3, 64, 128, 1024)
        self.points = layers(*[
            layers(nn.Conv1d(widths[i], widths[i + 1], 1), nn.BatchNorm1d(widths[i + 1]), nn.ReLU())
            for i in range(3)
        ])  # fmt: skip
        self.head = layers(nn.Linear(1024, 512), nn.ReLU(), nn.Linear(512, 40))

    def forward(self, x):
        return self.head(self.points(x).max(2)[0])


class TextReader(nn.Module):
    """Words in a picture: convolutions, then recurrent layers along the columns."""

    def __init__(self) -> None:
        super().__init__()
        pool = nn.MaxPool2d((2, 1))
        self.convs = layers(
            normed(1, 64), nn.MaxPool2d(2), normed(64, 128), nn.MaxPool2d(2), normed(128, 256),
            normed(256, 256), pool, normed(256, 512), pool, nn.Conv2d(512, 512, 2),
        )  # fmt: skip
        self.lstm = nn.LSTM(512, 256, 2, bidirectional=True, batch_first=True)
        self.head = nn.Linear(512, 37)

    def forward(self, x):
        return self.head(self.lstm(self.convs(x).squeeze(2).transpose(1, 2))[0])


class TextClassifier(nn.Module):
    """Embedded words under windows of several widths."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(5000, 128)
        self.convs = nn.ModuleList([nn.Conv1d(128, 100, width) for width in (3, 4, 5)])
        self.head = nn.Linear(300, 2)

    def forward(self, x):
        x = self.embedding(x).transpose(1, 2)
        return self.head(torch.cat([torch.relu(conv(x)).max(2)[0] for conv in self.convs], 1))


class Recommender(nn.Module):
    """Embeddings of categories, their products, and layers of few units."""

    def __init__(self) -> None:
        super().__init__()
        self.embeddings = nn.ModuleList([nn.Embedding(10000, 64) for _ in range(26)])
        self.below = layers(nn.Linear(13, 512), nn.ReLU(), nn.Linear(512, 64), nn.ReLU())
        self.above = layers(nn.Linear(64 + 27 * 27, 512), nn.ReLU(), nn.Linear(512, 1))

    def forward(self, dense, categories):
        first = self.below(dense)
        rows = [first, *[e(categories[:, i]) for i, e in enumerate(self.embeddings)]]
        z = torch.stack(rows, 1)
        products = torch.bmm(z, z.transpose(1, 2)).flatten(1)
        return torch.sigmoid(self.above(torch.cat([first, products], 1)))


def perceptron() -> nn.Module:
    """Four layers of 1,024 units."""
    widths = (784, 1024, 1024, 1024, 1024)
    hidden = [m for i in range(4) for m in (nn.Linear(widths[i], widths[i + 1]), nn.ReLU())]
    return layers(*hidden, nn.Linear(1024, 10))


def super_resolution() -> nn.Module:
    """One channel, thrice as large."""
    return layers(
        nn.Conv2d(1, 64, 5, padding=2), nn.Tanh(), nn.Conv2d(64, 32, 3, padding=1), nn.Tanh(),
        nn.Conv2d(32, 9, 3, padding=1), nn.PixelShuffle(3),
    )  # fmt: skip


_FOUR = {"num_hidden_layers": 4}
_WIDE = {"num_attention_heads": 8, "hidden_size": 512, **_FOUR}
_IMAGE = normal(1, 3, 224, 224)
NETWORKS: dict[str, Callable[[], Example]] = {
    "unet": lambda: (UNet(), (torch.randn(1, 3, 192, 192),)),
    "speech_gru": lambda: (Speech(), (torch.randn(1, 80, 200),)),
    "tcn": lambda: (TemporalNetwork(), (torch.randn(1, 64, 400),)),
    "wavenet": lambda: (WaveNet(), (torch.randn(1, 1, 1000),)),
    "style_transfer": lambda: (style_transfer(), (_IMAGE(),)),
    "dcgan": lambda: (generator(), (torch.randn(1, 100, 1, 1),)),
    "yolo_tiny": lambda: (tiny_detector(), (torch.randn(1, 3, 416, 416),)),
    "yolo_v8n": lambda: (Detector(), (torch.randn(1, 3, 320, 320),)),
    "pointnet": lambda: (PointNet(), (torch.randn(1, 3, 1024),)),
    "crnn": lambda: (TextReader(), (torch.randn(1, 1, 32, 100),)),
    "textcnn": lambda: (TextClassifier(), (torch.randint(0, 1000, (1, 64)),)),
    "dlrm_b32": lambda: (
        Recommender(), (torch.randn(32, 13), torch.randint(0, 1000, (32, 26)))
    ),
    "mlp": lambda: (perceptron(), (torch.randn(1, 784),)),
    "espcn": lambda: (super_resolution(), (torch.randn(1, 1, 224, 224),)),
    "distilbert": transformer("DistilBert", tokens(), n_layers=4),
    "albert": transformer(
        "Albert", tokens(), hidden_size=768, num_attention_heads=12, intermediate_size=3072
    ),
    "electra_small": transformer("Electra", tokens()),
    "roberta": transformer("Roberta", tokens(), **_FOUR),
    "deberta": transformer("Deberta", tokens(), **_FOUR),
    "t5_encoder": transformer("T5", tokens(), "EncoderModel"),
    "gpt2": transformer("GPT2", tokens(64), with_mask=True, n_layer=4),
    "opt": transformer("OPT", tokens(64), ffn_dim=2048, word_embed_proj_dim=512, **_WIDE),
    "llama": transformer(
        "Llama", tokens(64), with_mask=True, intermediate_size=1376, **_WIDE),
    "whisper_encoder": transformer(
        "Whisper", normal(1, 80, 3000), part="encoder", d_model=384, encoder_layers=4,
        decoder_layers=1, encoder_attention_heads=6, encoder_ffn_dim=1536,
    ),
    "wav2vec2": transformer("Wav2Vec2", normal(1, 16000), **_FOUR),
    "segformer": transformer("Segformer", normal(1, 3, 256, 256)),
    "clip_vision": transformer("CLIPVision", _IMAGE, **_FOUR),
    "dinov2": transformer("Dinov2", _IMAGE, **{**_FOUR, "hidden_size": 384, "num_attention_heads": 6}),
    "mobilevit": transformer("MobileViT", normal(1, 3, 256, 256)),
    "poolformer": transformer("PoolFormer", _IMAGE),
    "convnextv2": transformer("ConvNextV2", _IMAGE),
}  # fmt: skip
