"""Depthwise convolution."""
