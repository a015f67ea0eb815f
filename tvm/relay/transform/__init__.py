"""Passes over relay programs, under their classic names."""

from tvm.ir.transform import PassContext, Sequential, module_pass

from .alter_op_layout import AlterOpLayout
from .annotate_target import AnnotateTarget
from .apply_functions import ApplyFunctions
from .canonicalize_ops import CanonicalizeOps
from .combine_parallel import (
    CombineParallelBatchMatmul,
    CombineParallelConv2D,
    CombineParallelDense,
    WidenDense,
)
from .common import FunctionPass, function_pass
from .common_subexpr import EliminateCommonSubexpr
from .convert_layout import ConvertLayout
from .dead_code import DeadCodeElimination
from .defuse_ops import DefuseOps
from .dynamic_to_static import DynamicToStatic
from .eta_expand import EtaExpand
from .fake_quantization_to_integer import FakeQuantizationToInteger
from .fast_math import FastMath
from .first_order_gradient import FirstOrderGradient
from .fold_constant import FoldConstant, FoldConstantExpr
from .fold_scale_axis import BackwardFoldScaleAxis, FoldScaleAxis, ForwardFoldScaleAxis
from .fuse_attention import FuseAttention
from .fuse_ops import FuseOps, SeparateOps
from .gradient import gradient
from .infer_type import InferType, InferTypeLocal
from .inline import Inline, RemoveUnusedFunctions
from .integer_products import IntegerProducts
from .lambda_lift import LambdaLift
from .legalize import Legalize
from .manifest_alloc import ManifestAlloc
from .manifest_lifetimes import ManifestLifetimes
from .merge_compiler_regions import MergeCompilerRegions
from .merge_composite import MergeComposite
from .mixed_precision import ToMixedPrecision
from .normal_form import ToANormalForm, ToANormalFormExpr, ToGraphNormalForm
from .partition_graph import PartitionGraph
from .simplify_expr import SimplifyExpr
from .simplify_inference import SimplifyInference
from .sink_reshapes import SinkReshapes
from .symbolic_shapes import SymbolicShapes
from .wide_accumulation import WideAccumulation
