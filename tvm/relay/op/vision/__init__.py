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
