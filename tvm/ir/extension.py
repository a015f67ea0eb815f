"""What the layers above tell the kernel: each extension once, typed, with who provides it.

    extension.make_dimension.provide(const)          # in tvm.tir, which defines the literals
    extension.make_dimension.function(4)             # in tvm.ir, which needs one

The kernel so imports nothing above itself. An extension of classes is looked up along the bases of a
class, and so provided for a language's base class once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from tvm.error import TVMError

if TYPE_CHECKING:
    from .expr import PrimExpr
    from .module import IRModule

F = TypeVar("F", bound=Callable[..., Any])


class Extension(Generic[F]):
    """A function that a layer above provides."""

    def __init__(self, provider: str) -> None:
        self.provider = provider
        self.function: F | None = None

    def provide(self, function: F) -> None:
        """Use that function from now on."""
        self.function = function

    @property
    def required(self) -> F:
        """The function; an error that says what to import, if nothing has provided it."""
        if self.function is None:
            raise TVMError(f"this requires {self.provider}: import {self.provider}")
        return self.function


class ClassExtension(Generic[F]):
    """A function for each class of objects that a layer above defines."""

    def __init__(self) -> None:
        self.functions: dict[type, F] = {}

    def provide(self, cls: type, function: F) -> None:
        """Use that function for objects of a class and of those derived from it."""
        self.functions[cls] = function

    def find(self, cls: type) -> F | None:
        """The function of the nearest base of a class that has one."""
        for base in cls.__mro__:
            if (function := self.functions.get(base)) is not None:
                return function
        return None


# ---- loop level: tvm.tir, tvm.arith, tvm.script

# the literal of a Python int in a shape
make_dimension: Extension[Callable[[int], PrimExpr]] = Extension("tvm.tir")
# whether dimensions of other forms are equal
are_equal_dimensions: Extension[Callable[[PrimExpr, PrimExpr], bool]] = Extension("tvm.arith")
# an expression in its simplest form
simplified: Extension[Callable[[PrimExpr], PrimExpr]] = Extension("tvm.arith")
# what an index map's new indices cover, from (map, ranges of the old ones); and its inverse, from
# (map, ranges, whether there may be no padding): new variables, old indices, what is padding
mapped_ranges: Extension[Callable[[Any, Any], list[Any]]] = Extension("tvm.arith")
inverted_index_map: Extension[Callable[[Any, Any, bool], tuple[Any, Any, PrimExpr]]] = Extension(
    "tvm.arith"
)
# the TVMScript of a node, from it and the printer's options
script: Extension[Callable[..., str]] = Extension("tvm.script")
# prints a text in colour, from (text, style, whether it is formatted by black first)
print_script: Extension[Callable[[str, str | None, bool], None]] = Extension("tvm.script")
# a text as HTML
script_html: Extension[Callable[[str], str]] = Extension("tvm.script")

# ---- graph level: tvm.relay

# the text of a module and of an expression, from (it, show_meta_data, annotate)
module_text: Extension[Callable[[IRModule, bool, Any], str]] = Extension("tvm.relay")
expression_text: Extension[Callable[[Any, bool, Any], str]] = Extension("tvm.relay")
# adds the definitions of a library's file, from (module, file name)
add_library: Extension[Callable[[IRModule, str], None]] = Extension("tvm.relay")
# the module of an expression, from (expr, functions, type definitions)
module_of: ClassExtension[Callable[[Any, Any, Any], IRModule]] = ClassExtension()
# the call of a global function, from (global variable, arguments)
global_call: Extension[Callable[[Any, tuple[Any, ...]], Any]] = Extension("tvm.relay")

# ---- tvm.target

# a target of what one is made of
as_target: Extension[Callable[[Any], Any]] = Extension("tvm.target")
# the target of the innermost `with` block, or None
current_target: Extension[Callable[[], Any]] = Extension("tvm.target")

# ---- graph level: tvm.relax

# the call of an expression, from (it, arguments, attributes or none); a field of it; the field of a DLTensor
relax_call: Extension[Callable[..., Any]] = Extension("tvm.relax")
relax_item: Extension[Callable[[Any, Any], Any]] = Extension("tvm.relax")
relax_inspect: Extension[Callable[[Any, str], Any]] = Extension("tvm.relax")
# the struct info that a function's own declaration gives
struct_info_of: ClassExtension[Callable[[Any], Any]] = ClassExtension()
# compiles a module with functions of a class, from (it, target, pipeline): an executable
compile_model: ClassExtension[Callable[[Any, Any, Any], Any]] = ClassExtension()
# whether one struct info describes all that another one does
is_base_of: Extension[Callable[[Any, Any], bool]] = Extension("tvm.relax")
# the function that says what a packed function returns
infer_by_sinfo_args: Extension[Callable[[], Any]] = Extension("tvm.relax")
# functions with variables bound: (function, by variable or name)
relax_bind_symbolic_vars: Extension[Callable[[Any, Any], Any]] = Extension("tvm.relax")
relax_bind_params: Extension[Callable[[Any, Any], Any]] = Extension("tvm.relax")
relax_inline: Extension[Callable[[Any, Any], Any]] = Extension("tvm.relax")

# the call of a global function with an argument of a class, from (global variable, arguments)
global_call_with: ClassExtension[Callable[[Any, tuple[Any, ...]], Any]] = ClassExtension()

# ---- every level

# `str` and `repr` of a node
printer: ClassExtension[Callable[[Any], str]] = ClassExtension()
