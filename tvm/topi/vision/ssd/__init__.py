"""Operators of single-shot detectors."""

from ...argument_checks import guarded
from .multibox import multibox_detection, multibox_prior, multibox_transform_loc

__all__ = ["multibox_detection", "multibox_prior", "multibox_transform_loc"]

globals().update(guarded(__name__, globals()))
