"""Straight-line methods of a node class, generated from its fields.

For ``BufferLoad(buffer, indices)`` the text compiled here reads

    def map_children(self, f):
        indices_ = self.indices
        indices = map_sequence(indices_, f)
        if indices is indices_:
            return self
        return make(self.buffer, indices, self.span)
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .node import Field


# compiled together, when a method of the group is first used: most classes of a run are never
# walked, and importing the package makes few nodes
_BUILDING = ("__init__", "_init", "_make")
_WALKING = (
    "children", "map_children", "rewrite_with", "rewrite_inline", "visit_with", "visit_inline",
)  # fmt: skip
_CALLED_BY_VISITORS = _WALKING[2:]
_FLOWING = ("operands", "with_operands")
# a class with no children and no method of the visitor's has no entry: the node itself is kept
_DISPATCH = "dispatch"


def generate_methods(cls: Any, fields: Sequence[Field]) -> dict[str, Any]:
    """The methods that the fields of ``cls`` determine, each compiled at its first use."""
    stored = [f for f in fields if f.expression is None]
    methods: dict[str, Any] = {
        **{name: _Uncompiled(cls, name, fields, _BUILDING) for name in _BUILDING},
        **{name: _Uncompiled(cls, name, fields, _WALKING) for name in _WALKING},
        **{name: _Uncompiled(cls, name, fields, _FLOWING) for name in _FLOWING},
    }
    if _has_custom_init(cls):
        del methods["__init__"]
    elif not any(f.convert for f in stored) and not hasattr(cls, "__check__"):
        methods["_make"] = cls
    if not any(f.role.value == "child" for f in stored):
        methods.update(dict.fromkeys(_CALLED_BY_VISITORS))
    return methods


class _Uncompiled:
    """Stands in a class for a method that nobody has used."""

    def __init__(self, cls: Any, name: str, fields: Sequence[Field], group: tuple[str, ...]):
        self.cls = cls
        self.name = name
        self.fields = fields
        self.group = group

    def __get__(self, instance: Any, owner: Any) -> Any:
        compiled = _compile_group(self.cls, self.fields, self.group)
        for name, function in compiled.items():
            if isinstance(self.cls.__dict__.get(name), _Uncompiled):
                setattr(self.cls, name, function)
        found = compiled[self.name]
        return None if found is None else found.__get__(instance, owner)


def _compile_group(cls: Any, fields: Sequence[Field], group: tuple[str, ...]) -> dict[str, Any]:
    stored = [f for f in fields if f.expression is None]
    children = [f for f in stored if f.role.value == "child"]
    if group is _FLOWING:
        kinds = {f.name: _operand_kind(cls, f) for f in stored}
        if not any(kinds.values()):
            return dict.fromkeys(group)
        body = _operands_source(stored, kinds)
    elif group is _BUILDING:
        body = [
            *_init_source("__init__", fields, converting=True, check=hasattr(cls, "__check__")),
            *_init_source("_init", fields, converting=False, check=False),
            *_make_source(fields),
        ]
    else:
        parts = stored, children, "__rebuilt__" if hasattr(cls, "__rebuilt__") else "_make"
        body = [
            *_children_source(children),
            *_map_source("map_children(self, f)", "", *parts),
            *_map_source("rewrite_with(rewriter, self)", "f = rewriter.visit", *parts),
            *_map_source("rewrite_inline(rewriter, self)", _DISPATCH, *parts),
            *_visit_source("visit_with(visitor, self)", "f = visitor.visit", children),
            *_visit_source("visit_inline(visitor, self)", _DISPATCH, children),
        ]
    parameters = ", ".join(["cls", "new", "map_sequence", "map_mapping", "map_nested", "collect",
                            "visit_nested", "part_operands", "rebuilt_part",
                            *(f"default_{f.name}" for f in stored),
                            *(f"convert_{f.name}" for f in stored)])  # fmt: skip
    lines = [*body, f"return {', '.join(group)}"]
    source = f"def build({parameters}):\n" + "".join(f"    {line}\n" for line in lines)
    scope: dict[str, Any] = {}
    code = compile(source, f"<node {cls.__module__}.{cls.__name__}>", "exec")
    exec(code, sys.modules[cls.__module__].__dict__, scope)
    functions: dict[str, Any] = dict(zip(group, scope["build"](
        cls, cls.__new__, map_sequence, map_mapping, map_nested, collect_nested, visit_nested,
        part_operands, rebuilt_part,
        *[f.default_factory or f.default for f in stored],
        *[f.convert for f in stored],
    ), strict=True))  # fmt: skip
    for name, function in functions.items():
        function.__qualname__ = f"{cls.__qualname__}.{name}"
        function.__module__ = cls.__module__
    if group is _BUILDING:
        functions["__init__"].__generated__ = True
    for name in ("_make", *_CALLED_BY_VISITORS, *_FLOWING):
        if name in functions:
            functions[name] = staticmethod(functions[name])
    return functions


def _has_custom_init(cls: Any) -> bool:
    """Whether the class or a base below Node writes its own ``__init__``."""
    init = next(base.__dict__["__init__"] for base in cls.__mro__ if "__init__" in base.__dict__)
    generated = isinstance(init, _Uncompiled) or getattr(init, "__generated__", False)
    return init is not object.__init__ and not generated


def _parameters(fields: Sequence[Field]) -> str:
    texts = []
    for field in fields:
        if field.expression is not None:
            continue
        if field.required:
            texts.append(field.name)
        elif field.default_factory is not None:
            texts.append(f"{field.name}=None")
        else:
            texts.append(f"{field.name}=default_{field.name}")
    return ", ".join(texts)


def _assignments(fields: Sequence[Field]) -> list[str]:
    return [f"    self.{f.name} = {f.expression or f.name}" for f in fields]


def _init_source(name: str, fields: Sequence[Field], *, converting: bool, check: bool) -> list[str]:
    lines = [f"def {name}(self, {_parameters(fields)}):"]
    for field in fields:
        if field.default_factory is not None:
            lines.append(f"    if {field.name} is None: {field.name} = default_{field.name}()")
        if converting and field.convert is not None:
            lines.append(f"    {field.name} = convert_{field.name}({field.name})")
    lines += _assignments(fields) or ["    pass"]
    if check:
        lines.append("    self.__check__()")
    return lines


def _make_source(fields: Sequence[Field]) -> list[str]:
    defaults = [
        f"    if {f.name} is None: {f.name} = default_{f.name}()"
        for f in fields
        if f.default_factory is not None
    ]
    return [
        f"def _make({_parameters(fields)}):",
        *defaults,
        "    self = new(cls)",
        *_assignments(fields),
        "    return self",
    ]


def _children_source(children: Sequence[Field]) -> list[str]:
    lines = ["def children(self):"]
    if all(f.shape.value == "one" for f in children):
        return [*lines, f"    return [{', '.join(f'self.{f.name}' for f in children)}]"]
    lines.append("    out = []")
    for f in children:
        value = f"self.{f.name}"
        lines.append(
            {
                "one": f"    out.append({value})",
                "optional": f"    if {value} is not None: out.append({value})",
                "sequence": f"    out.extend({value})",
                "mapping": f"    out.extend({value}.values())",
                "nested": f"    collect({value}, out)",
            }[f.shape.value]
        )
    return [*lines, "    return out"]


def _map_source(
    head: str, setup: str, stored: Sequence[Field], children: Sequence[Field], make: str
) -> list[str]:
    """A method that rebuilds the node from rewritten children.

    A class whose ``__rebuilt__`` takes the fields says itself what becomes of them.
    The inline form dispatches on a child's class itself, which saves a call a node; it stands
    for ``rewriter.visit`` where no class overrides that.
    """
    lines = [f"def {head}:"]
    if not children:
        return [*lines, "    return self"]
    inline = setup is _DISPATCH
    if inline:
        lines.append("    dispatch = rewriter._dispatch")
        if any(f.shape.value not in ("one", "optional") for f in children):
            lines.append("    f = rewriter.visit")
    elif setup:
        lines.append(f"    {setup}")
    for f in children:
        old, new = f"{f.name}_", f.name
        lines.append(f"    {old} = self.{f.name}")
        if inline and f.shape.value in ("one", "optional"):
            absent = f" if {old} is not None else None" if f.shape.value == "optional" else ""
            lines.append(f"    f_{new} = dispatch[type({old})]{absent}")
            lines.append(f"    {new} = {old} if f_{new} is None else f_{new}(rewriter, {old})")
            continue
        lines.append(
            {
                "one": f"    {new} = f({old})",
                "optional": f"    {new} = None if {old} is None else f({old})",
                "sequence": f"    {new} = map_sequence({old}, f)",
                "mapping": f"    {new} = map_mapping({old}, f)",
                "nested": f"    {new} = map_nested({old}, f)",
            }[f.shape.value]
        )
    unchanged = " and ".join(f"{f.name} is {f.name}_" for f in children)
    names = {f.name for f in children}
    values = ", ".join(f.name if f.name in names else f"self.{f.name}" for f in stored)
    return [*lines, f"    if {unchanged}: return self", f"    return self.{make}({values})"]


def _visit_source(head: str, setup: str, children: Sequence[Field]) -> list[str]:
    lines = [f"def {head}:"]
    if not children:
        return [*lines, "    return None"]
    inline = setup is _DISPATCH
    lines.append("    dispatch = visitor._dispatch" if inline else f"    {setup}")
    if inline and any(f.shape.value not in ("one", "optional") for f in children):
        lines.append("    f = visitor.visit")
    for f in children:
        value = f"self.{f.name}"
        if inline and f.shape.value in ("one", "optional"):
            lines.append(f"    item = {value}")
            lines.append("    method = None if item is None else dispatch[type(item)]")
            lines.append("    if method is not None: method(visitor, item)")
            continue
        lines.append(
            {
                "one": f"    f({value})",
                "optional": f"    if {value} is not None: f({value})",
                "sequence": f"    for item in {value}: f(item)",
                "mapping": f"    for item in {value}.values(): f(item)",
                "nested": f"    visit_nested({value}, f)",
            }[f.shape.value]
        )
    return lines


def _operand_kind(cls: Any, field: Field) -> str:
    """What the nodes in a field are to `operands`, by the class that the annotation names."""
    if field.role.value not in ("child", "binder"):
        return ""
    scopes = [sys.modules[base.__module__].__dict__ for base in cls.__mro__]
    for name in re.findall(r"\w+", field.annotation):
        for scope in scopes:
            if (kind := getattr(scope.get(name), "operand_kind", None)) is not None:
                return str(kind)
    return ""


def _operands_source(stored: Sequence[Field], kinds: Mapping[str, str]) -> list[str]:
    """``operands(self)`` and ``with_operands(self, new)``, which takes them in the same order."""
    read = []
    for f in stored:
        is_sequence = f.shape.value == "sequence"
        if kinds[f.name] == "operand":
            read.append(f"*self.{f.name}" if is_sequence else f"self.{f.name}")
        elif kinds[f.name]:
            parts = f"self.{f.name}" if is_sequence else f"(self.{f.name},)"
            read.append(f"*[e for part in {parts} for e in part_operands(part)]")
    only = read[0].removeprefix("*")
    # the field is a tuple already
    result = only if len(read) == 1 and read[0] == f"*{only}" and "[" not in only else None
    return [
        f"def operands(self): return {result or '(' + ', '.join(read) + ',)'}",
        "def with_operands(self, new):",
        "    new = iter(new)",
        f"    return self._make({', '.join([_taken(f, kinds[f.name]) for f in stored])})",
    ]


def _taken(field: Field, kind: str) -> str:
    """A field over the next of the new operands."""
    value, is_sequence = f"self.{field.name}", field.shape.value == "sequence"
    if not kind:
        return value
    if kind == "operand":
        return f"tuple([next(new) for _ in {value}])" if is_sequence else "next(new)"
    if is_sequence:
        return f"tuple([rebuilt_part(part, new) for part in {value}])"
    return f"rebuilt_part({value}, new)"


def part_operands(part: Any) -> tuple[Any, ...]:
    """The expressions in a node that is none itself, such as a clause of a match."""
    read = type(part).operands
    return () if read is None else read(part)


def rebuilt_part(part: Any, new: Iterator[Any]) -> Any:
    """The part over the next expressions of `new`; itself if they are its own."""
    old = part_operands(part)
    above = [next(new) for _ in old]
    if all([before is after for before, after in zip(old, above, strict=True)]):
        return part
    return type(part).with_operands(part, above)


def map_sequence(items: tuple[Any, ...], f: Callable[[Any], Any]) -> tuple[Any, ...]:
    """``tuple(f(x))``, or the very same tuple if nothing changed."""
    new = [f(item) for item in items]
    for before, after in zip(items, new):  # noqa: B905 - lengths agree, and strict costs
        if before is not after:
            return tuple(new)
    return items


def map_mapping(items: dict[Any, Any], f: Callable[[Any], Any]) -> dict[Any, Any]:
    """A dict with ``f`` applied to the values, or the very same dict if nothing changed."""
    new = {key: f(value) for key, value in items.items()}
    for before, after in zip(items.values(), new.values()):  # noqa: B905
        if before is not after:
            return new
    return items


def map_nested(value: Any, f: Callable[[Any], Any]) -> Any:
    """Apply ``f`` to the nodes in nested tuples and dicts; identity if nothing changed."""
    if isinstance(value, tuple):
        return map_sequence(value, _Nested(f).map)
    if isinstance(value, dict):
        return map_mapping(value, _Nested(f).map)
    return f(value) if is_node(value) else value


def is_node(value: Any) -> bool:
    """Whether the value is an IR node (its class has declared fields)."""
    return hasattr(type(value), "visit_name")


def collect_nested(value: Any, out: list[Any]) -> None:
    """Append the nodes in nested tuples and dicts to ``out``."""
    visit_nested(value, out.append)


def visit_nested(value: Any, visit: Callable[[Any], Any]) -> None:
    """Call ``visit`` with the nodes in nested tuples and dicts."""
    if isinstance(value, (tuple, list)):
        for item in value:
            visit_nested(item, visit)
    elif isinstance(value, dict):
        for item in value.values():
            visit_nested(item, visit)
    elif is_node(value):
        visit(value)


@dataclass(frozen=True)
class _Nested:
    f: Callable[[Any], Any]

    def map(self, value: Any) -> Any:
        return map_nested(value, self.f)
