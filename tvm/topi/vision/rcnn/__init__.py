"""Operators of networks that look at regions."""

from ...door import guarded
from .proposal import proposal
from .roi_align import roi_align_nchw, roi_align_nhwc
from .roi_pool import roi_pool_nchw, roi_pool_nhwc

__all__ = ["proposal", "roi_align_nchw", "roi_align_nhwc", "roi_pool_nchw", "roi_pool_nhwc"]

globals().update(guarded(__name__, globals()))
