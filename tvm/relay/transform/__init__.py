"""Passes over relay programs, under their classic names."""

from tvm.ir.transform import PassContext, Sequential, module_pass
from tvm.support.later import names_from_above as _names_from_above

from . import _ffi_api, suffixes
from .alter_op_layout import AlterOpLayout
from .annotate_target import AnnotateTarget
from .annotate_used_memory import AnnotateUsedMemory
from .apply_functions import ApplyFunctions
from .basic_block import ToBasicBlockNormalForm
from .build_config import build_config
from .canonicalize_cast import CanonicalizeCast
from .canonicalize_ops import CanonicalizeOps
from .change_batch import ChangeBatch
from .channels_first import ChannelsFirst
from .collage_partition import CollagePartition
from .combine_parallel import (
    BatchingOps,
    CombineParallelBatchMatmul,
    CombineParallelConv2D,
    CombineParallelDense,
    WidenDense,
)
from .common import FunctionPass, function_pass
from .common_subexpr import EliminateCommonSubexpr
from .compiler_functions import (
    InlineCompilerFunctionsBoundTo,
    MarkCompilerFunctionsAsExtern,
    OutlineCompilerFunctionsWithExistingGlobalSymbols,
)
from .convert_layout import ConvertLayout, LayoutConfig
from .cps import ToCPS, to_cps, un_cps
from .dead_code import DeadCodeElimination
from .defunctionalize import Defunctionalization
from .defuse_ops import DefuseOps
from .div_to_mul import DivToMul
from .dynamic_to_static import DynamicToStatic
from .eta_expand import EtaExpand
from .fake_quantization_to_integer import FakeQuantizationToInteger
from .fast_math import FastMath
from .first_order_gradient import FirstOrderGradient
from .flatten_atrous_conv import FlattenAtrousConv
from .flexible_shape import FlexibleShapeDispatch
from .fold_constant import FoldConstant, FoldConstantExpr
from .fold_explicit_padding import FoldExplicitPadding
from .fold_scale_axis import BackwardFoldScaleAxis, FoldScaleAxis, ForwardFoldScaleAxis
from .fuse_attention import FuseAttention
from .fuse_ops import FuseOps, SeparateOps
from .gradient import gradient
from .infer_layout_utils import InferCorrectLayoutOutput
from .infer_type import InferType, InferTypeLocal
from .inline import Inline, RemoveUnusedFunctions
from .integer_products import IntegerProducts
from .known_shapes import KnownShapes
from .lambda_lift import LambdaLift
from .lazy_gradient_init import LazyGradientInit
from .legalize import Legalize
from .manifest_alloc import ManifestAlloc
from .manifest_lifetimes import ManifestLifetimes
from .merge_compiler_regions import MergeCompilerRegions
from .merge_composite import MergeComposite
from .mixed_precision import ToMixedPrecision
from .normal_form import NameResults, ToANormalForm, ToANormalFormExpr, ToGraphNormalForm
from .partial_evaluate import PartialEvaluate
from .partition_graph import PartitionGraph
from .plan_devices import PlanDevices
from .precision_report import OperatorPrecision, PrecisionReport, precision_report
from .recast import recast
from .recover_devices import recover_virtual_devices
from .share_kernels import ShareKernels
from .share_tables import ShareTables
from .simplify_expr import SimplifyExpr
from .simplify_fc_transpose import SimplifyFCTranspose
from .simplify_inference import SimplifyInference
from .sink_reshapes import SinkReshapes
from .skip_rounding import SkipRounding
from .spans import AnnotateSpans, CapturePostDfsIndexInSpans
from .split_args import SplitArgs
from .standalone_reshapes import RemoveStandaloneReshapes
from .symbolic_shapes import SymbolicShapes
from .to_sparse import Conv2dToSparse, Conv2dToSparse2, DenseToSparse
from .unsigned_data import UnsignedData
from .wide_accumulation import WideAccumulation

__all__ = [
    "CollagePartition",
    "AlterOpLayout",
    "AnnotateSpans",
    "AnnotateTarget",
    "ApplyFunctions",
    "BackwardFoldScaleAxis",
    "BatchingOps",
    "CanonicalizeCast",
    "CanonicalizeOps",
    "CapturePostDfsIndexInSpans",
    "ChangeBatch",
    "CombineParallelBatchMatmul",
    "CombineParallelConv2D",
    "CombineParallelDense",
    "Conv2dToSparse",
    "Conv2dToSparse2",
    "ConvertLayout",
    "DeadCodeElimination",
    "Defunctionalization",
    "DefuseOps",
    "DenseToSparse",
    "DivToMul",
    "DynamicToStatic",
    "EliminateCommonSubexpr",
    "EtaExpand",
    "FakeQuantizationToInteger",
    "FastMath",
    "FirstOrderGradient",
    "FlattenAtrousConv",
    "FlexibleShapeDispatch",
    "FoldConstant",
    "FoldConstantExpr",
    "FoldExplicitPadding",
    "FoldScaleAxis",
    "ForwardFoldScaleAxis",
    "FunctionPass",
    "FuseAttention",
    "FuseOps",
    "InferCorrectLayoutOutput",
    "InferType",
    "InferTypeLocal",
    "Inline",
    "InlineCompilerFunctionsBoundTo",
    "IntegerProducts",
    "KnownShapes",
    "LambdaLift",
    "LayoutConfig",
    "LazyGradientInit",
    "Legalize",
    "ManifestAlloc",
    "ManifestLifetimes",
    "MarkCompilerFunctionsAsExtern",
    "MergeCompilerRegions",
    "MergeComposite",
    "NameResults",
    "OperatorPrecision",
    "OutlineCompilerFunctionsWithExistingGlobalSymbols",
    "PartialEvaluate",
    "PartitionGraph",
    "PassContext",
    "PlanDevices",
    "PrecisionReport",
    "RemoveUnusedFunctions",
    "SeparateOps",
    "Sequential",
    "ShareKernels",
    "ShareTables",
    "RemoveStandaloneReshapes",
    "SimplifyExpr",
    "SimplifyFCTranspose",
    "SimplifyInference",
    "SinkReshapes",
    "SkipRounding",
    "SplitArgs",
    "SymbolicShapes",
    "ToANormalForm",
    "ToANormalFormExpr",
    "ToBasicBlockNormalForm",
    "ToCPS",
    "ToGraphNormalForm",
    "ToMixedPrecision",
    "UnsignedData",
    "WideAccumulation",
    "WidenDense",
    "build_config",
    "function_pass",
    "gradient",
    "module_pass",
    "precision_report",
    "recast",
    "suffixes",
    "to_cps",
    "un_cps",
]

__getattr__ = _names_from_above(__name__)
