"""torchvision's architectures, at small sizes and with random weights."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn

import tests.torchvision_operators  # noqa: F401
from benchmarks.networks import Example, FirstOutput
from benchmarks.zoo import vision


def _image(name: str, size: int = 64, **options: Any) -> Callable[[], Example]:
    return lambda: (
        getattr(vision, name)(weights=None, **options), (torch.randn(1, 3, size, size),)
    )  # fmt: skip


def _segmentation(name: str) -> Callable[[], Example]:
    def make() -> Example:
        model = getattr(vision.segmentation, name)(
            weights=None, weights_backbone=None, num_classes=5
        )
        return FirstOutput(model, "out"), (torch.randn(1, 3, 64, 64),)

    return make


def _video(name: str, frames: int, size: int) -> Callable[[], Example]:
    return lambda: (
        getattr(vision.video, name)(weights=None), (torch.randn(1, 3, frames, size, size),)
    )  # fmt: skip


class _LastFlow(nn.Module):
    """A RAFT that refines the flow twice and gives what it ends with."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, first, second):
        return self.model(first, second, num_flow_updates=2)[-1]


def _flow(name: str) -> Callable[[], Example]:
    def make() -> Example:
        images = torch.randn(1, 3, 128, 128), torch.randn(1, 3, 128, 128)
        return _LastFlow(getattr(vision.optical_flow, name)(weights=None)), images

    return make


class Detections(nn.Module):
    """A detector that takes images and gives the values of the first one's dictionary."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, images):
        return tuple(self.model(list(images))[0].values())


def _detector(name: str, size: int = 96, **options: Any) -> Callable[[], Example]:
    def make() -> Example:
        model = getattr(vision.detection, name)(
            weights=None, weights_backbone=None, num_classes=5, **options
        )
        return Detections(model), (torch.rand(1, 3, size, size),)

    return make


_PLAIN = (
    "alexnet", "convnext_base", "convnext_large", "convnext_small", "convnext_tiny", "densenet121",
    "densenet161", "densenet169", "densenet201", "efficientnet_b0", "efficientnet_b1",
    "efficientnet_b2", "efficientnet_b3", "efficientnet_b4", "efficientnet_b5", "efficientnet_b6",
    "efficientnet_b7", "efficientnet_v2_l", "efficientnet_v2_m", "efficientnet_v2_s", "mnasnet0_5",
    "mnasnet0_75", "mnasnet1_0", "mnasnet1_3", "mobilenet_v2", "mobilenet_v3_large",
    "mobilenet_v3_small", "regnet_x_16gf", "regnet_x_1_6gf", "regnet_x_32gf", "regnet_x_3_2gf",
    "regnet_x_400mf", "regnet_x_800mf", "regnet_x_8gf", "regnet_y_128gf", "regnet_y_16gf",
    "regnet_y_1_6gf", "regnet_y_32gf", "regnet_y_3_2gf", "regnet_y_400mf", "regnet_y_800mf",
    "regnet_y_8gf", "resnet101", "resnet152", "resnet18", "resnet34", "resnet50",
    "resnext101_32x8d", "resnext101_64x4d", "resnext50_32x4d", "shufflenet_v2_x0_5",
    "shufflenet_v2_x1_0", "shufflenet_v2_x1_5", "shufflenet_v2_x2_0", "squeezenet1_0",
    "squeezenet1_1", "swin_b", "swin_s", "swin_t", "swin_v2_b", "swin_v2_s", "swin_v2_t", "vgg11",
    "vgg11_bn", "vgg13", "vgg13_bn", "vgg16", "vgg16_bn", "vgg19", "vgg19_bn", "wide_resnet101_2",
    "wide_resnet50_2",
)  # fmt: skip
# the size of the image that proposals are made for, and how many of them go on
_REGIONS = {"min_size": 96, "max_size": 96, "box_detections_per_img": 10}
_SHOTS = {"min_size": 96, "max_size": 96, "score_thresh": 0.005}

CLASSIFIERS: dict[str, Callable[[], Example]] = {
    **{name: _image(name) for name in _PLAIN},
    "googlenet": _image("googlenet", aux_logits=False, init_weights=False),
    "inception_v3": _image("inception_v3", 299, aux_logits=False, init_weights=False),
    **{name: _image(name, image_size=64) for name in ("vit_b_16", "vit_b_32", "vit_l_16",
                                                      "vit_l_32")},
    "vit_h_14": _image("vit_h_14", 56, image_size=56),
    "maxvit_t": _image("maxvit_t", 224),
}  # fmt: skip
VISION: dict[str, Callable[[], Example]] = {
    **CLASSIFIERS,
    **{name: _segmentation(name) for name in (
        "deeplabv3_mobilenet_v3_large", "deeplabv3_resnet101", "deeplabv3_resnet50",
        "fcn_resnet101", "fcn_resnet50", "lraspp_mobilenet_v3_large",
    )},
    **{name: _video(name, 4, 32) for name in ("mc3_18", "r2plus1d_18", "r3d_18")},
    **{name: _video(name, 8, 64) for name in ("swin3d_b", "swin3d_s", "swin3d_t")},
    **{name: _video(name, 16, 224) for name in ("mvit_v1_b", "mvit_v2_s", "s3d")},
    **{name: _flow(name) for name in ("raft_large", "raft_small")},
}  # fmt: skip
# what they find depends on the image: the virtual machine runs them
DETECTORS: dict[str, Callable[[], Example]] = {
    **{name: _detector(name, **_REGIONS) for name in (
        "fasterrcnn_mobilenet_v3_large_320_fpn", "fasterrcnn_mobilenet_v3_large_fpn",
        "fasterrcnn_resnet50_fpn", "fasterrcnn_resnet50_fpn_v2", "keypointrcnn_resnet50_fpn",
        "maskrcnn_resnet50_fpn", "maskrcnn_resnet50_fpn_v2",
    )},
    **{name: _detector(name, **_SHOTS) for name in (
        "fcos_resnet50_fpn", "retinanet_resnet50_fpn", "retinanet_resnet50_fpn_v2",
    )},
    "ssd300_vgg16": _detector("ssd300_vgg16", 128),
    "ssdlite320_mobilenet_v3_large": _detector("ssdlite320_mobilenet_v3_large", 128),
}  # fmt: skip
