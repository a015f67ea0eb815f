"""Passes of relax."""

from .attach_global_symbol import AttachGlobalSymbol
from .call_tir_rewrite import CallTIRRewrite
from .compute_prim_value import ComputePrimValue
from .kill_after_last_use import KillAfterLastUse
from .legalize_ops import LegalizeOps
from .lower_alloc_tensor import LowerAllocTensor
from .lower_runtime_builtin import LowerRuntimeBuiltin, VMBuiltinLower
from .remove_purity_checking import RemovePurityChecking
from .to_non_dataflow import ToNonDataflow
from .vm_shape_lower import VMShapeLower

__all__ = [
    "AttachGlobalSymbol", "CallTIRRewrite", "ComputePrimValue", "KillAfterLastUse",
    "LegalizeOps", "LowerAllocTensor", "LowerRuntimeBuiltin", "RemovePurityChecking", "ToNonDataflow",
    "VMBuiltinLower", "VMShapeLower",
]  # fmt: skip
