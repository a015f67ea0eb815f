"""What a library that runs a whole model says about it, in the layout of ``tvm/runtime/metadata_types.h``."""

from __future__ import annotations

from dataclasses import dataclass

from tvm.ir.module import IRModule
from tvm.support.dtype import DType

ATTRIBUTE = "model_metadata"  # of modules that contain the model's function
FUNCTION = "get_c_metadata"  # the packed function that gives a pointer to the description
VERSION = 1


@dataclass(frozen=True)
class TensorInfo:
    """One argument of the model's function."""

    name: str
    shape: tuple[int, ...]
    dtype: DType

    @property
    def type_fields(self) -> tuple[int, int, int]:
        """Code, bits and lanes."""
        return self.dtype.type_code, self.dtype.bits, self.dtype.lanes


@dataclass(frozen=True)
class ConstantInfo:
    """An array in the pool of constants; the data is in the form of parameter files."""

    name: str
    byte_offset: int
    data: bytes


@dataclass(frozen=True)
class ModelMetadata:
    """The arguments of the model's function in order: inputs, outputs, constants, workspace pools."""

    mod_name: str
    inputs: tuple[TensorInfo, ...]
    outputs: tuple[TensorInfo, ...]
    workspace_pools: tuple[TensorInfo, ...] = ()
    constants: tuple[ConstantInfo, ...] = ()


def model_metadata(mod: IRModule) -> ModelMetadata | None:
    """The description of the model that a module contains, if it does."""
    found = mod.get_attr(ATTRIBUTE)
    assert found is None or isinstance(found, ModelMetadata)
    return found
