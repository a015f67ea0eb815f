"""Other compilers: what they take, and their code generators."""

from . import dnnl

__all__ = ["dnnl"]
