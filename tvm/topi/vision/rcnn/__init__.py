"""Operators of networks that look at regions."""

from ...argument_checks import guarded
from .proposal import proposal
from .roi_align import roi_align_nchw, roi_align_nhwc
from .roi_pool import roi_pool_nchw, roi_pool_nhwc
from .steps import argsort_ir, nms_ir, prepare_output_ir

__all__ = [
    "argsort_ir",
    "nms_ir",
    "prepare_output_ir",
    "proposal",
    "roi_align_nchw",
    "roi_align_nhwc",
    "roi_pool_nchw",
    "roi_pool_nhwc",
]

globals().update(guarded(__name__, globals()))
