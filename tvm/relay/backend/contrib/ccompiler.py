"""The compiler `ccompiler`: element-wise functions as C text, which `export_library` compiles.

def @f(%a, %b) { (%a + %b) * %a }   ->   int f(TVMValue* args, ...) {
                                           for (i..) { t0 = a[i] + b[i]; out[i] = t0 * a[i]; }
"""

from __future__ import annotations

from math import prod

from tvm._ffi import register_func
from tvm.error import TVMError
from tvm.ir.expr import RelayExpr
from tvm.ir.op import Op, register_op_attr
from tvm.ir.type import TensorType
from tvm.relay.backend.external import external_constants
from tvm.relay.backend.graph_codegen import tensor_info
from tvm.relay.expr import Call, Constant, Tuple, Var
from tvm.relay.function import Function
from tvm.relay.traverse import post_order
from tvm.relay.ty import flat_types
from tvm.runtime.csource import csource_module
from tvm.runtime.module import Module
from tvm.target import Target, register_target_kind

KIND = "ccompiler"
OPERATORS = {"add": "+", "subtract": "-", "multiply": "*"}
C_TYPES = {"float32": "float", "float64": "double", "int32": "int32_t", "int64": "int64_t"}

_HEAD = """\
#include <stdint.h>
#include <tvm/runtime/c_backend_api.h>
#include <tvm/runtime/c_runtime_api.h>
"""

_PLACE = "((char*)((DLTensor*){0})->data + ((DLTensor*){0})->byte_offset)"

_CONSTANTS = """\
#include <tvm/runtime/container/array.h>
#include <tvm/runtime/ndarray.h>
#include <tvm/runtime/packed_func.h>
static tvm::runtime::Array<tvm::runtime::NDArray> {symbol}_consts;
static int {symbol}_init(tvm::runtime::Array<tvm::runtime::NDArray> consts) {{
  {symbol}_consts = consts;
  return 0;
}}
TVM_DLL_EXPORT_TYPED_FUNC(__init_{symbol}, {symbol}_init);
"""


def is_supported(call: Call) -> bool:
    """Whether a call is worth giving away: both operands of the result's static shape."""
    shape = call.checked_type
    return _can_write(call) and all(
        [a.checked_type.concrete_shape == shape.concrete_shape for a in call.args]
    )


def _can_write(call: Call) -> bool:
    """Whether there is text for a call: operands of the result's static shape, or of one element."""
    ty = call.checked_type
    types = [a.checked_type for a in call.args]
    if str(ty.dtype) not in C_TYPES or any([t.is_dynamic for t in (ty, *types)]):
        return False
    return all([t.concrete_shape == ty.concrete_shape or _has_one(t) for t in types])


def _has_one(ty: TensorType) -> bool:
    """Whether a tensor has one element, which goes with any other."""
    return prod(ty.concrete_shape) == 1


register_target_kind(
    KIND, options={"header": "string"}, attrs={"is_external_codegen": True}, override=True
)
for _name in OPERATORS:
    register_op_attr(_name, "target.ccompiler", is_supported)


@register_func("relay.ext.ccompiler", override=True)
def compile_function(func: Function) -> Module:
    """The module of C text for a function."""
    symbol = str(func.attrs["global_symbol"])
    text, constants = _Writer(symbol, func).text()
    target = Target.current(allow_none=True)
    if target is not None and target.kind.name == KIND and "header" in target.attrs:
        text = f"{target.attrs['header']}\n{text}"
    return csource_module(text, "cc" if constants else "c", [symbol], constants)


class _Writer:
    def __init__(self, symbol: str, func: Function) -> None:
        self.symbol = symbol
        self.func = func
        self.is_unpacked = bool(func.attrs.get("unpacked_api"))
        self.pointers: list[str] = []
        self.loop: list[str] = []
        self.names: dict[int, str] = {}

    def text(self) -> tuple[str, list[str]]:
        """The text, and the names of the constants in the order in which it uses them."""
        constants = list(external_constants(self.func))
        for i, param in enumerate(self.func.params):
            self._pointer(param, f"in{i}", self._argument(i))
        numbers = iter(range(len(constants)))
        for node in post_order(self.func.body):
            if isinstance(node, Constant):
                number = next(numbers)
                handle = f"{self.symbol}_consts[{number}].operator->()"
                self._pointer(node, f"const{number}", _PLACE.format(handle))
            elif isinstance(node, Call):
                self._call(node)
            elif not isinstance(node, (Var, Op)) and node is not self.func.body:
                raise self._unsupported(node)
        body = self.func.body
        outputs = list(body.fields) if isinstance(body, Tuple) else [body]
        for i, output in enumerate(outputs):
            c_type = self._c_type(output)
            place = self._argument(len(self.func.params) + i)
            self.pointers.append(f"{c_type}* out{i} = ({c_type}*){place};")
            self.loop.append(f"out{i}[i] = {self.names[id(output)]};")
        shape = tensor_info(flat_types(outputs[0].checked_type)[0]).shape
        return self._function(shape, len(self.func.params) + len(outputs), constants)

    def _argument(self, number: int) -> str:
        """The data of an argument."""
        if self.is_unpacked:
            return f"arg{number}"
        return _PLACE.format(f"args[{number}].v_handle")

    def _pointer(self, node: RelayExpr, name: str, place: str) -> None:
        c_type = self._c_type(node)
        self.pointers.append(f"const {c_type}* {name} = (const {c_type}*){place};")
        self.names[id(node)] = f"{name}[0]" if _has_one(node.checked_type) else f"{name}[i]"

    def _call(self, call: Call) -> None:
        if not isinstance(call.op, Op) or call.op.name not in OPERATORS or not _can_write(call):
            raise self._unsupported(call)
        name = f"t{len(self.loop)}"
        left, right = [self.names[id(a)] for a in call.args]
        self.loop.append(f"{self._c_type(call)} {name} = {left} {OPERATORS[call.op.name]} {right};")
        self.names[id(call)] = name

    def _c_type(self, node: RelayExpr) -> str:
        dtype = str(getattr(node.checked_type, "dtype", node.checked_type))
        if dtype not in C_TYPES:
            raise TVMError(
                f"ccompiler computes with {', '.join(C_TYPES)}, got {dtype}", at=self.func
            )
        return C_TYPES[dtype]

    def _unsupported(self, node: RelayExpr) -> TVMError:
        found = node.op if isinstance(node, Call) else type(node).__name__
        return TVMError(
            f"ccompiler takes {', '.join(OPERATORS)} of tensors of one static shape, got {found}",
            at=node,
        )

    def _parameters(self, count: int) -> str:
        if self.is_unpacked:
            return ", ".join([f"void* arg{i}" for i in range(count)])
        return (
            "TVMValue* args, int* type_codes, int num_args, TVMValue* result, int* result_code, "
            "void* resource"
        )

    def _function(
        self, shape: tuple[int, ...], count: int, constants: list[str]
    ) -> tuple[str, list[str]]:
        size = 1
        for extent in shape:
            size *= extent
        head = _HEAD + (_CONSTANTS.format(symbol=self.symbol) if constants else "")
        lines = [
            head,
            "#ifdef __cplusplus",
            'extern "C"',
            "#endif",
            f"TVM_DLL int32_t {self.symbol}({self._parameters(count)}) {{",
            *[f"  {line}" for line in self.pointers],
            f"  for (int64_t i = 0; i < {size}; ++i) {{",
            *[f"    {line}" for line in self.loop],
            "  }",
            "  return 0;",
            "}",
            "",
        ]
        return "\n".join(lines), constants
