"""Transformations of loop-level programs: one pass a file, under their classic names."""

from .combine_context_call import CombineContextCall
from .common import PrimFuncPass
from .compact_buffer_allocation import CompactBufferAllocation
from .convert_blocks_to_opaque import ConvertBlocksToOpaque
from .convert_ssa import ConvertSSA
from .flatten_buffer import FlattenBuffer
from .force_narrow_index_to_int32 import ForceNarrowIndexToInt32
from .function_pass import prim_func_pass
from .functions import AnnotateEntryFunc, Apply, BindTarget, Filter
from .hoist_if_then_else import HoistIfThenElse
from .inject_double_buffer import InjectDoubleBuffer
from .inject_prefetch import InjectPrefetch
from .inject_rolling_buffer import InjectRollingBuffer
from .inject_virtual_thread import InjectVirtualThread
from .instrument_bound_checkers import InstrumentBoundCheckers
from .loop_partition import LoopPartition
from .lower_init_block import LowerInitBlock
from .lower_intrin import LowerIntrin
from .lower_match_buffer import LowerMatchBuffer
from .lower_opaque_block import LowerOpaqueBlock
from .lower_tvm_builtin import LowerTVMBuiltin
from .make_packed_api import MakePackedAPI
from .make_unpacked_api import MakeUnpackedAPI
from .narrow_data_type import NarrowDataType
from .plan_buffer_location import PlanAndUpdateBufferAllocationLocation
from .remove_no_op import RemoveNoOp
from .renormalize_split_pattern import RenormalizeSplitPattern
from .rewrite_unsafe_select import RewriteUnsafeSelect
from .simplify import Simplify
from .skip_assert import SkipAssert
from .split_host_device import AnnotateDeviceRegions, SplitHostDevice
from .storage_flatten import StorageFlatten
from .storage_rewrite import StorageRewrite
from .unify_thread_binding import UnifyThreadBinding
from .unroll_loop import UnrollLoop
from .vectorize_loop import VectorizeLoop
from .verify_memory import VerifyMemory

__all__ = [
    "AnnotateDeviceRegions", "AnnotateEntryFunc", "Apply", "BindTarget", "CombineContextCall",
    "CompactBufferAllocation", "ConvertBlocksToOpaque", "ConvertSSA", "Filter",
    "FlattenBuffer", "ForceNarrowIndexToInt32", "HoistIfThenElse", "InjectDoubleBuffer",
    "InjectPrefetch", "InjectRollingBuffer", "InjectVirtualThread", "InstrumentBoundCheckers", "LoopPartition", "LowerInitBlock", "LowerIntrin",
    "LowerMatchBuffer", "LowerOpaqueBlock", "LowerTVMBuiltin", "MakePackedAPI",
    "MakeUnpackedAPI", "NarrowDataType", "PlanAndUpdateBufferAllocationLocation",
    "PrimFuncPass", "RemoveNoOp", "RenormalizeSplitPattern", "RewriteUnsafeSelect", "Simplify",
    "SkipAssert", "SplitHostDevice", "StorageFlatten", "StorageRewrite", "UnifyThreadBinding",
    "UnrollLoop", "VectorizeLoop", "VerifyMemory", "prim_func_pass",
]  # fmt: skip
