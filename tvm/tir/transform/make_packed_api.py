"""Give a function the calling convention of packed functions.

def f(A: handle, n: int32)   ->    def f(args, type_codes, num_args, ret, ret_code, resource) -> int32
    ...                                assert num_args == 2
                                       A = args[0]; assert type_codes[0] in (3, 4, 7, 13) ...
                                       ...
                                       return 0
"""

from __future__ import annotations

from typing import Any

from tvm.ir.expr import GlobalVar, PrimExpr
from tvm.ir.function import CallingConv
from tvm.ir.module import IRModule
from tvm.ir.pass_context import PassContext
from tvm.ir.transform import PassInfo
from tvm.ir.type import PointerType, PrimType
from tvm.ir.visitor import Rewriter
from tvm.support.dtype import DType
from tvm.tir import op
from tvm.tir.buffer import Buffer, decl_buffer
from tvm.tir.builtin import call_packed
from tvm.tir.expr import EQ, Call, Cast, StringImm, Var, const
from tvm.tir.function import PrimFunc
from tvm.tir.stmt import AttrStmt, BufferStore, Evaluate, Stmt, seq
from tvm.tir.transform.abi import (
    CODE_NAMES,
    FLOAT64,
    HANDLE,
    INT32,
    INT64,
    POINTER_CODES,
    RET,
    ArgCode,
    StructField,
    packed_code,
    packed_dtype,
    struct_get,
    struct_set,
)
from tvm.tir.transform.argument_binder import (
    ArgumentBinder,
    Device,
    FixedTensor,
    is_fixed,
    name_of,
)
from tvm.tir.transform.common import IF_THEN_ELSE, PrimFuncPass, prim_func_pass
from tvm.tir.transform.legalize_packed_calls import CPACKED

SET_DEVICE = "__tvm_set_device"
DEVICE_NAMES = {
    1: "cpu",
    2: "cuda",
    4: "opencl",
    7: "vulkan",
    8: "metal",
    10: "rocm",
    12: "ext_dev",
    15: "webgpu",
}


class PackedArguments:
    """The six parameters of a packed function."""

    def __init__(self, count: int) -> None:
        self.values = Var("args", HANDLE)
        code_pointer = PointerType(PrimType(INT32))
        self.codes = decl_buffer(
            (count,), "int32", "arg_type_ids", Var("arg_type_ids", code_pointer)
        )
        self.count = Var("num_args", INT32)
        self.result = Var("out_ret_value", HANDLE)
        self.result_code = decl_buffer(
            (1,), "int32", "out_ret_tcode", Var("out_ret_tcode", code_pointer)
        )
        self.resource = Var("resource_handle", HANDLE)

    @property
    def params(self) -> list[Var]:
        """In the order of the convention."""
        return [
            self.values, self.codes.data, self.count, self.result, self.result_code.data,
            self.resource,
        ]  # fmt: skip


class ResultWriter(Rewriter):
    """Turns ``ret(value)`` into a store of the result followed by ``ret(0)``."""

    def __init__(self, arguments: PackedArguments) -> None:
        self.arguments = arguments
        self.found = False

    def visit_evaluate(self, stmt: Evaluate) -> Stmt:
        call = stmt.value
        if not isinstance(call, Call) or call.op is not RET:
            return stmt
        self.found = True
        value = call.args[0]
        wide = packed_dtype(value.dtype)
        content = value if value.dtype is wide else Cast(wide, value)
        code = const(int(packed_code(value)), INT32)
        result = struct_set(self.arguments.result, 0, StructField.VALUE_CONTENT, content)
        return seq([
            Evaluate(result),
            BufferStore(self.arguments.result_code, code, [const(0, INT32)]),
            Evaluate(success()),
        ])  # fmt: skip

    def visit_buffer_store(self, store: BufferStore) -> Stmt:
        return store


def success() -> Call:
    """Return 0 to the caller."""
    return Call(INT32, RET, [const(0, INT32)])


def is_exposed(func: PrimFunc) -> bool:
    """Whether a function is called from outside and has no calling convention yet."""
    convention = func.get_attr("calling_conv", CallingConv.DEFAULT)
    return func.get_attr("global_symbol") is not None and int(convention) == CallingConv.DEFAULT


def bind_arguments(func: PrimFunc, arguments: PackedArguments, device: Device) -> ArgumentBinder:
    """Load the parameters from the packed arguments, checked."""
    name = str(func.get_attr("global_symbol"))
    binder = ArgumentBinder(name)
    count = len(func.params)
    enough = EQ(arguments.count, const(count, INT32))
    plural = "" if count == 1 else "s"
    binder.check(enough, "TypeError", f"needs {count} argument{plural}", arguments.count)
    if count:
        binder.declare(arguments.codes)
    binder.declare(arguments.result_code)
    fixed: list[FixedTensor] = []
    others: list[tuple[Var, Buffer, str]] = []
    for position, param in enumerate(func.params):
        buffer = func.buffer_map.get(param)
        label = argument_label(position, param, buffer)
        if buffer is not None and is_fixed(buffer, device):
            binder.let(param, packed_value(arguments, position, HANDLE))
            fixed.append(FixedTensor(position, param, buffer, label))
            continue
        load_argument(binder, arguments, position, param, label)
        if buffer is not None:
            others.append((param, buffer, label))
    if fixed:
        binder.match_buffers(arguments.values, arguments.codes.data, fixed, device)
    for param, buffer, label in others:
        binder.bind_buffer(buffer, param, label, device)
    return binder


def argument_label(position: int, param: Var, buffer: Buffer | None) -> str:
    """How messages call an argument."""
    if buffer is None:
        return f"argument {position} ({param.name})"
    return f"argument {position} (buffer {buffer.name})"


def packed_value(arguments: PackedArguments, position: int, dtype: DType) -> PrimExpr:
    """What was passed, read as one of the types of packed values."""
    return struct_get(arguments.values, position, StructField.VALUE_CONTENT, dtype)


def load_argument(
    binder: ArgumentBinder, arguments: PackedArguments, position: int, param: Var, label: str
) -> None:
    """Bind one parameter to its packed value, after a check of its type code."""
    code = arguments.codes[const(position, INT32)]
    dtype = param.dtype

    def content(wide: DType) -> PrimExpr:
        return packed_value(arguments, position, wide)

    if dtype.is_handle:
        accepted: tuple[ArgCode, ...] = POINTER_CODES
        value, kind = content(HANDLE), "a tensor or a pointer"
    elif dtype.is_float:
        accepted, kind = (ArgCode.FLOAT, ArgCode.INT), "a number"
        is_float = EQ(code, const(int(ArgCode.FLOAT), INT32))
        widened = Cast(FLOAT64, content(INT64))
        value = Call(FLOAT64, IF_THEN_ELSE, [is_float, content(FLOAT64), widened])
    else:
        accepted, value, kind = (ArgCode.INT, ArgCode.BOOL), content(INT64), "an integer"
    known = [EQ(code, const(int(choice), INT32)) for choice in accepted]
    what = f"{label} needs to be {kind}"
    binder.check(op.any(*known), "TypeError", what, name_of(code, CODE_NAMES))
    binder.let(param, value if value.dtype is dtype else Cast(dtype, value))


@prim_func_pass("tir.MakePackedAPI")
def make_packed_api(func: PrimFunc) -> PrimFunc:
    """Make functions that have a global symbol callable with packed arguments."""
    if not is_exposed(func):
        return func
    target = func.get_attr("target")
    arguments = PackedArguments(len(func.params))
    device_type = device_type_of(target)
    device = Device(device_type, DEVICE_NAMES.get(device_type or 0, str(device_type)))
    binder = bind_arguments(func, arguments, device)
    body: Stmt = ResultWriter(arguments).visit(func.body)
    body = AttrStmt(
        const(0, INT32),
        "compute_scope",
        StringImm(f"{func.get_attr('global_symbol')}_compute_"),
        body,
    )
    if isinstance(device.id, Var) and device.id in binder.bound:
        node = StringImm("default")
        if not target.runs_on_processor:
            # kernels run on the device of the arguments
            chosen = call_packed(StringImm(SET_DEVICE), device.type, device.id)
            body = seq([Evaluate(chosen), body])
        body = AttrStmt(node, "device_type", device.type, body)
        body = AttrStmt(node, "device_id", device.id, body)
    body = binder.around(seq([body, Evaluate(success())]))
    host = getattr(target, "host", None)
    attrs = {"calling_conv": int(CallingConv.C_PACKED_FUNC)}
    if target is not None:
        attrs["target"] = target if host is None else host
    packed = PrimFunc(arguments.params, body, PrimType(INT32), {}, func.attrs, func.span)
    return packed.with_attrs(attrs)


def device_type_of(target: Any) -> int | None:
    """The device that the function's buffers must be on; None if the function does not tell."""
    if target is None:
        return 1
    return int(target.get_target_device_type())


class SubroutineCaller(Rewriter):
    """Calls functions of the module by the convention that they get."""

    def __init__(self, mod: IRModule) -> None:
        self.symbols = {
            gvar.name_hint: str(func.get_attr("global_symbol"))
            for gvar, func in mod.functions.items()
            if isinstance(func, PrimFunc) and is_exposed(func)
        }

    def visit_call(self, call: Call) -> PrimExpr:
        call = self.rewrite_children(call)
        symbol = self.symbols.get(call.op.name_hint) if isinstance(call.op, GlobalVar) else None
        if symbol is None:
            return call
        dtype = INT32 if call.dtype.is_void else call.dtype
        return Call(dtype, CPACKED, [StringImm(symbol), *call.args])


def packed_api_pass() -> PrimFuncPass:
    """The pass, which changes the calls of functions together with these."""

    def run(func: PrimFunc, mod: IRModule, _: PassContext) -> PrimFunc:
        caller = SubroutineCaller(mod)
        return make_packed_api(func.with_body(caller.visit(func.body)))

    return PrimFuncPass(run, PassInfo(0, make_packed_api.name))


MakePackedAPI = packed_api_pass
