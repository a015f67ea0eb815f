"""Operators of detection networks."""

from .multibox import multibox_prior, multibox_transform_loc
from .nms import (
    all_class_non_max_suppression,
    get_valid_counts,
    non_max_suppression,
    regular_non_max_suppression,
)
from .rcnn import proposal, roi_align, roi_pool
from .yolo import yolo_reorg

__all__ = [
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
