"""Kernels of GPUs as text in the languages that their drivers compile, OpenCL C and CUDA C++."""

from .build import build_cuda, build_opencl

__all__ = ["build_cuda", "build_opencl"]
