"""The text of one LLVM module: functions, constants, context slots, metadata."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from typing import Any

from tvm import knobs
from tvm.codegen.model_metadata import model_metadata
from tvm.error import LoweringError
from tvm.ir.module import IRModule
from tvm.ir.type import PrimType
from tvm.support.dtype import DType
from tvm.tir.expr import Var
from tvm.tir.function import PrimFunc

from .code import Code
from .debug_info import DebugInfo, LocatedFunctionWriter
from .exports import Exports
from .foreign import features_note
from .half_float import half_conversions
from .math import find_math_function, write_math_function
from .model_metadata import write_model_metadata
from .options import CodegenOptions
from .pair_vectors import VectorPairer
from .polls import find_polls
from .statements import Frame, FunctionWriter
from .system_lib import function_registry, has_elf_objects, registration, system_lib_prefix
from .tensor_check import define_check
from .types import TENSOR, TENSOR_FIELDS, TYPES, byte_string, quoted

# LLVM takes its time for longer data
LARGE_CONSTANT = 16384


class ModuleWriter:
    """Collects the parts of a module while its functions are written."""

    def __init__(
        self,
        options: CodegenOptions,
        library_prefix: str | None = None,
        is_linked: bool = False,
        is_part: bool = False,
    ) -> None:
        self.options = options
        self.is_part = is_part  # of a module: the checks of tensors are in another part
        self.exports = Exports(options, library_prefix or "", is_linked)
        self._library_prefix = library_prefix  # of a system library
        self.definitions: list[str] = []
        self.helpers: list[str] = []  # behind the functions that call them
        self.imports: list[str] = []  # LLVM text to be linked in
        self._globals: list[str] = []
        self._handles = 0  # static ones
        self._strings: dict[str, str] = {}
        self._constants: dict[str, str] = {}
        self.name_functions: dict[str, str] = {}
        self._declared: dict[str, str] = {}
        self.results: dict[str, str] = {}  # of the functions of this module
        # !0: the first branch is usual; !1: the second one is
        self._metadata = [
            '!0 = !{!"branch_weights", i32 1048576, i32 1}',
            '!1 = !{!"branch_weights", i32 1, i32 1048576}',
        ]
        self._metadata_count = 2
        self._names: dict[str, int] = {}
        self._math: dict[str, str] = {}
        self.debug_info: DebugInfo | None = None

    # ---- functions

    def add_function(self, name: str, func: PrimFunc) -> None:
        """Write one function."""
        attrs = func.attrs
        is_packed = int(attrs.get("calling_conv", 0)) == 1
        noalias = bool(attrs.get("tir.noalias", False))
        values: dict[Var, str] = {}
        params = []
        for number, param in enumerate(func.params):
            values[param] = operand = f"%p{number}"
            restrict = " noalias" if noalias and param.dtype.is_handle else ""
            params.append(f"{TYPES[param.dtype].text}{restrict} {operand}")
        result = self.results[name]
        is_exported = attrs.get("global_symbol") and name.startswith(self.exports.prefix)
        linkage = "" if is_exported else "internal "
        code = Code(f"define {linkage}{result} @{quoted(name)}({', '.join(params)}) #0")
        writer = self._function_writer(name, Frame(code, values, result), noalias)
        for param in func.params:
            if noalias and param.dtype.is_handle and not is_packed:
                writer.aliases.add(param)
        if not self.exports.is_linked:
            writer.polls = find_polls(func.body)
        # where arguments may overlap, the second vector's operands cannot be loaded before the first is stored
        body = VectorPairer(self.options.cpu.vector_bits).visit(func.body) if noalias else func.body
        writer.visit(body)
        code.do("ret i32 0" if result == "i32" else f"ret {result} zeroinitializer")
        self.definitions.append(code.text())
        self._metadata += writer.aliases.definitions()
        if is_packed:
            self.exports.functions.append(name)
            if attrs.get("tir.is_entry_func"):
                self._add_entry(name)

    def _function_writer(self, name: str, frame: Frame, noalias: bool) -> FunctionWriter:
        if self.debug_info is None:
            return FunctionWriter(self, name, frame, noalias)
        return LocatedFunctionWriter(self, name, frame, noalias, self.debug_info)

    def _add_entry(self, name: str) -> None:
        self.exports.entries.append("__tvm_main__")
        data = name.encode() + b"\0"
        symbol = f"@{quoted(self.exports.prefix + '__tvm_main__')}"
        self._globals.append(f"{symbol} = weak constant [{len(data)} x i8] {byte_string(data)}")

    def math_function(self, name: str, dtype: DType) -> str:
        """The symbol of a math function on the lanes of a type; written on first use."""
        symbol = f"tvm.{name}.v{dtype.lanes}f{dtype.bits}"
        if symbol not in self._math:
            function = find_math_function(name, dtype)
            assert function is not None
            self._math[symbol] = ""
            self._math[symbol] = write_math_function(self, function, symbol, dtype)
        return symbol

    def has_math(self, name: str, dtype: DType) -> bool:
        """Whether there is a function of our own."""
        return find_math_function(name, dtype) is not None

    def declare(self, name: str, result: str, params: Sequence[str], attributes: str = "") -> None:
        """Declare a C function."""
        line = f"declare {result} @{quoted(name)}({', '.join(params)}){attributes}"
        self._declared.setdefault(name, line)

    def declare_math(self, name: str, scalar: str, arity: int, caller: str) -> None:
        """Declare a mathematical function of the C library."""
        if name in self.results:
            raise LoweringError(
                f"the module's function {name} hides the C library's, which function {caller} calls",
                hint="give the module's function another name",
            )
        self.declare(name, scalar, [scalar] * arity, " nounwind memory(none)")

    # ---- globals

    def context_slot(self, name: str) -> str:
        """The global pointer to a function of the runtime.

        The loader fills it, so that a library does not name the runtime it runs on.
        """
        slots = self.exports.slots
        found = slots.get(name)
        if found is None:
            found = slots[name] = f"@__{name}"
            content = "null"
            if self.exports.is_linked:
                content = f"@{name}"
                self.declare(name, "void", [])
            self._globals.append(f"{found} = weak global ptr {content}, align 8")
        return found

    def context(self) -> str:
        """The global pointer to the module itself, for looking up imported functions."""
        symbol = f"@{quoted(self.exports.prefix + '__tvm_module_ctx')}"
        if symbol not in self.exports.slots.values():
            self.exports.slots["module_ctx"] = symbol
            self._globals.append(f"{symbol} = weak global ptr null, align 8")
        return symbol

    def function_slot(self, name: str) -> str:
        """A cache for the handle of a packed function."""
        symbol = f"@{quoted(f'.tvm_func.{name}')}"
        line = f"{symbol} = internal global ptr null, align 8"
        if name not in self._names:
            self._names[name] = 0
            self._globals.append(line)
        return symbol

    def static_handle(self) -> str:
        """A pointer that lives as long as the library; its address."""
        self._handles += 1
        symbol = f"@.tvm_static_handle.{self._handles}"
        self._globals.append(f"{symbol} = internal global ptr null, align 8")
        return symbol

    def string(self, text: str) -> str:
        """A constant C string."""
        found = self._strings.get(text)
        if found is None:
            found = self._strings[text] = f"@.str.{len(self._strings)}"
            data = text.encode() + b"\0"
            self._globals.append(
                f"{found} = private unnamed_addr constant [{len(data)} x i8] {byte_string(data)}"
            )
        return found

    def constant(self, content: str) -> str:
        """A constant given as LLVM text; equal ones are one."""
        found = self._constants.get(content)
        if found is None:
            found = self._constants[content] = f"@.row.{len(self._constants)}"
            self._globals.append(f"{found} = private unnamed_addr constant {content}, align 8")
        return found

    def constant_array(self, data: Any) -> str:
        """Constant data in memory; large ones are left to an object of their own."""
        content = data.numpy().tobytes()
        if len(content) >= LARGE_CONSTANT and has_elf_objects(self.options.cpu.triple):
            return self._large_constant(content)
        symbol = f"@{self.new_symbol('.const')}"
        self._globals.append(
            f"{symbol} = internal constant [{len(content)} x i8] {byte_string(content)}, align 64"
        )
        return symbol

    def _large_constant(self, content: bytes) -> str:
        """A constant under a name that only equal data has."""
        symbol = f"tvm_constant_{blake2b(content, digest_size=16).hexdigest()}"
        if symbol not in self.exports.large_constants:
            self.exports.large_constants[symbol] = content
            self._globals.append(f"@{symbol} = external constant [{len(content)} x i8], align 64")
        return f"@{symbol}"

    def new_symbol(self, base: str) -> str:
        """A symbol that nothing else has."""
        count = self._names.get(base, 0)
        self._names[base] = count + 1
        return f"{base}{count}" if count else base

    # ---- metadata

    def new_metadata(self) -> int:
        """The number of a metadata node to come."""
        self._metadata_count += 1
        return self._metadata_count - 1

    def add_metadata(self, text: str) -> int:
        """The number of a metadata node."""
        number = self.new_metadata()
        self._metadata.append(f"!{number} = {text}")
        return number

    def loop_metadata(self, *properties: str) -> int:
        """Metadata for one loop."""
        own = self.new_metadata()
        numbers = [self.new_metadata() for _ in properties]
        self._metadata += [f'!{n} = !{{!"{p}"}}' for n, p in zip(numbers, properties, strict=True)]
        self._metadata.append(
            f"!{own} = distinct !{{!{own}, {', '.join([f'!{n}' for n in numbers])}}}"
        )
        return own

    # ---- the whole

    def text(self, layout: str) -> str:
        """The module."""
        cpu = self.options.cpu
        declared = [line for name, line in self._declared.items() if name not in self.results]
        definitions = [*self.definitions, *self.helpers, *self._math.values()]
        definitions.append(half_conversions(cpu, definitions))
        if self._library_prefix is not None:
            definitions.append(registration(self, self._library_prefix))
            if self.exports.is_linked:
                definitions.append(function_registry(self))
        flags = [] if self.debug_info is None else self.debug_info.module_flags()
        width = f' "prefer-vector-width"="{cpu.vector_bits}"'
        common = f"nounwind{width} {self.options.processor}".rstrip()
        return "\n".join(
            [
                f'target datalayout = "{layout}"',
                f'target triple = "{cpu.triple}"',
                f"{TENSOR} = type {TENSOR_FIELDS}",
                features_note(cpu),
                *self._globals,
                *declared,
                *definitions,
                f"attributes #0 = {{ {common} }}",
                f"attributes #1 = {{ alwaysinline {common} }}",
                *flags,
                *self._metadata,
                "",
            ]
        )


def write_module(mod: IRModule, options: CodegenOptions, is_part: bool = False) -> ModuleWriter:
    """Write all functions of a lowered module."""
    is_linked = bool(mod.get_attr("linked_runtime"))
    writer = ModuleWriter(options, system_lib_prefix(mod), is_linked, is_part)
    functions = {
        str(func.attrs.get("global_symbol", gvar.name_hint)): func
        for gvar, func in mod.functions.items()
        if isinstance(func, PrimFunc)
    }
    if (folder := knobs.DEBUG_INFO.value) is not None:
        writer.debug_info = DebugInfo(writer, functions, folder)
    for name, func in functions.items():
        # one without a result returns a status: 0 or, if a check failed, -1
        result = func.ret_type
        writer.results[name] = TYPES[result.dtype].text if isinstance(result, PrimType) else "i32"
    for name, func in sorted(functions.items()):  # in an order that readers know
        writer.add_function(name, func)
    if (metadata := model_metadata(mod)) is not None:
        write_model_metadata(writer, metadata)
    return writer


def write_checks(options: CodegenOptions) -> ModuleWriter:
    """Write what the parts of a module call to check tensors."""
    writer = ModuleWriter(options)
    define_check(writer, is_shared=True)
    return writer
