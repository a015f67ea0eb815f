"""Transformations of loop-level programs: one pass a file, under their classic names."""

from tvm.support.later import names_from_above as _names_from_above

from . import _ffi_api
from .apply_layout_transforms import ApplyLayoutTransforms
from .combine_context_call import CombineContextCall
from .common import PrimFuncPass
from .common_subexpr_elim import CommonSubexprElimTIR
from .compact_buffer_allocation import CompactBufferAllocation
from .compute_legalize import BF16ComputeLegalize, FP8ComputeLegalize
from .convert_blocks_to_opaque import ConvertBlocksToOpaque
from .convert_for_loops_to_serial import ConvertForLoopsToSerial
from .convert_ssa import ConvertSSA
from .coproc_sync import CoProcSync
from .decorate_device_scope import DecorateDeviceScope
from .extract_constants import ExtractPrimFuncConstants
from .flatten_buffer import FlattenBuffer
from .force_narrow_index_to_int32 import ForceNarrowIndexToInt32
from .function_pass import prim_func_pass
from .functions import AnnotateEntryFunc, Apply, BindTarget, Filter
from .hoist_expression import HoistedConditionals, HoistedLetBindings, HoistExpression
from .hoist_if_then_else import HoistIfThenElse
from .infer_fragment import InferFragment
from .inject_copy_intrin import InjectCopyIntrin
from .inject_double_buffer import InjectDoubleBuffer
from .inject_permuted_layout import InjectPermutedLayout
from .inject_prefetch import InjectPrefetch
from .inject_ptx_async_copy import InjectPTXAsyncCopy
from .inject_ptx_ldg32 import InjectPTXLDG32
from .inject_rolling_buffer import InjectRollingBuffer
from .inject_software_pipeline import InjectSoftwarePipeline
from .inject_virtual_thread import InjectVirtualThread
from .inline_private_functions import InlinePrivateFunctions
from .install_debug_spans import InstallDebugSpans
from .instrument_bound_checkers import InstrumentBoundCheckers
from .instrument_profile import InstrumentProfileIntrinsics
from .legalize_packed_calls import LegalizePackedCalls
from .lift_attr_scope import LiftAttrScope
from .lift_thread_binding import LiftThreadBinding
from .loop_partition import LoopPartition
from .lower_async_dma import LowerAsyncDMA
from .lower_auto_copy import LowerAutoCopy
from .lower_cross_thread_reduction import LowerCrossThreadReduction
from .lower_custom_datatypes import LowerCustomDatatypes
from .lower_device_kernel_launch import LowerDeviceKernelLaunch
from .lower_device_storage_access_info import LowerDeviceStorageAccessInfo
from .lower_init_block import LowerInitBlock
from .lower_intrin import LowerIntrin
from .lower_match_buffer import LowerMatchBuffer
from .lower_narrow_integers import LowerNarrowIntegers
from .lower_opaque_block import LowerOpaqueBlock
from .lower_thread_allreduce import LowerThreadAllreduce
from .lower_tvm_builtin import LowerTVMBuiltin
from .lower_warp_memory import LowerWarpMemory
from .make_packed_api import MakePackedAPI
from .make_unpacked_api import MakeUnpackedAPI
from .manifest_shared_memory_local_stage import ManifestSharedMemoryLocalStage
from .merge_shared_memory import MergeSharedMemoryAllocations
from .narrow_data_type import NarrowDataType
from .plan_buffer_location import PlanAndUpdateBufferAllocationLocation
from .pointer_value_type import PointerValueTypeRewrite
from .reduce_branching import ReduceBranchingThroughOvercompute
from .remove_assume import RemoveAssume
from .remove_no_op import RemoveNoOp
from .remove_store_undef import RemoveStoreUndef
from .remove_weight_layout_rewrite import RemoveWeightLayoutRewriteBlock
from .renormalize_split_pattern import RenormalizeSplitPattern
from .rewrite_unsafe_select import RewriteUnsafeSelect
from .select_local_lanes import SelectLocalLanes
from .simplify import Simplify
from .skip_assert import SkipAssert
from .specialize_unit_strides import SpecializeUnitStrides
from .split_host_device import AnnotateDeviceRegions, SplitHostDevice
from .storage_flatten import StorageFlatten
from .storage_legalize import BF16StorageLegalize, FP8StorageLegalize
from .storage_rewrite import StorageRewrite
from .texture_flatten import TextureFlatten
from .thread_sync import ThreadSync
from .transform_mma_buffer_layout import TransformMmaBufferLayout
from .transpose_tiles import TransposeTiles
from .unify_thread_binding import UnifyThreadBinding
from .unroll_loop import UnrollLoop
from .use_assume import UseAssumeToReduceBranches
from .vectorize_loop import VectorizeLoop
from .verify_memory import VerifyMemory
from .verify_vtcm_limit import VerifyVTCMLimit

__all__ = [
    "DefaultGPUSchedule", "InjectSoftwarePipeline", "LegalizePackedCalls", "LiftThreadBinding", "LowerCrossThreadReduction",
    "ManifestSharedMemoryLocalStage", "PointerValueTypeRewrite", "ReduceBranchingThroughOvercompute",
    "RemoveWeightLayoutRewriteBlock", "ThreadSync", "UseAssumeToReduceBranches",
    "CoProcSync", "InjectPTXAsyncCopy", "InjectPTXLDG32", "InjectPermutedLayout", "InstrumentProfileIntrinsics",
    "LowerAsyncDMA", "LowerAutoCopy", "LowerDeviceStorageAccessInfo", "LowerThreadAllreduce", "LowerWarpMemory",
    "MergeSharedMemoryAllocations", "TextureFlatten", "TransformMmaBufferLayout",
    "AnnotateDeviceRegions", "AnnotateEntryFunc", "Apply", "ApplyLayoutTransforms",
    "BF16ComputeLegalize", "BF16StorageLegalize", "BindTarget", "CombineContextCall",
    "CommonSubexprElimTIR", "CompactBufferAllocation", "ConvertBlocksToOpaque",
    "ConvertForLoopsToSerial", "ConvertSSA", "DecorateDeviceScope", "ExtractPrimFuncConstants",
    "FP8ComputeLegalize", "FP8StorageLegalize", "Filter", "FlattenBuffer",
    "ForceNarrowIndexToInt32", "HoistExpression", "HoistIfThenElse", "HoistedConditionals",
    "HoistedLetBindings", "InferFragment", "InjectCopyIntrin", "InjectDoubleBuffer",
    "InjectPrefetch", "InjectRollingBuffer", "InjectVirtualThread", "InlinePrivateFunctions",
    "InstallDebugSpans", "InstrumentBoundCheckers", "LiftAttrScope", "LoopPartition", "LowerCustomDatatypes",
    "LowerDeviceKernelLaunch", "LowerInitBlock", "LowerIntrin", "LowerMatchBuffer", "LowerNarrowIntegers",
    "LowerOpaqueBlock", "LowerTVMBuiltin", "MakePackedAPI", "MakeUnpackedAPI", "NarrowDataType",
    "PlanAndUpdateBufferAllocationLocation", "PrimFuncPass", "RemoveAssume", "RemoveNoOp",
    "RemoveStoreUndef", "RenormalizeSplitPattern", "RewriteUnsafeSelect", "SelectLocalLanes", "Simplify",
    "SkipAssert", "SpecializeUnitStrides", "SplitHostDevice", "StorageFlatten", "StorageRewrite", "TransposeTiles", "UnifyThreadBinding",
    "UnrollLoop", "VectorizeLoop", "VerifyMemory", "VerifyVTCMLimit", "prim_func_pass",
]  # fmt: skip

__getattr__ = _names_from_above(__name__)
