"""The classic place of `tvm.ir.script_printer`."""

from tvm.support.later import names_from_above

__getattr__ = names_from_above(__name__)
