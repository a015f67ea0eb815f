"""Vector math functions: TIR polynomials written as LLVM functions, once per module and width.

    define internal <16 x float> @tvm.exp.v16f32(<16 x float> %p0) { ... }

They are always inlined, so that constants move out of loops; LLVM vectorises loops of the scalar ones.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tvm.codegen.vector_math import (
    FLOAT32_FUNCTIONS,
    FLOAT64_FUNCTIONS,
    MathFunction,
    float_of,
    processor_without,
)
from tvm.ir.expr import PrimExpr
from tvm.support.dtype import DType
from tvm.tir.expr import Call, FloatImm, Var
from tvm.tir.intrinsics import INTRINSICS

from .code import Code
from .statements import Frame, FunctionWriter
from .types import FLOAT32, TYPES, mask_type, quoted, splat

if TYPE_CHECKING:
    from .module import ModuleWriter


LDEXP = INTRINSICS["ldexp"]


class MathWriter(FunctionWriter):
    """Writes a straight-line expression; shared parts are written once."""

    def __init__(self, module: ModuleWriter, name: str, frame: Frame) -> None:
        super().__init__(module, name, frame, noalias=False)
        self.fast = ""  # error-free steps must stay as they are
        self.no_wrap = ""
        self._written: dict[int, tuple[Any, str]] = {}

    def visit_call(self, call: Call) -> Any:
        if call.op is LDEXP and self._fills_register(call.dtype):
            x, exponent = call.args
            if (whole := float_of(exponent)) is not None:
                return self._scaled_by_float(x, whole)
        return super().visit_call(call)

    def _fills_register(self, dtype: DType) -> bool:
        return dtype.element is FLOAT32 and dtype.bits * dtype.lanes == 512

    def _scaled_by_float(self, x: PrimExpr, whole: PrimExpr) -> str:
        """x * 2**n for a float n, which the instruction takes as it is."""
        operands = [self.visit(x), self.visit(whole)]
        text = TYPES[x.dtype].text
        listed = ", ".join([f"{text} {operand}" for operand in [*operands, operands[0]]])
        return self.code.pure(
            f"call {text} @llvm.x86.avx512.mask.scalef.ps.512({listed}, i16 -1, i32 4)"
        )

    def visit(self, node: Any) -> Any:
        found = self._written.get(id(node))
        if found is None:
            found = self._written[id(node)] = (node, super().visit(node))
        return found[1]


def find_math_function(name: str, dtype: DType) -> MathFunction | None:
    """The polynomial for a type, if there is one."""
    return (FLOAT64_FUNCTIONS if dtype.bits == 64 else FLOAT32_FUNCTIONS).get(name)


def write_math_function(
    module: ModuleWriter, function: MathFunction, symbol: str, dtype: DType
) -> str:
    """The definition of a math function on the lanes of a vector type."""
    cpu = module.options.cpu
    text = TYPES[dtype].text
    params = [Var(f"x{i}", dtype) for i in range(function.arity)]
    operands = [f"%p{i}" for i in range(function.arity)]
    listed = ", ".join([f"{text} {operand}" for operand in operands])
    code = Code(f"define internal {text} @{quoted(symbol)}({listed}) #1")
    values = dict(zip(params, operands, strict=True))
    writer = MathWriter(module, symbol, Frame(code, values, text))
    if function.limit is not None:
        size = writer.visit(function.size(*params))
        _call_library_beyond(writer, function, dtype, size, operands)
    # AVX-512 multiplies vectors by powers of two in an instruction
    scales = dtype.lanes > 1 and cpu.has_avx512f
    missing = [name for name, has in (("fma", cpu.has_fma), ("ldexp", scales)) if not has]
    with processor_without(*missing):
        value = function.build(*params)
    code.do(f"ret {text} {writer.visit(value)}")
    return code.text()


def _call_library_beyond(
    writer: MathWriter, function: MathFunction, dtype: DType, size: str, operands: list[str]
) -> None:
    """Leave arguments too large for the function's range reduction to the C library."""
    code, lanes = writer.code, dtype.lanes
    type_, scalar = TYPES[dtype], TYPES[dtype.element].text
    limit = splat(type_, writer.visit_float_imm(FloatImm(dtype.element, function.limit or 0.0)))
    large = code.value(f"fcmp ogt {type_.text} {size}, {limit}")
    if lanes > 1:
        large = code.value(f"call i1 @llvm.vector.reduce.or({mask_type(lanes)} {large})")
    slow, fast = code.new_label("large"), code.new_label("usual")
    code.branch(large, slow, fast, ", !prof !1")
    code.start(slow)
    results = []
    symbol = function.name if dtype.bits == 64 else f"{function.name}f"
    writer.module.declare_math(symbol, scalar, function.arity, writer.name)
    for lane in range(lanes):
        found = [x if lanes == 1 else writer.lane(x, type_, lane) for x in operands]
        arguments = ", ".join([f"{scalar} {x}" for x in found])
        results.append(code.value(f"call {scalar} @{symbol}({arguments})"))
    code.do(f"ret {type_.text} {results[0] if lanes == 1 else writer.vector_of(results, dtype)}")
    code.start(fast)
