"""Passes of relax."""

from tvm.support.later import names_from_above as _names_from_above

from .adjust_matmul_order import AdjustMatmulOrder
from .allocate_workspace import AllocateWorkspace
from .alter_op_impl import AlterOpImpl
from .annotate_tir_op_pattern import AnnotateTIROpPattern
from .attach_external_modules import AttachExternModules
from .attach_global_symbol import AttachGlobalSymbol
from .bind_params import BindParams, BindSymbolicVars
from .bundle_model_params import BundleModelParams
from .call_tir_rewrite import CallTIRRewrite
from .canonicalize_bindings import CanonicalizeBindings
from .combine_parallel_matmul import CombineParallelMatmul
from .common_subexpr import EliminateCommonSubexpr
from .compute_prim_value import ComputePrimValue
from .convert_layout import ConvertLayout
from .convert_to_dataflow import ConvertToDataflow
from .dead_code import DeadCodeElimination
from .decompose_ops import DecomposeOpsForInference, DecomposeOpsForTraining
from .expand_matmul_of_sum import ExpandMatmulOfSum
from .fast_math import FastMathTransform
from .fold_constant import FoldConstant
from .fuse_ops import FuseOps
from .fuse_ops_by_pattern import FuseOpsByPattern, FusionPattern, PatternCheckContext
from .fuse_tir import FuseTIR
from .fuse_transpose_matmul import FuseTransposeMatmul
from .gradient import Gradient
from .ipc_memory import IPCAllReduceRewrite, LowerGPUIPCAllocStorage
from .kill_after_last_use import KillAfterLastUse
from .lambda_lift import LambdaLift
from .lazy_transform_params import LazyGetInput, LazySetOutput, LazyTransformParams
from .legalize_ops import LegalizeOps
from .lift_transform_params import LiftTransformParams
from .lower_alloc_tensor import LowerAllocTensor
from .lower_runtime_builtin import LowerRuntimeBuiltin, VMBuiltinLower
from .merge_composite import MergeCompositeFunctions
from .meta_schedule import (
    FewShotTuning,
    MetaScheduleApplyDatabase,
    MetaScheduleTuneIRMod,
    MetaScheduleTuneTIR,
)
from .normalize import Normalize, NormalizeGlobalVar
from .optimize_layout_transform import OptimizeLayoutTransform
from .pass_kinds import DataflowBlockPass, FunctionPass, dataflowblock_pass, function_pass
from .private_functions import (
    ExpandTupleArguments,
    InlinePrivateFunctions,
    RemoveUnusedParameters,
)
from .realize_vdevice import RealizeVDevice
from .remove_purity_checking import RemovePurityChecking
from .remove_redundant_reshape import RemoveRedundantReshape
from .remove_unused_outputs import RemoveUnusedOutputs
from .reorder_permute_dims_after_concat import ReorderPermuteDimsAfterConcat
from .reorder_take_after_matmul import ReorderTakeAfterMatmul
from .rewrite_cuda_graph import RewriteCUDAGraph
from .rewrite_dataflow_reshape import RewriteDataflowReshape
from .run_codegen import RunCodegen
from .specialize_call_sites import SpecializePrimFuncBasedOnCallSite
from .split_call_tir_by_pattern import SplitCallTIRByPattern
from .split_layout_rewrite_preproc import AttachAttrLayoutFreeBuffers, SplitLayoutRewritePreproc
from .static_plan_block_memory import StaticPlanBlockMemory
from .to_mixed_precision import ToMixedPrecision
from .to_non_dataflow import ToNonDataflow
from .topological_sort import TopologicalSort
from .update_param_struct_info import UpdateParamStructInfo
from .update_vdevice import UpdateVDevice
from .use_inplace_calls import DataflowUseInplaceCalls
from .vm_shape_lower import VMShapeLower

__all__ = [
    "AdjustMatmulOrder",
    "AllocateWorkspace",
    "AnnotateTIROpPattern",
    "AttachAttrLayoutFreeBuffers",
    "AttachExternModules",
    "AttachGlobalSymbol",
    "BindParams",
    "BindSymbolicVars",
    "BundleModelParams",
    "CallTIRRewrite",
    "CanonicalizeBindings",
    "CombineParallelMatmul",
    "ComputePrimValue",
    "ConvertLayout",
    "ConvertToDataflow",
    "DataflowBlockPass",
    "DataflowUseInplaceCalls",
    "DeadCodeElimination",
    "DecomposeOpsForInference",
    "DecomposeOpsForTraining",
    "EliminateCommonSubexpr",
    "ExpandMatmulOfSum",
    "ExpandTupleArguments",
    "FastMathTransform",
    "FewShotTuning",
    "FoldConstant",
    "FunctionPass",
    "FuseOps",
    "FuseOpsByPattern",
    "FuseTIR",
    "FuseTransposeMatmul",
    "FusionPattern",
    "Gradient",
    "IPCAllReduceRewrite",
    "InlinePrivateFunctions",
    "KillAfterLastUse",
    "LambdaLift",
    "LazyGetInput",
    "LazySetOutput",
    "LazyTransformParams",
    "LegalizeOps",
    "LiftTransformParams",
    "LowerAllocTensor",
    "LowerGPUIPCAllocStorage",
    "LowerRuntimeBuiltin",
    "MergeCompositeFunctions",
    "MetaScheduleApplyDatabase",
    "MetaScheduleTuneIRMod",
    "MetaScheduleTuneTIR",
    "Normalize",
    "NormalizeGlobalVar",
    "PatternCheckContext",
    "RealizeVDevice",
    "RemovePurityChecking",
    "RemoveRedundantReshape",
    "RemoveUnusedOutputs",
    "RemoveUnusedParameters",
    "ReorderPermuteDimsAfterConcat",
    "ReorderTakeAfterMatmul",
    "RewriteCUDAGraph",
    "RewriteDataflowReshape",
    "RunCodegen",
    "SpecializePrimFuncBasedOnCallSite",
    "SplitLayoutRewritePreproc",
    "StaticPlanBlockMemory",
    "ToMixedPrecision",
    "ToNonDataflow",
    "TopologicalSort",
    "UpdateParamStructInfo",
    "UpdateVDevice",
    "VMBuiltinLower",
    "VMShapeLower",
    "dataflowblock_pass",
    "function_pass",
]

__getattr__ = _names_from_above(__name__)
