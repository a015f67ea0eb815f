"""The C code generator: portable C99, to be compiled by whoever exports the module."""

from .build import build_c

__all__ = ["build_c"]
