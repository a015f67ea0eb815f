"""The text of one C module: headers, helper functions, slots of the runtime, functions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tvm.codegen.model_metadata import FUNCTION, model_metadata
from tvm.error import LoweringError
from tvm.ir.module import IRModule
from tvm.ir.type import PrimType
from tvm.ir.visitor import Visitor
from tvm.support import UniqueNames
from tvm.support.dtype import DType
from tvm.tir.expr import Call
from tvm.tir.function import PrimFunc

from .code import Code
from .failure import CHECKS
from .helpers import HELPERS
from .model_metadata import model_metadata_text
from .names import DECLARED, identifier, is_plain, is_symbol
from .statements import FunctionWriter
from .types import TYPES, array_literals, string_text

# functions of the runtime that generated code calls, through pointers that the loader fills
_SLOTS = {
    "TVMFuncCall": "int (*{})(TVMFunctionHandle, TVMValue*, int*, int, TVMValue*, int*)",
    "TVMAPISetLastError": "void (*{})(const char*)",
    "TVMBackendGetFuncFromEnv": "int (*{})(void*, const char*, TVMFunctionHandle*)",
    "TVMBackendAllocWorkspace": "void* (*{})(int, int, uint64_t, int, int)",
    "TVMBackendFreeWorkspace": "int (*{})(int, int, void*)",
    "TVMBackendAnyListSetPackedArg": "int (*{})(void*, int, TVMValue*, int*, int)",
    "TVMBackendAnyListResetItem": "int (*{})(void*, int)",
    "TVMBackendAnyListMoveFromPackedReturn": "int (*{})(void*, int, TVMValue*, int*, int)",
    "TVMBackendParallelLaunch": "int (*{})(FTVMParallelLambda, void*, int)",
    "TVMBackendParallelBarrier": "int (*{})(int, TVMParallelGroupEnv*)",
}

_PRELUDE = """\
#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tvm/runtime/c_backend_api.h>

#if defined(__GNUC__) && !defined(__clang__)
/* Tiles at the edge of a tensor are computed from elements that nobody sets, for results that nobody uses. */
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
#endif
#if defined(__GNUC__)
#define TVM_WEAK __attribute__((weak))
#define TVM_UNUSED __attribute__((unused))
#define TVM_RESTRICT __restrict__
#define TVM_ALIGNED(bytes) __attribute__((aligned(bytes)))
#define TVM_LIKELY(x) (__builtin_expect(!!(x), 1) != 0)
#define TVM_PREFETCH(address, write, locality) __builtin_prefetch(address, write, locality)
#define TVM_TEXT_OF(x) #x
#define TVM_PREFIXED(prefix, name) TVM_TEXT_OF(prefix) name
#define TVM_SYMBOL(name) __asm__(TVM_PREFIXED(__USER_LABEL_PREFIX__, name))
#else
#define TVM_WEAK
#define TVM_UNUSED
#define TVM_RESTRICT
#define TVM_ALIGNED(bytes)
#define TVM_LIKELY(x) (x)
#define TVM_PREFETCH(address, write, locality) ((void)(address))
#endif
/* The runtime fills the pointers to its functions when it loads a library; a program that is linked
   with the runtime defines TVM_LINKED_RUNTIME instead. */
#ifdef TVM_LINKED_RUNTIME
#define TVM_SLOT(name) name
#else
#define TVM_SLOT(name) NULL
#endif
"""


_CONSTANTS = """\
#if !defined(__GNUC__)
#define __attribute__(attributes)
#elif defined(__APPLE__)
#define section(name) unused /* its object files name sections otherwise */
#endif
"""
_CONSTANT_ALIGNMENT = 16


@dataclass(frozen=True, slots=True)
class Alignment:
    """At multiples of how many bytes memory starts."""

    constants: int = 0  # 0: what those who read them need
    memory: int = 64


class ModuleWriter:
    """Collects the parts of a module while its functions are written."""

    def __init__(self, alignment: Alignment) -> None:
        self.alignment = alignment
        self.functions: list[str] = []  # of our own, for all functions of the module
        self.definitions: list[str] = []
        self.symbols: list[str] = []  # functions that others may call by the packed convention
        self.results: dict[str, str] = {}  # of the functions of this module
        self.parameters: dict[str, list[str]] = {}  # types of them, of the functions written so far
        self.has_check = False
        self.entry: str | None = None
        self._imports: dict[str, None] = {}  # C text of the user
        self._helpers: dict[str, None] = {}
        self._slots: dict[str, str] = {}
        self._statics: dict[str, None] = {}
        self._declared: dict[str, str] = {}
        self._shared: dict[str, str] = {}
        self._constants: list[str] = []
        self._handles: dict[str, str] = {}
        self._symbols: dict[str, str] = {}  # C's names of functions
        self._names = UniqueNames()

    # ---- functions

    def add_function(self, name: str, func: PrimFunc) -> None:
        """Write one function."""
        attrs = func.attrs
        is_packed = int(attrs.get("calling_conv", 0)) == 1
        result = self.results[name]
        code = Code("")
        called = CalledNames()
        called.visit(func.body)
        taken = ["lane", *self._symbols.values(), *called.found]
        for reserved in taken:
            code.reserve(reserved)
        writer = FunctionWriter(self, name, code, result, taken)
        writer.noalias = bool(attrs.get("tir.noalias", False))
        if writer.noalias and not is_packed:
            writer.restricted.update([p for p in func.params if p.dtype.is_handle])
        names = [writer.define(param) for param in func.params]
        types = [writer.declared_type(p).removeprefix("const ") for p in func.params]
        self.parameters[name] = [text.removesuffix(" TVM_RESTRICT") for text in types]
        params = [f"{text} {n}" for text, n in zip(types, names, strict=True)]
        linkage = "TVM_DLL" if attrs.get("global_symbol") else "static TVM_UNUSED"
        head = f"{result} {self._symbols[name]}({', '.join(params) or 'void'})"
        label = "" if self._symbols[name] == name else f" TVM_SYMBOL({string_text(name)})"
        self._declared[name] = f"{linkage} {head}{label};"
        code.signature = head if linkage == "TVM_DLL" else f"static {head}"
        writer.visit(func.body)
        unused = [n for p, n in zip(func.params, names, strict=True) if p not in writer.used]
        code.lines[:0] = [f"(void){n};" for n in unused]
        if result != "void" and code.lines[-1:] != ["return 0;"]:
            code.do("return 0")
        self.definitions.append(code.text())
        if is_packed:
            self.symbols.append(name)
            if attrs.get("tir.is_entry_func"):
                self.entry = name

    def name_functions(self, functions: dict[str, PrimFunc]) -> None:
        """Decide what the functions are called in C."""
        for name, func in functions.items():
            result = func.ret_type
            # one without a result returns a status: 0 or, if a check failed, -1
            typed = TYPES[result.dtype].text if isinstance(result, PrimType) else None
            if name in HELPERS or name in CHECKS or not is_symbol(name):
                raise LoweringError(
                    f"target c cannot give a function the name {name!r}",
                    hint="names have letters, digits and underscores",
                )
            self.results[name] = typed or "int32_t"
            if is_plain(name):
                self._names.reserve(name)
                self._symbols[name] = name
        for name in functions:
            if name not in self._symbols:
                # the name that others see is given by a label
                self._symbols[name] = self._names.fresh(f"function_{identifier(name)}")

    def declare(self, name: str, result: str, params: Sequence[str]) -> str:
        """Declare a function, unless a header or the user's text does; its name in C."""
        if name in self.results:
            return self._symbols[name]
        # what the user's own headers declare, they know best
        texts = self._imports
        known = name in DECLARED or any([name in t or '#include "' in t for t in texts])
        if not known:
            symbol = name if is_plain(name) else self.new_name(identifier(name))
            label = "" if symbol == name else f" TVM_SYMBOL({string_text(name)})"
            line = f"{result} {symbol}({', '.join(params) or 'void'}){label};"
            self._symbols.setdefault(name, symbol)
            self._declared.setdefault(name, line)
            return self._symbols[name]
        return name

    def new_name(self, wish: str) -> str:
        """A name that nothing else in the file has."""
        return self._names.fresh(identifier(wish))

    def _static_name(self, wish: str) -> str:
        """A name of the file that no local variable has."""
        return self._names.fresh(f"tvm_{identifier(wish)}")

    def add_import(self, text: str) -> None:
        """C text of the user, to stand before all functions."""
        self._imports[text] = None

    # ---- pieces

    def use(self, helper: str) -> None:
        """The module needs a helper function, and those that it calls."""
        if helper in self._helpers or helper not in HELPERS:
            return
        for name in HELPERS[helper].needs:
            self.use(name)
        self._helpers[helper] = None

    def slot(self, name: str) -> str:
        """The pointer to a function of the runtime."""
        found = f"__{name}"
        if name not in self._slots:
            declared = _SLOTS[name].format(found)
            self._slots[name] = (
                f"extern TVM_DLL TVM_WEAK {declared};\n{declared} = TVM_SLOT({name});"
            )
        return found

    def context(self) -> str:
        """The pointer to the module itself, for looking up imported functions."""
        self._slots["__tvm_module_ctx"] = (
            "extern TVM_DLL TVM_WEAK void* __tvm_module_ctx;\nvoid* __tvm_module_ctx = NULL;"
        )
        return "__tvm_module_ctx"

    def function_slot(self, name: str) -> str:
        """A cache for the handle of a packed function."""
        if name not in self._handles:
            self._handles[name] = self.new_name(f"{name}_packed")
            self._statics[f"static void* {self._handles[name]} = NULL;"] = None
        return self._handles[name]

    def static_handle(self, name: str) -> str:
        """A pointer that lives as long as the library."""
        found = self._static_name(f"handle_{name}")
        self._statics[f"static void* {found} = NULL;"] = None
        return found

    def shared(self, name: str, before: str, after: str) -> str:
        """The name of a definition; equal ones are written once."""
        found = self._shared.get(before + after)
        if found is None:
            found = self._shared[before + after] = self._names.fresh(name)
            self.functions.append(f"{before}{found}{after}")
        return found

    def constant_array(self, data: Any, dtype: DType, is_argument: bool) -> str:
        """Constant data in memory, in a section that linker scripts can place.

        Kernels of other modules that take it as an argument ask for the alignment of arrays.
        """
        type_ = TYPES[dtype.element]
        name = self._static_name(f"constant_{len(self._constants)}")
        items = array_literals(dtype, data.numpy().reshape(-1)) or ["0"]
        lines = [", ".join(items[i : i + 12]) for i in range(0, len(items), 12)]
        text = ",\n  ".join(lines)
        given = self.alignment.constants
        alignment = given or (self.alignment.memory if is_argument else _CONSTANT_ALIGNMENT)
        place = f'__attribute__((section(".rodata.tvm"), aligned({alignment})))'
        self._constants.append(
            f"static const {type_.memory} {place} {name}[{len(items)}] = {{\n  {text}\n}};\n"
        )
        return name

    # ---- the whole

    def text(self, title: str, is_linked: bool = False) -> str:
        """The module; ``is_linked`` with the runtime rather than loaded by it."""
        entry = []
        if self.entry is not None:
            name = "__tvm_main__"
            entry = [
                f"extern TVM_DLL TVM_WEAK const char {name}[];",
                f"const char {name}[] = {string_text(self.entry)};",
            ]
        parts = [
            [f"// tvm target: {title}"],
            ["#define TVM_LINKED_RUNTIME"] if is_linked else [],
            [_PRELUDE],
            list(self._imports),
            ["#ifdef __cplusplus", 'extern "C" {', "#endif"],
            list(self._slots.values()),
            list(self._statics),
            list(self._declared.values()),
            entry,
            ["#ifdef __cplusplus", "}", "#endif", ""],
            [HELPERS[name].text for name in self._helpers],
            self.functions,
            [_CONSTANTS] if self._constants else [],
            self._constants,
            self.definitions,
        ]
        return "\n".join([line for part in parts for line in part])


class CalledNames(Visitor):
    """The names of C functions that a body calls: variables must not hide them."""

    def __init__(self) -> None:
        self.found: dict[str, None] = {}

    def visit_call(self, call: Call) -> None:
        if getattr(call.op, "name", "") in ("tir.call_extern", "tir.call_pure_extern"):
            self.found[str(getattr(call.args[0], "value", ""))] = None
        self.visit_children(call)


def write_module(mod: IRModule, alignment: Alignment) -> ModuleWriter:
    """Write all functions of a lowered module."""
    writer = ModuleWriter(alignment)
    functions = {
        str(func.attrs.get("global_symbol", gvar.name_hint)): func
        for gvar, func in mod.functions.items()
        if isinstance(func, PrimFunc)
    }
    writer.name_functions(functions)
    for name, func in functions.items():
        writer.add_function(name, func)
    if (metadata := model_metadata(mod)) is not None:
        writer.definitions.append(model_metadata_text(metadata))
        writer.symbols.append(FUNCTION)
    return writer
