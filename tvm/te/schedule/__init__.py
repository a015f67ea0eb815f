"""Schedules: how the operations of a graph are computed."""

from __future__ import annotations

from tvm.ir.serialize import register_state
from tvm.tir.buffer import Buffer
from tvm.tir.expr import IterVar

from . import tensorize_regions as _tensorize_regions  # registers global functions
from .auto_inline import auto_inline_broadcast as AutoInlineBroadcast
from .auto_inline import auto_inline_elem_wise as AutoInlineElemWise
from .auto_inline import auto_inline_injective as AutoInlineInjective
from .graph import create_attach_path as CreateAttachPath
from .graph import create_feed_graph as CreateFeedGraph
from .graph import create_read_graph as CreateReadGraph
from .graph import post_dfs_order as PostDFSOrder
from .infer_bound import infer_bound as InferBound
from .layout import Layout, Transform
from .lower import lower_schedule
from .relations import Fuse, Rebase, Singleton, Split
from .scan import scan_fix_point_analysis as ScanFixPointAnalysis
from .scan import scan_get_body as ScanGetBody
from .schedule import Schedule, create_schedule
from .schedule_ops import schedule_ops as ScheduleOps
from .specialized_condition import SpecializedCondition
from .stage import Stage
from .stage_data import AttachType, IterVarAttr
from .tensor_core import rewrite_for_tensor_core as SchedulePostProcRewriteForTensorCore
from .to_prim_func import to_prim_func as SchedulePostProcToPrimFunc

__all__ = [
    "Buffer", "IterVar",
    "AttachType", "AutoInlineBroadcast", "AutoInlineElemWise", "AutoInlineInjective",
    "CreateAttachPath", "CreateFeedGraph", "CreateReadGraph", "Fuse", "InferBound", "IterVarAttr",
    "PostDFSOrder", "Rebase", "ScanFixPointAnalysis", "ScanGetBody", "Schedule", "ScheduleOps", "SchedulePostProcRewriteForTensorCore", "SchedulePostProcToPrimFunc", "Singleton",
    "SpecializedCondition", "Split", "Stage", "create_schedule", "lower_schedule",
]  # fmt: skip

# a schedule as JSON
for _kind in (IterVarAttr, Split, Fuse, Rebase, Singleton, Transform):
    register_state(_kind.__name__, _kind)
for _planned in (Schedule, Stage):
    register_state(_planned.__name__, _planned, forgotten=("record",))
register_state("te.Layout", Layout)
