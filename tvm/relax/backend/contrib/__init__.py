"""Other compilers: what they take, and their code generators."""

from . import coreml, cublas, cudnn, cutlass, dnnl, hipblas, nnapi

__all__ = ["coreml", "cublas", "cudnn", "cutlass", "dnnl", "hipblas", "nnapi"]
