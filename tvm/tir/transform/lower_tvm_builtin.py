"""Lower calls of packed functions and allocations to what the code generator knows.

    call_packed("f", x, n)       ->    stack = stack_alloca("arg_value", 2)
                                       stack[0] = x; codes[0] = 3; stack[1] = n; codes[1] = 0
                                       call_packed_lowered("f", stack, codes, 0, 2)

    dma_copy(queue, ...)         ->    call_packed("device_api.cpu.dma_copy", queue, ...), then as above

    A = allocate([1 << 20])      ->    A = TVMBackendAllocWorkspace(...)
        ...                            if isnullptr(A): throw_last_error()
                                       ...
                                       TVMBackendFreeWorkspace(A)

Small allocations of constant size stay, on the stack. A parallel loop has argument stacks of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tvm._ffi.runtime_ctypes import Device
from tvm.arith import Analyzer
from tvm.error import LoweringError
from tvm.ir.expr import PrimExpr, RelayExpr
from tvm.ir.op import Op
from tvm.ir.visitor import Rewriter
from tvm.tir import op
from tvm.tir.buffer import decl_buffer
from tvm.tir.builtin import (
    TVMBackendAllocWorkspace,
    TVMBackendFreeWorkspace,
    address_of,
    call_extern,
    tvm_check_return,
    tvm_stack_alloca,
    tvm_throw_last_error,
)
from tvm.tir.expr import BufferLoad, Call, Cast, IntImm, StringImm, Var, const
from tvm.tir.function import PrimFunc
from tvm.tir.intrinsics import INTRINSICS
from tvm.tir.stmt import (
    Allocate,
    AssertStmt,
    AttrStmt,
    BufferStore,
    DeclBuffer,
    Evaluate,
    For,
    ForKind,
    IfThenElse,
    LetStmt,
    Stmt,
    While,
    seq,
)
from tvm.tir.transform.abi import (
    FIELD_DTYPES,
    HANDLE,
    INT32,
    INT64,
    ArgCode,
    StructField,
    array_field,
    is_null,
    packed_code,
    packed_dtype,
    struct_set,
)
from tvm.tir.transform.common import is_const, prim_func_pass
from tvm.tir.transform.storage_rewrite import storage_scope

MAX_STACK_BYTES = 1024
# devices whose memory the host's code cannot access: it launches kernels there
WITH_KERNELS = (2, 4, 7, 8, 10, 15)
# what a schedule puts in the scope "local" is meant for registers, where only the stack leads
MAX_LOCAL_BYTES = 16384
LOWERED: dict[RelayExpr, Op] = {
    INTRINSICS["tvm_call_packed"]: INTRINSICS["tvm_call_packed_lowered"],
    INTRINSICS["tvm_call_cpacked"]: INTRINSICS["tvm_call_cpacked_lowered"],
    INTRINSICS["tvm_call_trace_packed"]: INTRINSICS["tvm_call_trace_packed_lowered"],
}
# calls whose result becomes an item of a list of any values
SET_ITEM: dict[RelayExpr, Op] = {
    INTRINSICS["anylist_setitem_call_packed"]: INTRINSICS["tvm_call_packed_lowered"],
    INTRINSICS["anylist_setitem_call_cpacked"]: INTRINSICS["tvm_call_cpacked_lowered"],
}
CPACKED_LOWERED = INTRINSICS["tvm_call_cpacked_lowered"]
GET_ITEM = INTRINSICS["anylist_getitem"]
RESET_ITEM = INTRINSICS["anylist_resetitem"]
# calls of the engine for copies that a device may have, by the names of functions of its runtime
OF_DEVICE: dict[RelayExpr, str] = {
    INTRINSICS[name]: name for name in ("dma_copy", "dma_wait", "dma_start_group", "dma_end_group")
}
CALL_PACKED = INTRINSICS["tvm_call_packed"]
MAKE_SHAPE = INTRINSICS["tvm_stack_make_shape"]
MAKE_ARRAY = INTRINSICS["tvm_stack_make_array"]


@dataclass
class StackSizes:
    """Elements in use of each stack, or the most that ever are."""

    values: int = 0
    arrays: int = 0
    shape: int = 0

    def raise_to(self, other: StackSizes) -> None:
        """Keep the larger of each size."""
        self.values = max(self.values, other.values)
        self.arrays = max(self.arrays, other.arrays)
        self.shape = max(self.shape, other.shape)


class Stacks:
    """The memory on the stack in which arguments of packed calls are laid out."""

    def __init__(self, sizes: StackSizes) -> None:
        self.sizes = sizes
        self.values = Var("stack_value", HANDLE)
        self.arrays = Var("stack_array", HANDLE)
        self.codes = decl_buffer((max(sizes.values, 1),), "int32", "stack_tcode")
        self.shape = decl_buffer((max(sizes.shape, 1),), "int64", "stack_shape")

    def around(self, body: Stmt) -> Stmt:
        """The body with its stacks allocated."""
        sizes = self.sizes
        if sizes.shape:
            body = DeclBuffer(self.shape, body)
            body = LetStmt(self.shape.data, tvm_stack_alloca("shape", sizes.shape), body)
        if sizes.arrays:
            body = LetStmt(self.arrays, tvm_stack_alloca("array", sizes.arrays), body)
        if sizes.values:
            body = DeclBuffer(self.codes, body)
            body = LetStmt(self.codes.data, tvm_stack_alloca("arg_tcode", sizes.values), body)
            body = LetStmt(self.values, tvm_stack_alloca("arg_value", sizes.values), body)
        return body


class BuiltinLowerer(Rewriter):
    """Lowers calls inside statements, keeping what must be done before each of them.

    The stacks' sizes are known only at the end, so a function with packed calls is lowered twice.
    """

    def __init__(self, sizes: StackSizes, on_processor: bool = False) -> None:
        self.sizes = sizes
        self.on_processor = on_processor  # whatever the device of the arrays
        self.needed = StackSizes()
        self.used = StackSizes()
        self.stacks = Stacks(sizes)
        self.before: list[Stmt] = []
        self.device_type: PrimExpr = const(1, INT32)
        self.device_id: PrimExpr = const(0, INT32)

    def lower_scope(self, body: Stmt) -> Stmt:
        """A body that has its own stacks."""
        outer = self.stacks, self.used
        self.stacks, self.used = Stacks(self.sizes), StackSizes()
        lowered = self.visit(body)
        if lowered is not body:
            lowered = self.stacks.around(lowered)
        self.stacks, self.used = outer
        return lowered

    # ---- statements that evaluate expressions

    def visit_evaluate(self, stmt: Evaluate) -> Stmt:
        return self._with_preparation(lambda: self.rewrite_children(stmt))

    def visit_buffer_store(self, store: BufferStore) -> Stmt:
        return self._with_preparation(lambda: self.rewrite_children(store))

    def visit_let_stmt(self, let: LetStmt) -> Stmt:
        value, before = self._prepared(let.value)
        body = self.visit(let.body)
        if value is let.value and body is let.body:
            return let
        return seq([*before, LetStmt(let.var, value, body)])

    def visit_assert_stmt(self, stmt: AssertStmt) -> Stmt:
        condition, before = self._prepared(stmt.condition)
        body = self.visit(stmt.body)
        if condition is stmt.condition and body is stmt.body:
            return stmt
        return seq([*before, stmt.replace(condition=condition, body=body)])

    def visit_if_then_else(self, stmt: IfThenElse) -> Stmt:
        condition, before = self._prepared(stmt.condition)
        yes = self.visit(stmt.then_case)
        no = None if stmt.else_case is None else self.visit(stmt.else_case)
        if condition is stmt.condition and yes is stmt.then_case and no is stmt.else_case:
            return stmt
        return seq([*before, IfThenElse(condition, yes, no)])

    def visit_for(self, loop: For) -> Stmt:
        start, before = self._prepared(loop.min)
        extent, also_before = self._prepared(loop.extent)
        parallel = loop.kind is ForKind.PARALLEL
        body = self.lower_scope(loop.body) if parallel else self.visit(loop.body)
        if start is loop.min and extent is loop.extent and body is loop.body:
            return loop
        return seq([*before, *also_before, loop.replace(min=start, extent=extent, body=body)])

    def visit_while(self, loop: While) -> Stmt:
        body = self.visit(loop.body)
        return loop if body is loop.body else loop.replace(body=body)

    def visit_attr_stmt(self, attr: AttrStmt) -> Stmt:
        outer = self.device_type, self.device_id
        if attr.attr_key == "device_type":
            self.device_type = attr.value
        elif attr.attr_key == "device_id":
            self.device_id = attr.value
        body = (
            self.lower_scope(attr.body)
            if attr.attr_key == "compute_scope"
            else self.visit(attr.body)
        )
        self.device_type, self.device_id = outer
        return attr if body is attr.body else attr.replace(body=body)

    def _prepared(self, e: PrimExpr) -> tuple[PrimExpr, list[Stmt]]:
        outer_before, outer_used = self.before, self.used
        self.before, self.used = (
            [],
            StackSizes(outer_used.values, outer_used.arrays, outer_used.shape),
        )
        value = self.visit(e)
        before, self.before, self.used = self.before, outer_before, outer_used
        return value, before

    def _with_preparation(self, rewrite: Callable[[], Stmt]) -> Stmt:
        outer_before, outer_used = self.before, self.used
        self.before, self.used = (
            [],
            StackSizes(outer_used.values, outer_used.arrays, outer_used.shape),
        )
        stmt = rewrite()
        before, self.before, self.used = self.before, outer_before, outer_used
        return seq([*before, stmt]) if before else stmt

    # ---- calls

    def visit_call(self, call: Call) -> PrimExpr:
        lowered = LOWERED.get(call.op)
        if lowered is not None:
            return self._packed_call(call, lowered)
        if (set_item := SET_ITEM.get(call.op)) is not None:
            return self._set_item(call, set_item)
        if (function := OF_DEVICE.get(call.op)) is not None:
            return self._call_of_device(call, function)
        if call.op is RESET_ITEM:
            return _checked("TVMBackendAnyListResetItem", *[self.visit(arg) for arg in call.args])
        if call.op is MAKE_SHAPE:
            return self._make_shape(call)
        if call.op is MAKE_ARRAY:
            return self._make_array(call)
        return self.rewrite_children(call)

    def _packed_call(self, call: Call, lowered: Op) -> PrimExpr:
        name, *args = call.args
        resource: list[PrimExpr] = []
        if lowered is CPACKED_LOWERED and args and is_zero_pointer(args[-1]):
            # classic programs pass the resource handle behind the arguments
            resource = [self.visit(args.pop())]
        begin = self.used.values
        self.used.values += len(args) + 1  # one more for the result
        self.needed.raise_to(self.used)
        for position, arg in enumerate(args, begin):
            if isinstance(arg, Call) and arg.op is GET_ITEM:
                self._pass_item(arg, position)
                continue
            code = ArgCode.DLTENSOR if is_array(arg) else packed_code(arg)
            if is_zero_pointer(arg):
                code = ArgCode.NULL
            value = self.visit(arg)
            wide = packed_dtype(value.dtype)
            content = value if value.dtype is wide else Cast(wide, value)
            self._do(struct_set(self.stacks.values, position, StructField.VALUE_CONTENT, content))
            where = [const(position, INT32)]
            self.before.append(BufferStore(self.stacks.codes, const(int(code), INT32), where))
        self.used.values = begin
        end = begin + len(args)
        stacks = [self.stacks.values, self.stacks.codes.data]
        return Call(call.dtype, lowered, [name, *stacks, begin, end, *resource])

    def _call_of_device(self, call: Call, function: str) -> PrimExpr:
        if not isinstance(self.device_type, IntImm):
            raise LoweringError(
                f"{function} requires a constant device type around it, got {self.device_type}",
                at=call,
            )
        device = Device.DEVICE_TYPE_TO_NAME[self.device_type.value]
        name = StringImm(f"device_api.{device}.{function}")
        return self.visit_call(Call(call.dtype, CALL_PACKED, [name, *call.args]))

    def _pass_item(self, item: Call, position: int) -> None:
        """Let an item of a list of any values be an argument."""
        where = (self.stacks.values, self.stacks.codes.data, const(position, INT32))
        items = [self.visit(arg) for arg in item.args]
        self._do(_checked("TVMBackendAnyListSetPackedArg", *items, *where))

    def _set_item(self, call: Call, lowered: Op) -> PrimExpr:
        values, index, *callee = call.args
        made = self._packed_call(Call("void", lowered, callee), lowered)
        assert isinstance(made, Call)
        self._do(made)
        where = (made.args[1], made.args[2], made.args[4])
        items = (self.visit(values), self.visit(index))
        return _checked("TVMBackendAnyListMoveFromPackedReturn", *items, *where)

    def _make_shape(self, call: Call) -> PrimExpr:
        begin = self.used.shape
        self.used.shape += max(len(call.args), 1)  # a shape without extents has a place too
        self.needed.raise_to(self.used)
        for position, arg in enumerate(call.args, begin):
            value = op.cast(self.visit(arg), INT64)
            self.before.append(BufferStore(self.stacks.shape, value, [const(position, INT32)]))
        return address_of(BufferLoad(self.stacks.shape, (const(begin, INT32),)))

    def _make_array(self, call: Call) -> PrimExpr:
        index = self.used.arrays
        self.used.arrays += 1
        self.needed.raise_to(self.used)
        data, shape, strides, ndim, dtype_like, offset = [self.visit(arg) for arg in call.args]
        dtype = dtype_like.dtype
        fields = {
            StructField.ARRAY_DATA: data,
            StructField.ARRAY_SHAPE: shape,
            StructField.ARRAY_STRIDES: null_if_zero(strides),
            StructField.ARRAY_NDIM: ndim,
            StructField.ARRAY_TYPE_CODE: const(dtype.type_code, "uint8"),
            StructField.ARRAY_TYPE_BITS: const(dtype.bits, "uint8"),
            StructField.ARRAY_TYPE_LANES: const(dtype.lanes, "uint16"),
            StructField.ARRAY_BYTE_OFFSET: offset * dtype.itemsize,
            StructField.ARRAY_DEVICE_ID: self.device_id,
            StructField.ARRAY_DEVICE_TYPE: self.device_type,
        }
        for field, value in fields.items():
            wanted = FIELD_DTYPES[field]
            content = value if wanted.is_handle else op.cast(value, wanted)
            self._do(struct_set(self.stacks.arrays, index, field, content))
        return array_field(self.stacks.arrays, StructField.ARRAY_ADDRESS, index)

    def _do(self, call: Call) -> None:
        self.before.append(Evaluate(call))

    # ---- memory

    def visit_allocate(self, alloc: Allocate) -> Stmt:
        body = self.visit(alloc.body)
        size = alloc.constant_size()
        is_local = storage_scope(alloc.buffer_var) == "local"
        most = MAX_LOCAL_BYTES if is_local else MAX_STACK_BYTES
        if size is not None and size * alloc.dtype.itemsize <= most and self._on_cpu():
            return alloc if body is alloc.body else alloc.replace(body=body)
        count: PrimExpr = const(alloc.dtype.itemsize, "uint64")
        for extent in alloc.extents:
            count = count * op.cast(_not_negative(extent), "uint64")
        var, dtype = alloc.buffer_var, alloc.dtype
        memory = TVMBackendAllocWorkspace(
            self.device_type, self.device_id, count, dtype.type_code, dtype.bits
        )
        freed = TVMBackendFreeWorkspace(self.device_type, self.device_id, var)
        fail = Evaluate(tvm_throw_last_error())
        return LetStmt(var, memory, seq([
            IfThenElse(is_null(var), fail),
            body,
            IfThenElse(op.not_equal(freed, 0), fail),
        ]))  # fmt: skip

    def _on_cpu(self) -> bool:
        known = self.device_type
        if not isinstance(known, IntImm) or known.value == 1:
            return True
        return self.on_processor and known.value not in WITH_KERNELS


def _checked(function: str, *args: PrimExpr) -> Call:
    """A call of a function of the runtime, whose failure is that of the caller."""
    call = call_extern(INT32, function, *args)
    checked = tvm_check_return(0, -1, call)
    assert isinstance(checked, Call)
    return checked


def _not_negative(extent: PrimExpr) -> PrimExpr:
    """The extent; 0 where that of a part of something empty turns out negative."""
    if isinstance(extent, IntImm) or Analyzer().can_prove(op.greater_equal(extent, 0)):
        return extent
    return op.maximum(extent, 0)


def is_array(arg: PrimExpr) -> bool:
    """Whether an argument is an array that the call describes on the stack."""
    return isinstance(arg, Call) and arg.op is MAKE_ARRAY


def is_zero_pointer(arg: PrimExpr) -> bool:
    """Whether an argument is the null pointer."""
    return (
        isinstance(arg, Call)
        and arg.dtype.is_handle
        and arg.op is INTRINSICS["reinterpret"]
        and is_const(arg.args[0], 0)
    )


def null_if_zero(strides: PrimExpr) -> PrimExpr:
    """Strides as a pointer: the number 0 says that there are none."""
    if strides.dtype.is_handle and not isinstance(strides, StringImm):
        return strides
    return Call(HANDLE, INTRINSICS["reinterpret"], [const(0, "uint64")])


@prim_func_pass("tir.LowerTVMBuiltin")
def lower_tvm_builtin(func: PrimFunc) -> PrimFunc:
    """Lay out arguments of packed calls, and get large temporary memory from the runtime."""
    target = func.get_attr("target")
    on_processor = target is not None and target.runs_on_processor
    lowerer = BuiltinLowerer(StackSizes(), on_processor)
    body = lowerer.lower_scope(func.body)
    if lowerer.needed != StackSizes():
        body = BuiltinLowerer(lowerer.needed, on_processor).lower_scope(func.body)
    return func.with_body(body)


LowerTVMBuiltin = lower_tvm_builtin.factory
