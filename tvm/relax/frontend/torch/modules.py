"""PyTorch's modules as calls of its functions: which one, and what the module says of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from .base_fx_graph_translator import BaseFXGraphImporter, NoEmitter
from .neural_network import emit_batch_norm

Importer = BaseFXGraphImporter
ModuleEmitter: TypeAlias = Callable[[Importer, Any, list[Any]], Any]


def _call(name: str, *attributes: str) -> ModuleEmitter:
    """The function of that name with attributes of the module as keyword arguments."""

    def emit(e: Importer, module: Any, args: list[Any]) -> Any:
        options = {attribute: e.value(getattr(module, attribute)) for attribute in attributes}
        return e.call(name, args, options)

    return emit


def _same(e: Importer, module: Any, args: list[Any]) -> Any:
    return args[0]


_WINDOW = ("weight", "bias", "stride", "padding", "dilation", "groups")


def _conv(name: str, *more: str) -> ModuleEmitter:
    emit = _call(name, *_WINDOW, *more)

    def checked(e: Importer, module: Any, args: list[Any]) -> Any:
        if module.padding_mode != "zeros" or len(args) > 1:
            raise NoEmitter(f"{name} padded with other values than zeros")
        return emit(e, module, args)

    return checked


def _batch_norm(e: Importer, module: Any, args: list[Any]) -> Any:
    if module.running_mean is None:
        raise NoEmitter("normalisation by the batch's own statistics")
    names = ("weight", "bias", "running_mean", "running_var")
    weight, bias, mean, variance = [e.value(getattr(module, name)) for name in names]
    return e.emit(emit_batch_norm(e, args[0], weight, bias, mean, variance, module.eps)[0])


def _embedding(e: Importer, module: Any, args: list[Any]) -> Any:
    if module.max_norm is not None:
        raise NoEmitter("embedding with max_norm writes to its table")
    return e.call("functional.embedding", [args[0], e.value(module.weight)], {})


# by the name of the class in torch.nn
MODULES: Mapping[str, ModuleEmitter] = {
    "AdaptiveAvgPool2d": _call("adaptive_avg_pool2d", "output_size"),
    "AvgPool2d": _call(
        "avg_pool2d", "kernel_size", "stride", "padding", "ceil_mode", "count_include_pad",
        "divisor_override",
    ),
    "BatchNorm1d": _batch_norm,
    "BatchNorm2d": _batch_norm,
    "BatchNorm3d": _batch_norm,
    "Conv1d": _conv("conv1d"),
    "Conv2d": _conv("conv2d"),
    "Conv3d": _conv("conv3d"),
    "ConvTranspose1d": _conv("conv_transpose1d", "output_padding"),
    "ConvTranspose2d": _conv("conv_transpose2d", "output_padding"),
    "CrossEntropyLoss": _call(
        "cross_entropy", "weight", "ignore_index", "reduction", "label_smoothing"
    ),
    "Dropout": _same,
    "Dropout1d": _same,
    "Dropout2d": _same,
    "Embedding": _embedding,
    "Flatten": _call("flatten", "start_dim", "end_dim"),
    "GELU": _call("gelu", "approximate"),
    "GroupNorm": _call("group_norm", "num_groups", "weight", "bias", "eps"),
    "Hardsigmoid": _call("hardsigmoid"),
    "Hardswish": _call("hardswish"),
    "Hardtanh": _call("hardtanh", "min_val", "max_val"),
    "Identity": _same,
    "LayerNorm": _call("layer_norm", "normalized_shape", "weight", "bias", "eps"),
    "LeakyReLU": _call("leaky_relu", "negative_slope"),
    "Linear": _call("linear", "weight", "bias"),
    "LogSoftmax": _call("log_softmax", "dim"),
    "MaxPool2d": _call(
        "max_pool2d", "kernel_size", "stride", "padding", "dilation", "ceil_mode", "return_indices"
    ),
    "ReLU": _call("relu"),
    "ReLU6": _call("relu6"),
    "Sigmoid": _call("sigmoid"),
    "SiLU": _call("silu"),
    "Softmax": _call("softmax", "dim"),
    "Tanh": _call("tanh"),
    "Upsample": _call("interpolate", "size", "scale_factor", "mode", "align_corners"),
}  # fmt: skip
