"""Kernels of NVIDIA's devices as PTX, by LLVM: without CUDA's toolkit."""

from .build import build_nvptx

__all__ = ["build_nvptx"]
