"""Executables of the virtual machine, instruction by instruction.

ib = relax.ExecBuilder()
with ib.function("twice", num_inputs=1):
    ib.emit_call("test.vm.add", args=[ib.r(0), ib.r(0)], dst=ib.r(1))
    ib.emit_ret(ib.r(1))
executable = ib.get()
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any

import numpy as np

from tvm._ffi.registry import get_global_func
from tvm.error import TVMError
from tvm.runtime.container import ShapeTuple
from tvm.runtime.ndarray import NDArray, array
from tvm.runtime.object import Object
from tvm.runtime.relax_vm import Executable
from tvm.support.dtype import DType

# an argument is a word: its kind in the upper 8 bits, a signed value in the others
_VALUE_BITS = 56
_REGISTER, _IMMEDIATE, _CONSTANT, _FUNCTION = range(4)
_CALL, _RET, _GOTO, _IF = range(1, 5)


class SpecialReg(IntEnum):
    """Registers that are none: no value, and the machine itself."""

    VOID_ARG = (1 << 54) + 0
    VM_STATE = (1 << 54) + 1


class VMFuncKind(IntEnum):
    """Who runs a function: another module, the machine's instructions, or machine code on its registers."""

    PACKED_FUNC = 0
    VM_FUNC = 1
    VM_TIR_FUNC = 2


class VMFuncScope:
    """The scope in which the instructions of a function are emitted.

    Parameters
    ----------
    exit_callback : function
        Called when the scope ends without an error.
    """

    def __init__(self, exit_callback: Callable[[], None]) -> None:
        self.exit_callback = exit_callback

    def __enter__(self) -> VMFuncScope:
        return self

    def __exit__(self, kind: Any, value: Any, trace: Any) -> None:
        if kind is None:
            self.exit_callback()


@dataclass
class _Instruction:
    op: int
    target: int = 0  # the register that a call writes, ret returns and if reads
    operand: int = 0  # the function of a call, the offset of goto and if
    args: list[int] = field(default_factory=list)

    def words(self) -> list[int]:
        match self.op:
            case 1:
                return [_CALL, self.target, self.operand, len(self.args), *self.args]
            case 2:
                return [_RET, self.target]
            case 3:
                return [_GOTO, self.operand]
        return [_IF, self.target, self.operand]


@dataclass
class _Function:
    name: str
    kind: VMFuncKind
    params: list[str] = field(default_factory=list)
    code: list[_Instruction] = field(default_factory=list)
    registers: int = 0
    is_defined: bool = False


class ExecBuilder(Object):
    """Builds an executable."""

    __slots__ = ("_constant_places", "_constants", "_current", "_function_places", "_functions")

    def __init__(self) -> None:
        self._functions: list[_Function] = []
        self._function_places: dict[str, int] = {}
        self._constants: list[Any] = []
        self._constant_places: dict[Any, int] = {}
        self._current: _Function | None = None

    def r(self, idx: int) -> int:
        """A register as an argument or destination."""
        if not 0 <= idx < SpecialReg.VOID_ARG:
            raise ValueError(f"a register's number is not negative, got {idx}")
        return int(idx)

    def imm(self, value: int) -> int:
        """An integer as an argument."""
        if not -(1 << (_VALUE_BITS - 1)) <= value < 1 << (_VALUE_BITS - 1):
            raise ValueError(f"an immediate has {_VALUE_BITS} bits, got {value}; use a constant")
        return _argument(_IMMEDIATE, value)

    def c(self, idx: int) -> int:
        """A constant as an argument, by its place."""
        return _argument(_CONSTANT, idx)

    def f(self, name: str) -> int:
        """A function as an argument."""
        return _argument(_FUNCTION, self.function_index(name))

    def void_arg(self) -> int:
        """None as an argument."""
        return int(SpecialReg.VOID_ARG)

    def vm_state(self) -> int:
        """The machine itself as an argument."""
        return int(SpecialReg.VM_STATE)

    def function_index(self, name: str) -> int:
        """The place of a function in the table; one that is not declared is a packed function."""
        if name not in self._function_places:
            self.declare_function(name)
        return self._function_places[name]

    def declare_function(self, func_name: str, kind: VMFuncKind = VMFuncKind.PACKED_FUNC) -> None:
        """Give a function its place in the table of functions before it is defined or called."""
        place = self._function_places.get(func_name)
        if place is None:
            self._function_places[func_name] = len(self._functions)
            self._functions.append(_Function(func_name, VMFuncKind(kind)))
        elif self._functions[place].kind != kind:
            raise TVMError(f"{func_name!r} was declared as {self._functions[place].kind.name}")

    def function(
        self,
        func_name: str,
        num_inputs: int | None = 0,
        param_names: Sequence[str] | None = None,
    ) -> VMFuncScope:
        """The scope of a function's instructions.

        Parameters
        ----------
        func_name : str
            Its name.
        num_inputs : int
            How many parameters it has: the first registers.
        param_names : list of str, optional
            Their names.
        """
        count = len(param_names or ()) if num_inputs is None else num_inputs
        func = self._define(func_name, VMFuncKind.VM_FUNC, count, param_names)
        if self._current is not None:
            raise TVMError(f"{func_name!r} is begun within {self._current.name!r}")
        self._current = func
        return VMFuncScope(self._end_function)

    def compiled_function(
        self, func_name: str, num_inputs: int, param_names: Sequence[str], registers: int
    ) -> None:
        """A function whose machine code is ``__vmtir__<name>`` in the library."""
        func = self._define(func_name, VMFuncKind.VM_TIR_FUNC, num_inputs, param_names)
        func.registers = registers

    def convert_constant(self, const: Any) -> int:
        """A value as an argument; equal values are one constant.

        Parameters
        ----------
        const : NDArray, ShapeTuple, DataType, str, int or float
            The value.
        """
        return self.c(self.constant_index(const))

    def constant_index(self, const: Any) -> int:
        """The place of a value among the constants."""
        value, key = _constant(const)
        place = self._constant_places.get(key)
        if place is None:
            place = self._constant_places[key] = len(self._constants)
            self._constants.append(value)
        return place

    def emit_call(
        self, name: str, args: Sequence[Any] | None = None, dst: int | None = None
    ) -> None:
        """Call a function.

        Parameters
        ----------
        name : str
            The function: of this executable, of its library or a global one.
        args : list, optional
            What :meth:`r`, :meth:`imm`, :meth:`c`, :meth:`f`, :meth:`vm_state` and
            :meth:`convert_constant` give; arrays, data types and shapes become constants.
        dst : int, optional
            The register of the result.
        """
        target = int(SpecialReg.VOID_ARG if dst is None else dst)
        words = [self._word(arg) for arg in args or ()]
        self._emit(_Instruction(_CALL, target, self.function_index(name), words))

    def emit_ret(self, result: int) -> None:
        """Return the value of a register."""
        self._emit(_Instruction(_RET, target=int(result)))

    def emit_goto(self, pc_offset: int) -> None:
        """Go on so many instructions further."""
        self._emit(_Instruction(_GOTO, operand=int(pc_offset)))

    def emit_if(self, cond: int, false_offset: int) -> None:
        """Go on with the next instruction if the register is true, else so many further."""
        self._emit(_Instruction(_IF, int(cond), int(false_offset)))

    def here(self) -> int:
        """The place of the next instruction in its function."""
        return len(self._open_function().code)

    def set_offset(self, place: int, offset: int) -> None:
        """Set where the goto or if at a place leads."""
        self._open_function().code[place].operand = offset

    def get(self) -> Executable:
        """The executable, its registers numbered in the order in which they are first written."""
        if self._current is not None:
            raise TVMError(f"the function {self._current.name!r} is not finished")
        words: list[int] = []
        description = []
        for func in self._functions:
            if func.kind != VMFuncKind.PACKED_FUNC and not func.is_defined:
                raise TVMError(f"the function {func.name!r} was declared and never defined")
            code, registers = _Renumbering(func).run()
            flat = [word for instruction in code for word in instruction.words()]
            description.append(
                {
                    "kind": int(func.kind), "name": func.name, "params": func.params,
                    "registers": registers, "words": len(flat),
                }
            )  # fmt: skip
            words += flat
        code_array = array(np.array(words, "int64"))
        create = get_global_func("relax.CreateExecutable")
        return Executable(create(json.dumps(description), code_array, *self._constants))

    def _define(
        self, name: str, kind: VMFuncKind, num_inputs: int, param_names: Sequence[str] | None
    ) -> _Function:
        names = [f"param{i}" for i in range(num_inputs)] if param_names is None else param_names
        if len(names) != num_inputs:
            raise TVMError(f"{name!r} has {num_inputs} inputs and {len(names)} names of them")
        self.declare_function(name, kind)
        func = self._functions[self._function_places[name]]
        if func.is_defined:
            raise TVMError(f"the function {name!r} is defined twice")
        func.params = [str(param) for param in names]
        func.is_defined = True
        return func

    def _end_function(self) -> None:
        self._current = None

    def _emit(self, instruction: _Instruction) -> None:
        self._open_function().code.append(instruction)

    def _open_function(self) -> _Function:
        if self._current is None:
            raise TVMError("instructions are emitted within `with builder.function(name):`")
        return self._current

    def _word(self, arg: Any) -> int:
        if isinstance(arg, (tuple, NDArray, DType, str)):
            return self.convert_constant(ShapeTuple(arg) if type(arg) is tuple else arg)
        return int(arg)


class _Renumbering:
    """Registers become those below the number of registers; each is written before it is read."""

    def __init__(self, func: _Function) -> None:
        self.func = func
        self.names = {i: i for i in range(len(func.params))}

    def run(self) -> tuple[list[_Instruction], int]:
        if self.func.kind != VMFuncKind.VM_FUNC:
            return [], max(self.func.registers, len(self.func.params))
        if not self.func.code:
            raise TVMError(f"the function {self.func.name!r} has no instructions")
        code = [self._one(instruction) for instruction in self.func.code]
        return code, len(self.names)

    def _one(self, instruction: _Instruction) -> _Instruction:
        match instruction.op:
            case 1:
                args = [self._read(arg) if _is_register(arg) else arg for arg in instruction.args]
                target = self._written(instruction.target)
                return _Instruction(_CALL, target, instruction.operand, args)
            case 3:
                return instruction
        target = self._read(instruction.target)
        return _Instruction(instruction.op, target, instruction.operand)

    def _read(self, register: int) -> int:
        if register >= SpecialReg.VOID_ARG:
            return register
        if register not in self.names:
            raise TVMError(f"{self.func.name!r} reads register {register} before it is written")
        return self.names[register]

    def _written(self, register: int) -> int:
        if register >= SpecialReg.VOID_ARG:
            return register
        return self.names.setdefault(register, len(self.names))


def _argument(kind: int, value: int) -> int:
    word = kind << _VALUE_BITS | int(value) & (1 << _VALUE_BITS) - 1
    return word - (1 << 64) if word >= 1 << 63 else word


def _is_register(word: int) -> bool:
    return word >> _VALUE_BITS == _REGISTER


def _constant(value: Any) -> tuple[Any, Any]:
    """The value as the executable takes it, and what equal ones have in common."""
    if isinstance(value, np.ndarray):
        value = array(value)
    if isinstance(value, NDArray):
        return value, ("array", value.dtype, tuple(value.shape), _bytes_of(value))
    if isinstance(value, DType):
        return value, ("dtype", str(value))
    if isinstance(value, (str, bool, int, float)):
        return value, (type(value).__name__, value)
    if isinstance(value, tuple):
        return ShapeTuple(value), ("shape", tuple(value))
    raise TypeError(
        f"a constant is an array, a shape, a data type, text or a number, got {value!r}"
    )


def _bytes_of(value: NDArray) -> Any:
    # arrays of weights are kept apart by identity, so that they are not copied to compare them
    large = 1024
    count = int(np.prod(value.shape, dtype=np.int64))
    return value.numpy().tobytes() if count <= large else id(value)
