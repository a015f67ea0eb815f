"""Modules of device libraries and external compilers that programs import at their head.

Their functions are there and raise when called; questions such as ``can_use_thrust()`` are
answered with False.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NoReturn

from tvm.error import TVMError
from tvm.support.absent_boards import GROUPS

_PROCESSORS = "code is generated for processors and GPUs, by the targets llvm, c, opencl and cuda"
_COMPILERS = (
    "dnnl is the external compiler here, and others are added with "
    "relay.op.contrib.register_pattern_table and tvm.register_func('relay.ext.<name>')"
)
_TUNED = "kernels are chosen by a cost model, and tvm.autotvm tunes them"
_EXECUTORS = "models are run by this package's executors"


@dataclass(frozen=True)
class HelperModule:
    """What a module of a library that is not there has."""

    instead: str  # what there is instead
    functions: str = ""  # names that raise
    questions: str = ""  # names that answer no
    is_package: bool = False
    # classes of numbers that programs choose by
    choices: Mapping[str, str] = field(default_factory=dict)
    # classes of composite functions, by the names of those; their constructors raise
    composites: Mapping[str, str] = field(default_factory=dict)


_COMPUTES = {
    "cublas": "matmul batch_matmul",
    "cublaslt": "matmul batch_matmul",
    "hipblas": "matmul batch_matmul",
    "miopen": "conv2d_forward softmax log_softmax",
    "mps": "matmul conv2d",
    "rocblas": "matmul batch_matmul",
}
_ETHOSU_PATTERNS = (
    "abs concat expand_dims hard_swish leaky_relu matmul matmul_fixed_point maximum "
    "maximum_clip_requantize mean minimum minimum_clip_requantize pad qnn_add qnn_avgpool2d "
    "qnn_conv2d qnn_conv2d_transpose qnn_depthwise_conv2d qnn_fc qnn_maxpool2d qnn_mul "
    "qnn_subtract requantize reshape resize2d shl sigmoid softmax split squeeze strided_slice sum "
    "tanh tanh_fixed_point channel_pad"
)
_ETHOSU_LAYERS = {
    "Abs": "abs", "Add": "add", "AvgPool2D": "avgpool2d", "ChannelPad": "channel-pad",
    "Concat": "concat", "ExpandDims": "expand_dims", "FullyConnected": "fully_connected",
    "HardSwish": "hard_swish", "LeakyReLU": "leaky_relu", "MatMul": "matmul", "Max": "max",
    "MaxPool2D": "maxpool2d", "Mean": "mean", "Min": "min", "Mul": "mul", "Pad": "pad2d",
    "QnnConv2D": "qnn_conv2d", "QnnConv2DTranspose": "qnn_conv2d_transpose",
    "QnnDepthwiseConv2D": "depthwise_conv2d", "Requantize": "requantize", "Reshape": "reshape",
    "Resize2d": "resize2d", "Shl": "shl", "Sigmoid": "sigmoid", "SoftMax": "softmax",
    "Split": "split", "Squeeze": "squeeze", "StridedSlice": "strided_slice", "Sub": "sub",
    "Sum": "sum", "Tanh": "tanh", "TanhFixedPoint": "tanh_fixed_point",
}  # fmt: skip
_COMPILER_FUNCTIONS = {
    "ethosn": HelperModule(
        _COMPILERS,
        "partition_for_ethosn ConvertEquivalents InlineNonComputeIntensivePartitions",
        "ethosn_available ethosn_api_version",
        choices={"Available": "UNAVAILABLE=0 SW_ONLY=1 SW_AND_HW=2"},
    ),
    "ethosu": HelperModule(
        _COMPILERS,
        "partition_for_ethosu pattern_table "
        + " ".join([f"{name}_pattern" for name in _ETHOSU_PATTERNS.split()]),
        composites={f"{name}Params": f"ethos-u.{kind}" for name, kind in _ETHOSU_LAYERS.items()},
    ),
    "mrvl": HelperModule(_COMPILERS, "partition_for_mrvl mrvl_pattern_table"),
    "vitis_ai": HelperModule(_COMPILERS, "partition_for_vitis_ai annotation"),
}
HELPERS: dict[str, HelperModule] = {
    **{f"tvm.contrib.{name}": HelperModule(_PROCESSORS, has) for name, has in _COMPUTES.items()},
    "tvm.contrib.thrust": HelperModule(_PROCESSORS, questions="can_use_thrust can_use_rocthrust"),
    "tvm.contrib.cutlass": HelperModule(
        _PROCESSORS,
        "finalize_modules finalize_modules_vm num_cutlass_partitions",
        "has_cutlass",
        is_package=True,
    ),
    "tvm.contrib.cutlass.build": HelperModule(
        _PROCESSORS, "is_shape_valid_for_cutlass_matmul tune_cutlass_kernels"
    ),
    "tvm.contrib.nnpack": HelperModule(
        _PROCESSORS,
        "fully_connected_inference convolution_inference "
        "convolution_inference_without_weight_transform convolution_inference_weight_transform",
        "is_available",
        choices={
            "ConvolutionAlgorithm": (
                "AUTO=0 FFT_8x8=1 FFT_16x16=2 WT_8x8=3 IMPLICIT_GEMM=4 DIRECT=5 WT_8x8_FP16=6"
            ),
            "ConvolutionTransformStrategy": "COMPUTE=1 PRECOMPUTE=2",
        },
    ),
    "tvm.contrib.coreml_runtime": HelperModule(_EXECUTORS, "create CoreMLModule"),
    "tvm.contrib.tflite_runtime": HelperModule(_EXECUTORS, "create TFLiteModule"),
    "tvm.contrib.mxnet": HelperModule(_EXECUTORS, "to_mxnet_func"),
    "tvm.contrib.tf_op": HelperModule(_EXECUTORS, "OpModule TensorFunc", is_package=True),
    "tvm.contrib.tf_op.module": HelperModule(_EXECUTORS, "OpModule TensorFunc"),
    "tvm.contrib.target": HelperModule(_COMPILERS, is_package=True),
    "tvm.contrib.target.coreml": HelperModule(_COMPILERS, "coreml_compiler CodegenCoreML"),
    "tvm.contrib.target.vitis_ai": HelperModule(
        _COMPILERS, "vitis_ai_compiler CodegenVitisAI", "vitis_ai_available"
    ),
    "tvm.meta_schedule.testing": HelperModule(_TUNED, is_package=True),
    "tvm.meta_schedule.testing.te_workload": HelperModule(
        _TUNED,
        "batch_matmul_nkkm conv1d_nlc conv2d_nhwc conv3d_ndhwc depthwise_conv2d_nhwc "
        "conv2d_transpose_nhwc conv2d_capsule_nhwijc norm_bmn "
        "conv2d_nhwc_without_layout_rewrite conv2d_nhwc_bn_relu transpose_batch_matmul "
        "conv2d_winograd_nhwc conv2d_winograd_nchw matmul matmul_relu conv2d_nchw "
        "conv2d_nchw_bias_bn_relu max_pool2d_nchw softmax_mn create_te_workload",
    ),
    **{f"tvm.relay.op.contrib.{name}": has for name, has in _COMPILER_FUNCTIONS.items()},
    **{
        f"{package}.{name}".rstrip("."): HelperModule(instead, functions, is_package=True)
        for package, (instead, modules) in GROUPS.items()
        for name, functions in modules.items()
    },
}


def absent_compilers() -> dict[str, list[str]]:
    """The external compilers that are not there, with the names of their functions."""
    return {name: [*f"{has.functions} {has.questions}".split(), *has.composites]
            for name, has in _COMPILER_FUNCTIONS.items()}  # fmt: skip


def helper_functions(path: str) -> dict[str, Callable[..., Any]]:
    """The functions and classes of a module in `HELPERS`, by name."""
    has = HELPERS[path]
    raising = {name: _raising(path, name, has.instead) for name in has.functions.split()}
    answering = {name: _no(path, name) for name in has.questions.split()}
    classes = {name: _choice(path, name, values) for name, values in has.choices.items()}
    composites = {
        name: _composite(path, name, composite, has.instead)
        for name, composite in has.composites.items()
    }
    return {**raising, **answering, **classes, **composites}


def _composite(path: str, name: str, composite: str, instead: str) -> type:
    namespace = {
        "__module__": path,
        "__init__": _raising(path, name, instead),
        "composite_name": composite,
    }
    return type(name, (), namespace)


def _choice(path: str, name: str, values: str) -> type:
    pairs = [value.split("=") for value in values.split()]
    return type(name, (), {"__module__": path, **{key: int(number) for key, number in pairs}})


def _raising(path: str, name: str, instead: str) -> Callable[..., NoReturn]:
    def reject(*_: Any, **__: Any) -> NoReturn:
        raise TVMError(f"{path}.{name} is not in this release; {instead}")

    return _named(reject, path, name)


def _no(path: str, name: str) -> Callable[..., bool]:
    def answer(*_: Any, **__: Any) -> bool:
        return False

    return _named(answer, path, name)


def _named(function: Callable[..., Any], path: str, name: str) -> Callable[..., Any]:
    function.__module__, function.__name__, function.__qualname__ = path, name, name
    return function
