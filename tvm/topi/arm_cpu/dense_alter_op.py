"""Layouts of dense layers on Arm, for ``FTVMAlterOpLayout``: relay defines them."""

from tvm.support.later import names_from_above

__getattr__ = names_from_above(__name__)
