"""Operators of detection networks."""

from ..argument_checks import guarded
from . import nms, rcnn, ssd
from .hybrid import (
    hybrid_get_valid_counts,
    hybrid_nms,
    hybrid_rearrange_box_out,
    hybrid_rearrange_indices_out,
    hybrid_regular_nms,
)
from .nms import (
    all_class_non_max_suppression,
    get_valid_counts,
    non_max_suppression,
    regular_non_max_suppression,
)
from .rcnn import proposal, roi_align_nchw, roi_align_nhwc, roi_pool_nchw, roi_pool_nhwc
from .reorg import reorg
from .ssd import multibox_detection, multibox_prior, multibox_transform_loc

__all__ = [
    "hybrid_get_valid_counts",
    "hybrid_nms",
    "hybrid_rearrange_box_out",
    "hybrid_rearrange_indices_out",
    "hybrid_regular_nms",
    "all_class_non_max_suppression",
    "get_valid_counts",
    "multibox_detection",
    "multibox_prior",
    "multibox_transform_loc",
    "nms",
    "non_max_suppression",
    "proposal",
    "rcnn",
    "regular_non_max_suppression",
    "reorg",
    "roi_align_nchw",
    "roi_align_nhwc",
    "roi_pool_nchw",
    "roi_pool_nhwc",
    "ssd",
]

globals().update(guarded(__name__, globals()))
