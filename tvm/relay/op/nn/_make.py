"""Operators by their names, as programs ask for them below the functions that they were wrapped in."""

from tvm.topi.modules import sibling_attribute

__getattr__ = sibling_attribute(__name__)
