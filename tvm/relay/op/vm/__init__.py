"""Operators of the virtual machine."""

from .vm import invoke_tvm_op, reshape_tensor, shape_func, shape_of
