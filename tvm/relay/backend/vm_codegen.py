"""From functions in A-normal form, memory made explicit, to instructions of the virtual machine."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

import tvm.runtime.ndarray as nd
from tvm.error import TVMError
from tvm.ir.adt import Constructor
from tvm.ir.expr import GlobalVar, RelayExpr
from tvm.ir.module import IRModule
from tvm.ir.op import Op
from tvm.relay.adt import Match, Pattern, PatternConstructor, PatternTuple, PatternVar
from tvm.relay.analysis.source_names import source_names
from tvm.relay.expr import (
    Call,
    Constant,
    If,
    Let,
    RefCreate,
    RefRead,
    RefWrite,
    Tuple,
    TupleGetItem,
    Var,
)
from tvm.relay.function import Function
from tvm.relay.op.memory.memory import ALLOC_STORAGE, ALLOC_TENSOR, KILL
from tvm.relay.op.registry import ops
from tvm.relay.op.vm.vm import INVOKE_TVM_OP, RESHAPE_TENSOR, SHAPE_FUNC, SHAPE_OF
from tvm.relay.transform.lambda_lift import CLOSURE
from tvm.runtime.ndarray import NDArray
from tvm.support import deep
from tvm.support.dtype import dtype as as_dtype
from tvm.target.virtual_device import VirtualDevice

MOVE, RET, INVOKE, INVOKE_CLOSURE, INVOKE_PACKED, ALLOC_TENSOR_CODE, ALLOC_TENSOR_REG = range(7)
ALLOC_ADT, ALLOC_CLOSURE, GET_FIELD, IF, LOAD_CONST, GOTO, GET_TAG, LOAD_CONSTI = range(7, 15)
FATAL, ALLOC_STORAGE_CODE, SHAPE_OF_CODE, RESHAPE_CODE, DEVICE_COPY_CODE = range(15, 20)
KILL_REGISTER, SET_FIELD = range(20, 22)

Instruction = tuple[int, list[int]]


@dataclass
class VMFunction:
    """The instructions of one function."""

    name: str
    params: list[str]
    param_devices: list[int]
    registers: int = 0
    code: list[Instruction] = field(default_factory=list)
    # by the place of an instruction, the nodes of the imported model that it computes
    sources: dict[int, str] = field(default_factory=dict)


@dataclass
class Tables:
    """What the functions of a program share; kernels are found by name, constants by array."""

    mod: IRModule
    functions: Mapping[str, int]  # numbers
    kernel_name: Callable[[Function], str]
    shape_name: Callable[[Function], str]
    devices: list[tuple[int, int]]  # kinds and numbers; the main target's is the first
    kernels: dict[str, int] = field(default_factory=dict)
    constants: list[NDArray] = field(default_factory=list)
    constant_devices: list[int] = field(default_factory=list)
    _constant_index: dict[object, int] = field(default_factory=dict)

    def kernel(self, name: str) -> int:
        """The number of a kernel."""
        return self.kernels.setdefault(name, len(self.kernels))

    def device_index(self, kind: int, number: int = 0) -> int:
        """The place of a device among those of the program."""
        if (kind, number) not in self.devices:
            self.devices.append((kind, number))
        return self.devices.index((kind, number))

    def place(self, device: VirtualDevice | None) -> int:
        """The same for where a value lives; what nobody placed lives with the main target."""
        if device is None:
            return 0
        return self.device_index(device.device_type_int, max(device.virtual_device_id, 0))

    def constant(self, array: NDArray, place: int) -> int:
        """The number of a constant on a device; small equal ones share it."""
        key: object = id(array)
        if not array.shape or array.shape == (1,):
            key = (array.dtype, array.shape, array.numpy().tobytes())
        if (key, place) not in self._constant_index:
            self._constant_index[key, place] = len(self.constants)
            self.constants.append(array)
            self.constant_devices.append(place)
        return self._constant_index[key, place]

    def tag(self, constructor: Constructor) -> int:
        """The number that tells the constructors of a type apart."""
        if constructor.tag >= 0:
            return int(constructor.tag)
        known = self.mod[constructor.belong_to].constructors
        return next(i for i, c in enumerate(known) if c is constructor)


class FunctionCompiler:
    """Compiles one function."""

    def __init__(self, tables: Tables) -> None:
        self.tables = tables
        self.code: list[Instruction] = []
        self.sources: dict[int, str] = {}
        self.registers: dict[int, int] = {}
        self.constants: dict[int, int] = {}  # registers of constants, in the current block
        self.count = 0

    def run(self, name: str, func: Function) -> VMFunction:
        """The instructions of a global function."""
        params = list(func.params)
        body = func.body
        if func.attrs.get(CLOSURE):
            assert isinstance(body, Function)
            params += body.params
            body = body.body
        for param in params:
            self.registers[id(param)] = self._fresh()
        self._emit(RET, deep(self._block)(body))
        devices = [self.tables.place(p.virtual_device_) for p in params]
        names = [p.name_hint for p in params]
        return VMFunction(name, names, devices, self.count, self.code, self.sources)

    def _fresh(self) -> int:
        self.count += 1
        return self.count - 1

    def _emit(self, op: int, *fields: int) -> int:
        """Append an instruction; its place."""
        self.code.append((op, [int(f) for f in fields]))
        return len(self.code) - 1

    def _made(self, op: int, *fields: int) -> int:
        """An instruction that ends with a fresh register for its result; the register."""
        register = self._fresh()
        self._emit(op, *fields, register)
        return register

    # -- blocks and control

    def _block(self, body: RelayExpr) -> int:
        while isinstance(body, Let):
            value = self._value(body.value)
            if isinstance(body.value, Var):  # each variable has a register that can be killed
                value, source = self._fresh(), value
                self._emit(MOVE, source, value)
            self.registers[id(body.var)] = value
            body = body.body
        return self._value(body)

    def _inner_block(self, body: RelayExpr, result: int) -> None:
        """A block that leaves its value in a register; what it loads is not there afterwards."""
        outer = dict(self.constants)
        self._emit(MOVE, self._block(body), result)
        self.constants = outer

    def _if(self, node: If) -> int:
        test, one = self._value(node.cond), self._made(LOAD_CONSTI, 1)
        result = self._fresh()
        branch = self._emit(IF, test, one, 1, 0)
        self._inner_block(node.true_branch, result)
        leave = self._emit(GOTO, 0)
        self.code[branch][1][3] = len(self.code) - branch
        self._inner_block(node.false_branch, result)
        self.code[leave][1][0] = len(self.code) - leave
        return result

    def _match(self, node: Match) -> int:
        data, result = self._value(node.data), self._fresh()
        leaves: list[int] = []
        for clause in node.clauses:
            outer = dict(self.constants)
            failures: list[int] = []
            value = data
            if isinstance(clause.lhs, PatternVar):  # one may be killed before the other
                value = self._fresh()
                self._emit(MOVE, data, value)
            self._test(clause.lhs, value, failures)
            self._inner_block(clause.rhs, result)
            self.constants = outer
            leaves.append(self._emit(GOTO, 0))
            for place in failures:
                self.code[place][1][3] = len(self.code) - place
        self._emit(FATAL)
        for place in leaves:
            self.code[place][1][0] = len(self.code) - place
        return result

    def _test(self, pattern: Pattern, value: int, failures: list[int]) -> None:
        """Bind what the pattern binds; jumps of a value that does not fit go to `failures`."""
        if isinstance(pattern, PatternVar):
            self.registers[id(pattern.var)] = value
        elif isinstance(pattern, (PatternConstructor, PatternTuple)):
            if isinstance(pattern, PatternConstructor):
                tag = self._made(GET_TAG, value)
                wanted = self._made(LOAD_CONSTI, self.tables.tag(pattern.constructor))
                failures.append(self._emit(IF, tag, wanted, 1, 0))
            for i, inner in enumerate(pattern.patterns):
                if isinstance(inner, (PatternVar, PatternConstructor, PatternTuple)):
                    self._test(inner, self._made(GET_FIELD, value, i), failures)

    # -- values

    def _value(self, node: RelayExpr) -> int:
        if isinstance(node, Var):
            return self._variable(node)
        if isinstance(node, Constant):
            return self._constant(node)
        if isinstance(node, Call):
            return self._call(node)
        if isinstance(node, If):
            return self._if(node)
        if isinstance(node, Match):
            return self._match(node)
        if isinstance(node, Tuple):
            return self._object(0, [self._value(f) for f in node.fields])
        if isinstance(node, TupleGetItem):
            return self._made(GET_FIELD, self._value(node.tuple_value), node.index)
        if isinstance(node, GlobalVar):
            return self._closure(node, [])
        if isinstance(node, RefCreate):
            return self._object(0, [self._value(node.value)])
        if isinstance(node, RefRead):
            return self._made(GET_FIELD, self._value(node.ref), 0)
        if isinstance(node, RefWrite):
            self._emit(SET_FIELD, self._value(node.ref), 0, self._value(node.value))
            return self._object(0, [])
        if isinstance(node, Let):
            return self._block(node)
        raise TVMError(f"the virtual machine cannot run a {type(node).__name__}", at=node)

    def _variable(self, node: Var) -> int:
        if id(node) not in self.registers:
            raise TVMError(f"the virtual machine requires a value for %{node.name_hint}")
        return self.registers[id(node)]

    def _constant(self, node: Constant) -> int:
        index = self.tables.constant(node.data, self.tables.place(node.virtual_device_))
        if index not in self.constants:
            self.constants[index] = self._made(LOAD_CONST, index)
        return self.constants[index]

    def _object(self, tag: int, fields: list[int]) -> int:
        register = self._fresh()
        self._emit(ALLOC_ADT, tag, len(fields), register, *fields)
        return register

    def _closure(self, gvar: GlobalVar, captured: list[int]) -> int:
        register = self._fresh()
        index = self.tables.functions[gvar.name_hint]
        self._emit(ALLOC_CLOSURE, index, len(captured), register, *captured)
        return register

    def _call(self, call: Call) -> int:
        op = call.op
        if isinstance(op, Op):
            return self._operator(call)
        if isinstance(op, Constructor):
            return self._object(self.tables.tag(op), [self._value(a) for a in call.args])
        args = [self._value(a) for a in call.args]
        if isinstance(op, GlobalVar):
            if self.tables.mod[op].attrs.get(CLOSURE):
                return self._closure(op, args)
            callee, code = self.tables.functions[op.name_hint], INVOKE
        else:
            callee, code = self._value(op), INVOKE_CLOSURE
        register = self._fresh()
        self._emit(code, callee, len(args), register, *args)
        return register

    def _operator(self, call: Call) -> int:
        compile_one = _OPERATORS.get(call.op)
        if compile_one is None:
            raise TVMError(f"the virtual machine has no instruction for {call.op}", at=call)
        return int(compile_one(self, call))

    def _alloc_storage(self, call: Call) -> int:
        size, _, alignment = call.args
        assert isinstance(alignment, Constant)
        dtype = as_dtype(call.attrs.dtype)
        place = self.tables.place(call.attrs.virtual_device)
        return self._made(
            ALLOC_STORAGE_CODE, self._value(size), int(alignment.data.numpy()),
            dtype.type_code, dtype.bits, dtype.lanes, place,
        )  # fmt: skip

    def _alloc_tensor(self, call: Call) -> int:
        storage, offset, shape = call.args
        dtype = as_dtype(call.attrs.dtype)
        code = (dtype.type_code, dtype.bits, dtype.lanes)
        at = (self._value(storage), self._value(offset))
        known = call.attrs.const_shape
        if known is None:
            return self._made(ALLOC_TENSOR_REG, *at, self._value(shape), *code)
        register = self._fresh()
        self._emit(ALLOC_TENSOR_CODE, *at, *code, len(known), register, *known)
        return register

    def _kill(self, call: Call) -> int:
        register = self._value(call.args[0])
        self._emit(KILL_REGISTER, register)
        return register

    def _invoke_kernel(self, call: Call) -> int:
        func, inputs, outputs = call.args
        if isinstance(func, GlobalVar):
            func = self.tables.mod[func]
            name = str(func.attrs["global_symbol"])
        else:
            assert isinstance(func, Function)
            name = self.tables.kernel_name(func)
        result = self._packed(name, inputs, outputs)
        if sources := source_names(call, func):
            self.sources[len(self.code) - 1] = sources
        return result

    def _shape_func(self, call: Call) -> int:
        func, inputs, outputs = call.args
        assert isinstance(func, Function)
        return self._packed(self.tables.shape_name(func), inputs, outputs)

    def _packed(self, name: str, inputs: RelayExpr, outputs: RelayExpr) -> int:
        assert isinstance(inputs, Tuple) and isinstance(outputs, Tuple)
        args = [self._value(v) for v in (*inputs.fields, *outputs.fields)]
        count = len(outputs.fields)
        self._emit(INVOKE_PACKED, self.tables.kernel(name), len(args), count, *args)
        return args[-1] if args else self._object(0, [])

    def _shape_of(self, call: Call) -> int:
        return self._made(SHAPE_OF_CODE, self._value(call.args[0]))

    def _device_copy(self, call: Call) -> int:
        ends = [call.attrs.src_virtual_device, call.attrs.dst_virtual_device]
        return self._made(
            DEVICE_COPY_CODE, self._value(call.args[0]), *[self.tables.place(d) for d in ends]
        )

    def _reshape(self, call: Call) -> int:
        return self._made(RESHAPE_CODE, *[self._value(a) for a in call.args])


_OPERATORS: dict[RelayExpr, Callable[[FunctionCompiler, Call], int]] = {
    ALLOC_STORAGE: FunctionCompiler._alloc_storage,
    ALLOC_TENSOR: FunctionCompiler._alloc_tensor,
    KILL: FunctionCompiler._kill,
    INVOKE_TVM_OP: FunctionCompiler._invoke_kernel,
    SHAPE_FUNC: FunctionCompiler._shape_func,
    SHAPE_OF: FunctionCompiler._shape_of,
    RESHAPE_TENSOR: FunctionCompiler._reshape,
    ops.device_copy: FunctionCompiler._device_copy,
}


def flat_code(functions: list[VMFunction]) -> NDArray:
    """The instructions of all functions as one array: code, number of fields, fields."""
    words = [
        word
        for func in functions
        for op, fields in func.code
        for word in (op, len(fields), *fields)
    ]
    return nd.array(np.array(words, "int64"))
