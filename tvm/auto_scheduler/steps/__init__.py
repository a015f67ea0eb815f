"""The steps that transform states, one file a family."""

from .annotations import AnnotationStep, PragmaStep, StorageAlignStep
from .follow import FollowFusedSplitStep, FollowSplitStep
from .loops import FuseStep, ReorderStep, SplitStep
from .placement import ComputeAtStep, ComputeInlineStep, ComputeRootStep
from .stages import CacheReadStep, CacheWriteStep, RfactorStep
from .step import Replay, Step, StepError, step_from_row, step_row

__all__ = [
    "AnnotationStep", "CacheReadStep", "CacheWriteStep", "ComputeAtStep", "ComputeInlineStep",
    "ComputeRootStep", "FollowFusedSplitStep", "FollowSplitStep", "FuseStep", "PragmaStep",
    "ReorderStep", "Replay", "RfactorStep", "SplitStep", "Step", "StepError", "StorageAlignStep",
    "step_from_row", "step_row",
]  # fmt: skip
