"""Data types of users' own: their names, and the functions that compute with them.

tvm.target.datatype.register("myfloat", 150)
tvm.target.datatype.register_op(
    tvm.target.datatype.create_lower_func({(32, 32): "FloatToCustom32"}), "Cast", "llvm", "float", "myfloat"
)
te.compute(A.shape, lambda i: A[i].astype("custom[myfloat]32") + 1)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tvm._ffi.registry import get_global_func, register_func
from tvm.error import TVMError, suggest
from tvm.ir.expr import PrimExpr
from tvm.support.dtype import CODE_NAMES, TYPE_CODES, DType, register_custom_code
from tvm.support.dtype import dtype as as_dtype
from tvm.tir.builtin import call_pure_extern
from tvm.tir.expr import BinaryOpExpr, Call, Cast, CmpExpr, FloatImm, StringImm
from tvm.tir.op import if_then_else

Lowering = Callable[[Any], PrimExpr]


def register(type_name: str, type_code: int) -> None:
    """Make ``custom[type_name]<bits>`` a data type.

    Parameters
    ----------
    type_name : str
    type_code : int
        From 129 to 255; each type its own.
    """
    register_custom_code(type_name, type_code)
    # the graph executor reads the names of types
    get_global_func("runtime._datatype_register")(type_name, type_code)


def get_type_name(type_code: int) -> str:
    """The name of a registered type."""
    if not get_type_registered(type_code):
        raise TVMError(f"no data type is registered with the code {type_code}")
    return CODE_NAMES[type_code].removeprefix("custom[").removesuffix("]")


def get_type_code(type_name: str) -> int:
    """The code of a registered or built-in kind of types, such as ``myfloat`` or ``float``."""
    code = TYPE_CODES.get(f"custom[{type_name}]", TYPE_CODES.get(type_name))
    if code is None:
        known = [name.removeprefix("custom[").removesuffix("]") for name in TYPE_CODES]
        raise TVMError(
            f"no data type is registered as {type_name!r}", hint=suggest(type_name, known)
        )
    return code


def get_type_registered(type_code: int) -> bool:
    """Whether a user registered a type with the code."""
    return CODE_NAMES.get(type_code, "").startswith("custom[")


for _function in (get_type_name, get_type_code, get_type_registered):
    register_func(f"runtime._datatype_{_function.__name__}", _function, override=True)


def register_op(
    lower_func: Lowering,
    op_name: str,
    target: str,
    src_type_name: str,
    dest_type_name: str | None = None,
    intrinsic_name: str | None = None,
) -> None:
    """Tell how an operation on a type is lowered.

    Parameters
    ----------
    lower_func : callable
        From the operation, its operands lowered, to an expression of built-in types.
    op_name : str
        The class of nodes: ``"Add"``, ``"Cast"``, ``"FloatImm"``, ``"Call"``, ...
    target : str
        The kind of target.
    src_type_name : str
        The type's name; of a cast, the name of the operand's kind of types.
    dest_type_name : str, optional
        Of a cast, the name of the result's kind of types.
    intrinsic_name : str, optional
        Of a call, the intrinsic: ``"tir.exp"``.
    """
    if op_name == "Cast":
        if dest_type_name is None:
            raise ValueError("register_op requires a dest_type_name for Cast")
        what = f"Cast.{dest_type_name}.{src_type_name}"
    elif op_name == "Call":
        if intrinsic_name is None:
            raise ValueError("register_op requires an intrinsic_name for Call")
        what = f"Call.intrin.{intrinsic_name}.{src_type_name}"
    else:
        what = f"{op_name}.{src_type_name}"
    register_func(f"tvm.datatype.lower.{target}.{what}", lower_func, override=True)


def register_min_func(func: Callable[[int], PrimExpr], type_name: str) -> None:
    """Tell the least number of a type, by its bits; ``tvm.te.min_value`` asks for it."""
    register_func(f"tvm.datatype.min.{type_name}", func, override=True)


def create_min_lower_func(
    extern_func_map: Mapping[int, str], type_name: str
) -> Callable[[int], PrimExpr]:
    """A function for :func:`register_min_func` that calls the function for so many bits."""

    def lower(num_bits: int) -> PrimExpr:
        dtype = as_dtype(f"custom[{type_name}]{num_bits}")
        return call_pure_extern(dtype, _function_for(extern_func_map, num_bits, "the least number"))

    return lower


def create_lower_func(extern_func_map: Mapping[Any, str]) -> Lowering:
    """A function for :func:`register_op` that calls a C function.

    Parameters
    ----------
    extern_func_map : dict
        The names of functions by the bits of the type; of casts, by the bits before and after.
    """

    def lower(op: Any) -> PrimExpr:
        dtype = _storage(op.dtype)
        if isinstance(op, Cast):
            key: Any = (op.value.dtype.bits, dtype.bits)
            args: tuple[Any, ...] = (op.value,)
        elif isinstance(op, FloatImm):
            key, args = dtype.bits, (op.value,)
        elif isinstance(op, Call):
            key, args = dtype.bits, op.args
        elif isinstance(op, (BinaryOpExpr, CmpExpr)):
            key, args = op.a.dtype.bits, (op.a, op.b)
        else:
            raise TVMError(f"create_lower_func has no rule for {type(op).__name__}: {op}")
        return call_pure_extern(dtype, _function_for(extern_func_map, key, op), *args)

    return lower


def lower_ite(ite_op: Call) -> PrimExpr:
    """``if_then_else`` of a custom type, as one of integers."""
    condition, on_true, on_false = ite_op.args
    return if_then_else(condition, on_true, on_false)


def lower_call_pure_extern(op: Call) -> PrimExpr:
    """A call of a C function with a custom result, as one with an integer result."""
    name, *args = op.args
    assert isinstance(name, StringImm)
    return call_pure_extern(_storage(op.dtype), name.value, *args)


def _storage(dtype: DType) -> DType:
    return as_dtype(f"uint{dtype.bits}").with_lanes(dtype.lanes) if dtype.is_custom else dtype


def _function_for(names: Mapping[Any, str], key: Any, what: Any) -> str:
    if key not in names:
        raise RuntimeError(f"no function is given for {key} bits in {dict(names)}: {what}")
    return names[key]
