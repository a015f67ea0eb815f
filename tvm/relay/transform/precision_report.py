"""Tell for each operator of a program in which precision it runs, and why.

print(relay.transform.precision_report(mod, "llvm", params))
    53 nn.conv2d    int8
     1 nn.dense     int8
    16 add          float32   element-wise: it runs on the sums in registers
     1 nn.softmax   float32   it loses accuracy in a narrow type
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tvm import topi
from tvm.ir.expr import RelayExpr
from tvm.ir.module import IRModule
from tvm.ir.transform import PassContext, Sequential
from tvm.ir.type import TensorType, Type
from tvm.relay.analysis.infer import infer_type_of, tensor_type_of
from tvm.relay.expr import Call, Constant, Tuple
from tvm.relay.function import Function
from tvm.relay.op.registry import OpPattern, Precision, ops
from tvm.relay.qnn.op.products import PRODUCTS
from tvm.relay.transform.operators import RESHAPES, is_operator_call
from tvm.relay.traverse import bind, post_order
from tvm.relay.ty import dtypes_of
from tvm.runtime.ndarray import NDArray, array
from tvm.target import Target

from .dynamic_to_static import DynamicToStatic
from .infer_type import InferType
from .inline import InlineOwnFunctions
from .integer_products import examined_products
from .normal_form import ToGraphNormalForm

NARROW_FLOATS = ("bfloat16", "float16")
_CONVERSIONS = (ops.cast, ops.qnn.quantize, ops.qnn.dequantize)


@dataclass(frozen=True)
class OperatorPrecision:
    """One call: its operator, the shape of its result, what it computes in and, if wide, why."""

    operator: str
    shape: tuple[object, ...]
    dtype: str
    reason: str = ""


@dataclass(frozen=True)
class PrecisionReport:
    """The calls of a program in their order."""

    rows: tuple[OperatorPrecision, ...]

    @property
    def stayed(self) -> tuple[OperatorPrecision, ...]:
        """The calls that compute in float32."""
        return tuple([row for row in self.rows if row.dtype == "float32"])

    def __iter__(self) -> Iterator[OperatorPrecision]:
        return iter(self.rows)

    def __str__(self) -> str:
        counts = Counter([(row.operator, row.dtype, row.reason) for row in self.rows])
        width = max([len(name) for name, _, _ in counts] or [0])
        lines = [
            f"{count:5d} {name:{width}s}  {dtype:9s} {reason}".rstrip()
            for (name, dtype, reason), count in counts.items()
        ]
        return "\n".join(lines)


def precision_report(
    mod: IRModule, target: Any = "llvm", params: Mapping[str, Any] | None = None
) -> PrecisionReport:
    """In which precision `relay.build` runs each operator of `main`, and what stays wide for what.

    Parameters
    ----------
    mod : IRModule
        The program as `relay.build` gets it: with QDQ pairs, after `ToMixedPrecision`, or plain.
    target : Target or str
        The processor that is built for.
    params : dict of str to array, optional
        Values of parameters.
    """
    target = target if isinstance(target, Target) else Target(target)
    main = mod["main"]
    if params:
        main = bind(main, {v: Constant(_array(params[v.name_hint])) for v in main.params
                           if v.name_hint in params})  # fmt: skip
    mod = IRModule({**mod.functions, mod.get_global_var("main"): main})
    with PassContext(opt_level=3), target:
        simple = [InferType(), InlineOwnFunctions(), ToGraphNormalForm(), DynamicToStatic()]
        func = Sequential(simple)(mod)["main"]
        func, reasons = examined_products(func, target)
    return PrecisionReport(tuple(_rows(func, reasons, target)))


def _array(value: Any) -> Any:
    return value if isinstance(value, NDArray) else array(value)


def _rows(
    func: Function, reasons: Mapping[int, str], target: Target
) -> Iterator[OperatorPrecision]:
    """`reasons` has an entry for each product of quantised tensors: empty if it runs in integers."""
    is_quantized = bool(reasons) or any([_is_quantised_call(n) for n in post_order(func)])
    for node in post_order(func):
        if not is_operator_call(node) or node.op in _CONVERSIONS:
            continue
        kind = infer_type_of(node)
        shape = tuple(kind.shape) if isinstance(kind, TensorType) else ()
        found, why = _precision(node, kind, reasons, is_quantized, target)
        yield OperatorPrecision(node.operator.name, shape, found, why)


def _is_quantised_call(node: RelayExpr) -> bool:
    return is_operator_call(node) and node.operator.name.startswith("qnn.")


def _precision(
    call: Call, kind: Type, reasons: Mapping[int, str], is_quantized: bool, target: Target
) -> tuple[str, str]:
    reason = reasons.get(id(call))
    if reason is not None:
        return ("float32", reason) if reason else ("int8", "")
    if _is_quantised_call(call):
        return str(tensor_type_of(_first_tensor(call)).dtype), _slow_integers(call, target)
    inputs = [dtype for arg in call.args for dtype in dtypes_of(infer_type_of(arg))]
    narrow = next((dtype for dtype in NARROW_FLOATS if dtype in inputs), None)
    if narrow is not None and "float32" not in inputs:
        return narrow, _slow_product(call, narrow, target)
    dtypes = [*inputs, *dtypes_of(kind)]
    if "float32" not in dtypes:
        return (dtypes or [""])[0], ""
    return "float32", _reason_to_stay(call, is_quantized)


def _first_tensor(call: Call) -> RelayExpr:
    first = call.args[0]
    return first.fields[0] if isinstance(first, Tuple) else first


def _slow_integers(call: Call, target: Target) -> str:
    """A note on products of integers that the processor has no instruction for."""
    if call.op not in PRODUCTS or topi.x86.conv2d.dot_group("uint8", "int8", target) > 1:
        return ""
    return "multiplied in 32 bits: the processor has no dot products of 8-bit numbers"


def _slow_product(call: Call, dtype: str, target: Target) -> str:
    """A note on products that only read and write narrow numbers."""
    if call.op not in (ops.nn.conv2d, ops.nn.dense):
        return ""
    if topi.x86.conv2d.dot_group(dtype, dtype, target) > 1:
        return ""
    return f"multiplied in float32: the processor has no dot products of {dtype}"


def _reason_to_stay(call: Call, is_quantized: bool) -> str:
    precision = call.operator.precision
    if precision is Precision.KEEP_FLOAT32:
        return "it loses accuracy in a narrow type"
    if not is_quantized:
        return "its inputs are float32"
    pattern = OpPattern.OPAQUE if call.operator.fuse is None else call.operator.fuse
    if pattern <= OpPattern.BROADCAST:
        return "element-wise: it runs on the sums in registers"
    if call.op in (*RESHAPES, ops.transpose):
        return "it moves what is computed in float32"
    if precision is Precision.ALWAYS:
        return "its inputs are not quantised"
    return "no integer form: its inputs are dequantised"
