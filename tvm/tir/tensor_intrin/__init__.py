"""Tensor intrinsics of processors, registered under their classic names."""

from . import arm_cpu, cuda, dot_product_common, hexagon, metal, rocm, x86

__all__ = ["arm_cpu", "cuda", "dot_product_common", "hexagon", "metal", "rocm", "x86"]
