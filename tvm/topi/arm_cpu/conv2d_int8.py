"""Whether an Arm processor multiplies int8 in its vectors."""

from __future__ import annotations

from tvm.target import Target, codegen

# the first LLVM with the dot products of Arm
_MIN_LLVM = 8


def is_int8_hw_support(data_dtype: str, kernel_dtype: str) -> bool:
    """Whether the current target multiplies data and weights of 8 bits with vector instructions.

    Parameters
    ----------
    data_dtype : str
        The data type of the input.
    kernel_dtype : str
        The data type of the weights.
    """
    features = Target.target_or_current(None).features
    has_vectors = bool(features.has_asimd or features.has_dotprod)
    is_8_bits = data_dtype == kernel_dtype and data_dtype in ("int8", "uint8")
    return is_8_bits and has_vectors and codegen.llvm_version_major() >= _MIN_LLVM
