"""IRModule: functions by global name, with attributes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tvm.error import RuntimeTypeError, RuntimeValueError, TVMError, or_similar

from . import extension
from .attrs import DictAttrs, as_dict_attrs
from .expr import GlobalVar, RelayExpr
from .function import BaseFunc
from .node import Node, ignored, leaf
from .replace_global_vars import replace_global_vars
from .script_printer import Scriptable, ShownInNotebooks
from .span import SourceMap

_KEY_KINDS = (str, GlobalVar)


class IRModule(Scriptable, ShownInNotebooks, Node, key="IRModule"):
    """A program: functions of any level by their global variables.

    Parameters
    ----------
    functions : dict of GlobalVar or str to function, optional
    type_definitions : dict of GlobalTypeVar to TypeData, optional
    attrs : dict, optional
    global_infos : dict, optional
    source_map : SourceMap, optional
        The texts that the spans of its functions point into.
    """

    __slots__ = ("__name__",)  # of the definition that it was read from

    functions: dict[GlobalVar, BaseFunc] = leaf(default_factory=dict)
    type_definitions: dict[Any, Any] = leaf(default_factory=dict)
    attrs: DictAttrs = leaf(default=None, convert=as_dict_attrs)
    global_infos: dict[str, Any] = leaf(default_factory=dict)
    _names: dict[str, GlobalVar] = ignored(default_factory=dict)
    source_map: SourceMap = ignored(default_factory=SourceMap)

    def __init__(
        self,
        functions: Mapping[GlobalVar, BaseFunc] | Mapping[str, BaseFunc] | None = None,
        type_definitions: Mapping[Any, Any] | None = None,
        attrs: Mapping[str, Any] | DictAttrs | None = None,
        global_infos: Mapping[str, Any] | None = None,
        source_map: SourceMap | None = None,
    ) -> None:
        if not isinstance(functions or {}, Mapping):
            raise RuntimeTypeError(
                f"IRModule requires a dictionary of functions by name, got {type(functions).__name__}"
            )
        sources = SourceMap() if source_map is None else source_map
        types, infos = dict(type_definitions or {}), dict(global_infos or {})
        self._init({}, types, as_dict_attrs(attrs), infos, {}, sources)
        for name, function in (functions or {}).items():
            self[name] = function

    def clone(self) -> IRModule:
        """A module with the same functions that can be changed on its own."""
        return self._with(self.functions)

    def with_functions(self, functions: Mapping[GlobalVar, BaseFunc]) -> IRModule:
        """A copy with other functions; self if they are the very same ones."""
        before = self.functions
        if len(before) == len(functions) and all(
            [before.get(gvar) is function for gvar, function in functions.items()]
        ):
            return self
        return self._with(functions)

    def _with(self, functions: Mapping[GlobalVar, BaseFunc]) -> IRModule:
        return IRModule(
            functions, self.type_definitions, self.attrs, self.global_infos, self.source_map
        )

    def map_functions(self, f: Callable[[GlobalVar, BaseFunc], BaseFunc]) -> IRModule:
        """A copy with ``f`` applied to each function; self if none changed."""
        return self.with_functions({g: f(g, function) for g, function in self.functions.items()})

    def functions_items(self) -> list[tuple[GlobalVar, BaseFunc]]:
        """Global variables and functions, by name."""
        return sorted(self.functions.items(), key=lambda item: item[0].name_hint)

    def __setitem__(self, var: Any, val: Any) -> None:
        """Add or replace a function, or define a type."""
        if not isinstance(var, _KEY_KINDS):
            self.type_definitions[var] = val
            return
        if isinstance(val, GlobalVar):
            val = self[val]
        if not isinstance(val, BaseFunc):
            if (build := extension.module_of.find(type(val))) is None:
                raise TVMError(f"IRModule requires a function for {var}, got {type(val).__name__}")
            val = build(val, None, None)["main"]
        gvar = self._names.get(var) if isinstance(var, str) else var
        if gvar is None:
            gvar = GlobalVar(str(var))
        known = self._names.get(gvar.name_hint)
        if known is not None and known is not gvar:
            del self.functions[known]
        self._names[gvar.name_hint] = gvar
        self.functions[gvar] = val

    def __getitem__(self, var: Any) -> Any:
        """A function by name or global variable, or a type definition.

        Raises
        ------
        ValueError
            If there is none; the message has similar names.
        """
        if not isinstance(var, _KEY_KINDS):
            return self.type_definitions[var]
        name = var if isinstance(var, str) else var.name_hint
        gvar = self._names.get(name)
        if gvar is None:
            raise RuntimeValueError(
                f"no function is called {name!r}, there are {list(self._names)}"
                f"{or_similar(name, self._names)}"
            )
        return self.functions[gvar]

    def __contains__(self, var: object) -> bool:
        name = var.name_hint if isinstance(var, GlobalVar) else var
        return name in self._names

    def __delitem__(self, var: GlobalVar | str) -> None:
        gvar = self.get_global_var(var if isinstance(var, str) else var.name_hint)
        del self._names[gvar.name_hint]
        del self.functions[gvar]

    def update(self, other: IRModule | Mapping[Any, Any]) -> None:
        """Add the functions of another module."""
        functions = other.functions if isinstance(other, IRModule) else other
        for var, function in functions.items():
            self[var] = function
        if isinstance(other, IRModule):
            self.type_definitions.update(other.type_definitions)

    def update_func(self, var: GlobalVar, func: BaseFunc) -> None:
        """Replace one function."""
        self[var] = func

    def update_global_info(self, name: str, global_info: Any) -> None:
        """Set one entry of the global information."""
        self.global_infos[name] = global_info

    def get_global_var(self, name: str) -> GlobalVar:
        """The global variable of that name.

        Raises
        ------
        ValueError
            If there is none; the message has similar names.
        """
        self[name]
        return self._names[name]

    def get_global_vars(self) -> list[GlobalVar]:
        """All global variables."""
        return list(self.functions)

    def replace_global_vars(
        self, replacements: Mapping[GlobalVar | str, GlobalVar | str]
    ) -> IRModule:
        """A module whose functions have other names, in calls and in ``global_symbol`` too.

        Parameters
        ----------
        replacements : dict of GlobalVar or str to GlobalVar or str
            Old names to new ones, replaced at once, so that two functions may swap names. A new
            name that is a string has the type of the old variable.

        Returns
        -------
        IRModule
            Self if nothing is replaced.

        Raises
        ------
        ValueError
            If there is no function of an old name, or two functions would have one name.
        """
        pairs: dict[GlobalVar, GlobalVar] = {}
        for old, new in replacements.items():
            before = self.get_global_var(old) if isinstance(old, str) else old
            pairs[before] = before.renamed(new) if isinstance(new, str) else new
        return self.with_functions(replace_global_vars(self.functions, pairs))

    def get_global_type_vars(self) -> list[Any]:
        """All global type variables."""
        return list(self.type_definitions)

    def get_global_type_var(self, name: str) -> Any:
        """The global type variable of that name."""
        for var in self.type_definitions:
            if var.name_hint == name:
                return var
        names = [var.name_hint for var in self.type_definitions]
        raise RuntimeValueError(
            f"no type is called {name!r}, there are {names}{or_similar(name, names)}"
        )

    def get_type(self, name: str) -> tuple[Any, ...]:
        """A type's global variable, then its constructors."""
        var = self.get_global_type_var(name)
        return (var, *self.type_definitions[var].constructors)

    def get_constructor(self, tag: int) -> Any:
        """The constructor that has a tag; tags are unique in a module."""
        for data in self.type_definitions.values():
            for constructor in data.constructors:
                if int(constructor.tag) == int(tag):
                    return constructor
        raise RuntimeValueError(f"no constructor of the module has the tag {tag}")

    @staticmethod
    def from_expr(
        expr: RelayExpr,
        functions: Mapping[GlobalVar, BaseFunc] | None = None,
        type_defs: Mapping[Any, Any] | None = None,
    ) -> IRModule:
        """A module whose ``main`` is ``expr``: a function, or an expression made one."""
        if (build := extension.module_of.find(type(expr))) is not None:
            return build(expr, functions, type_defs)
        module = IRModule(functions, type_defs)
        name = expr.attrs.get("global_symbol", "main") if isinstance(expr, BaseFunc) else "main"
        module[name] = expr
        return module

    def import_from_std(self, file_to_import: str) -> None:
        """Add the definitions of a file of the language's library: `prelude.rly`."""
        extension.add_library.required(self, file_to_import)

    def get_attr(self, attr_key: str) -> Any:
        """The value of an attribute, or None."""
        return self.attrs.get(attr_key)

    def with_attr(self, attr_key: str, attr_value: Any) -> IRModule:
        """A copy with one attribute set."""
        return self.with_attrs({attr_key: attr_value})

    def with_attrs(self, attr_map: Mapping[str, Any]) -> IRModule:
        """A copy with some attributes set."""
        attrs = self.attrs.with_values(attr_map)
        return IRModule(self.functions, self.type_definitions, attrs, self.global_infos)

    def without_attr(self, attr_key: str) -> IRModule:
        """A copy without one attribute."""
        attrs = self.attrs.without(attr_key)
        return IRModule(self.functions, self.type_definitions, attrs, self.global_infos)

    def astext(self, show_meta_data: bool = True, annotate: Any = None) -> str:
        """The module as text."""
        text = extension.module_text.function
        return str(self) if text is None else text(self, show_meta_data, annotate)
