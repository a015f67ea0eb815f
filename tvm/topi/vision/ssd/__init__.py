"""Operators of single-shot detectors."""

from .multibox import multibox_detection, multibox_prior, multibox_transform_loc

__all__ = ["multibox_detection", "multibox_prior", "multibox_transform_loc"]
