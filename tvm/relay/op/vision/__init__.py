"""Operators of detection networks."""

from .multibox import (
    MultiBoxPriorAttrs,
    MultiBoxTransformLocAttrs,
    multibox_prior,
    multibox_transform_loc,
)
from .nms import (
    AllClassNonMaximumSuppressionAttrs,
    GetValidCountsAttrs,
    NonMaximumSuppressionAttrs,
    RegularNonMaximumSuppressionAttrs,
    all_class_non_max_suppression,
    get_valid_counts,
    non_max_suppression,
    regular_non_max_suppression,
)
from .rcnn import ProposalAttrs, ROIAlignAttrs, ROIPoolAttrs, proposal, roi_align, roi_pool
from .yolo import YoloReorgAttrs, yolo_reorg

__all__ = [
    "AllClassNonMaximumSuppressionAttrs",
    "GetValidCountsAttrs",
    "MultiBoxPriorAttrs",
    "MultiBoxTransformLocAttrs",
    "NonMaximumSuppressionAttrs",
    "ProposalAttrs",
    "ROIAlignAttrs",
    "ROIPoolAttrs",
    "RegularNonMaximumSuppressionAttrs",
    "YoloReorgAttrs",
    "all_class_non_max_suppression",
    "get_valid_counts",
    "multibox_prior",
    "multibox_transform_loc",
    "non_max_suppression",
    "proposal",
    "regular_non_max_suppression",
    "roi_align",
    "roi_pool",
    "yolo_reorg",
]
