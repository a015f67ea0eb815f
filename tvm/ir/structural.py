"""Structural equality and hashing, read off the roles of fields.

Two programs are equal if they differ only in the names of bound variables, in spans and in
other ignored fields. A variable is equal to the one it is bound together with; a free variable
only to itself, unless ``map_free_vars`` is set.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from enum import Enum
from functools import lru_cache
from typing import Any

from tvm.error import TVMError
from tvm.runtime.object_generic import ObjectGeneric
from tvm.runtime.object_path import ObjectPath
from tvm.support import deep

from . import extension
from .codegen import is_node
from .script_printer import Scriptable

# how far floats of equal programs may be apart in an assertion
NEAR = 1e-9


def structural_equal(lhs: Any, rhs: Any, map_free_vars: bool = False) -> bool:
    """Whether two nodes, or containers of nodes, have the same structure.

    Parameters
    ----------
    lhs, rhs : node, tuple, dict or plain value
    map_free_vars : bool
        Let free variables of equal type stand for each other, one to one.
    """
    return lhs is rhs or _compare(lhs, rhs, map_free_vars) is None


def get_first_structural_mismatch(
    lhs: Any, rhs: Any, map_free_vars: bool = False
) -> tuple[ObjectPath, ObjectPath] | None:
    """The paths to the first difference in both values, such as ``<root>.body.extent``.

    Returns
    -------
    tuple of ObjectPath, or None
        None if they are equal.
    """
    return _paths(_compare(lhs, rhs, map_free_vars))


def _paths(path: list[_Steps] | None) -> tuple[ObjectPath, ObjectPath] | None:
    """The way to a mismatch in both values."""
    if path is None:
        return None
    ways = ObjectPath.root(), ObjectPath.root()
    for steps in reversed(path):
        left, right = [
            getattr(w, name)(*args) for w, (name, *args) in zip(ways, steps, strict=True)
        ]
        ways = left, right
    return ways


def assert_structural_equal(lhs: Any, rhs: Any, map_free_vars: bool = False) -> None:
    """Raise an error that shows the first difference unless the two are structurally equal.

    Numbers with a fraction may differ by 1e-9, as those do that went through single precision.

    Raises
    ------
    ValueError
        With the path of the difference and both texts.
    """
    mismatch = _paths(_compare(lhs, rhs, map_free_vars, _NearComparison))
    if mismatch is not None:
        left, right = mismatch
        # programs search the message for the name of the class
        raise ValueError(
            f"ValueError: StructuralEqual check failed, caused by lhs at {left}:\n"
            f"{_text(lhs, left)}\nand rhs at {right}:\n{_text(rhs, right)}"
        )


def _text(value: Any, path: ObjectPath) -> str:
    """The text of a value with the part at a path underlined."""
    if extension.script.function is None or not isinstance(value, Scriptable):
        return str(value)
    return value.script(path_to_underline=[path], syntax_sugar=False)


@deep
def structural_hash(node: Any, map_free_vars: bool = False) -> int:
    """A 64-bit hash, the same in every process, equal for structurally equal values."""
    return _Hasher(map_free_vars).value(node) & 0xFFFFFFFFFFFFFFFF


@deep
def _compare(
    lhs: Any, rhs: Any, map_free_vars: bool, kind: type[_Comparison] | None = None
) -> list[_Steps] | None:
    lhs, rhs = [v.asobject() if isinstance(v, ObjectGeneric) else v for v in (lhs, rhs)]
    comparison = (kind or _Comparison)(map_free_vars)
    return None if comparison.values(lhs, rhs) else comparison.path


def is_simple(value: Any) -> bool:
    """Whether nothing in the value could be paired with something else later: it is a leaf."""
    return not isinstance(value, (tuple, list, dict)) and (
        not is_node(value) or type(value).visit_with is None
    )


def _is_variable(cls: type) -> bool:
    return getattr(cls, "structural", None) == "variable"


# how both paths go on: a method of `ObjectPath` and its arguments
_Step = tuple[Any, ...]
_Steps = tuple[_Step, _Step]


def _both(*step: Any) -> _Steps:
    return step, step


class _Comparison:
    """One run of comparing; ``path`` holds the way to a mismatch, innermost first."""

    def __init__(self, map_free_vars: bool) -> None:
        self.map_free = map_free_vars
        self.left: dict[int, tuple[Any, Any]] = {}  # id(lhs) -> (lhs, rhs) known to be equal
        self.right: dict[int, Any] = {}  # id(rhs) -> lhs, for what must map one to one
        self.path: list[_Steps] = []

    def values(self, a: Any, b: Any) -> bool:
        if is_node(a):
            return type(a) is type(b) and self.nodes(a, b)
        if isinstance(a, (tuple, list)):
            return isinstance(b, (tuple, list)) and self.sequences(a, b)
        if isinstance(a, dict):
            return isinstance(b, dict) and self.mappings(a, b)
        return _plain_equal(a, b)

    def nodes(self, a: Any, b: Any) -> bool:
        known = self.left.get(id(a))
        if known is not None:
            return bool(known[1] is b)
        cls = type(a)
        if _is_variable(cls):
            return self.variables(a, b)
        if not self.fields(a, b):
            return False
        return self.bind(a, b) if _is_shared_or_copied(a) else True

    def fields(self, a: Any, b: Any) -> bool:
        for name, binds in type(a).compared:
            x, y = getattr(a, name), getattr(b, name)
            if x is y and not binds and not self.left and not self.map_free and is_simple(x):
                continue
            if not (self.definitions(x, y) if binds else self.values(x, y)):
                self.path.append(_both("attr", name))
                return False
        return True

    def sequences(self, a: Any, b: Any) -> bool:
        return self.elements(a, b, self.values)

    def elements(self, a: Any, b: Any, same: Callable[[Any, Any], bool]) -> bool:
        """Whether all elements are the same, and there are as many of them."""
        for index in range(min(len(a), len(b))):
            if not same(a[index], b[index]):
                self.path.append(_both("array_index", index))
                return False
        if len(a) == len(b):
            return True
        index = min(len(a), len(b))
        there, missing = ("array_index", index), ("missing_array_element", index)
        self.path.append((missing, there) if len(a) < len(b) else (there, missing))
        return False

    def mappings(self, a: dict[Any, Any], b: dict[Any, Any]) -> bool:
        """Keys are matched as variables or as plain values."""
        matched = []
        named = {k.name_hint: k for k in b if hasattr(k, "name_hint")}
        for key, x in a.items():
            other = self.counterpart(key, b, named)
            y = None if other is None else b[other]
            if is_node(x) is not is_node(y):
                x, y = _number(x), _number(y)
            if other is None or not self.values(x, y):
                there = ("map_value", key)
                missing = ("missing_map_entry",) if other is None else ("map_value", other)
                self.path.append((there, missing))
                return False
            matched.append(other)
        left = [key for key in b if key not in matched] if len(a) < len(b) else []
        if left:
            self.path.append((("missing_map_entry",), ("map_value", left[0])))
        return not left

    def counterpart(self, key: Any, b: dict[Any, Any], named: dict[str, Any]) -> Any:
        """The key of ``b`` that stands for ``key``: bound with it, of its name, or equal to it."""
        if not is_node(key):
            return key if key in b else None
        if id(key) in self.left:
            return self.left[id(key)][1]
        candidates = [named.get(key.name_hint)] if hasattr(key, "name_hint") else list(b)
        for other in candidates:
            if other is not None and self.values(key, other):
                return other
        self.path.clear()
        return None

    def definitions(self, a: Any, b: Any) -> bool:
        """Variables that are bound here: equal if their types are, and from now on."""
        if isinstance(a, (tuple, list)):
            return isinstance(b, (tuple, list)) and self.elements(a, b, self.definitions)
        if isinstance(a, dict):
            free, self.map_free = self.map_free, True
            same = isinstance(b, dict) and self.mappings(a, b)
            self.map_free = free
            return same
        if not is_node(a) or type(a) is not type(b) or not _is_variable(type(a)):
            return self.values_with_definitions(a, b)
        self.release(a, b)
        return self.definition(a, b)

    def values_with_definitions(self, a: Any, b: Any) -> bool:
        """The same, where a part that defines variables, such as a shape, may have new ones."""
        if getattr(type(a), "structural", None) != "definitions":
            return self.values(a, b)
        free, self.map_free = self.map_free, True
        same = self.values(a, b)
        self.map_free = free
        return same

    def release(self, a: Any, b: Any) -> None:
        """Forget what the two stood for: a second loop over a variable binds it anew."""
        known = self.left.get(id(a))
        if known is None or known[1] is not b:
            if known is not None:
                del self.left[id(a)], self.right[id(known[1])]
            if (other := self.right.pop(id(b), None)) is not None:
                self.left.pop(id(other), None)

    def definition(self, a: Any, b: Any) -> bool:
        """A variable with its counterpart, which it may have already."""
        known = self.left.get(id(a))
        if known is not None:
            return bool(known[1] is b)
        free, self.map_free = self.map_free, True
        same = self.types_of_variables(a, b)
        self.map_free = free
        return same and self.bind(a, b)

    def variables(self, a: Any, b: Any) -> bool:
        if a is b and id(b) not in self.right:
            return self.bind(a, b)
        if id(b) in self.right:
            return False
        if not self.map_free and len(type(a).children(a)) == 0:
            return False
        return self.types_of_variables(a, b) and self.bind(a, b)

    def types_of_variables(self, a: Any, b: Any) -> bool:
        """Everything but the name: names are recorded as plain strings."""
        for name, binds in type(a).compared:
            x, y = getattr(a, name), getattr(b, name)
            same = self.definition if binds else self.values
            if name not in ("name", "name_hint", "vid") and not same(x, y):
                self.path.append(_both("attr", name))
                return False
        return True

    def bind(self, a: Any, b: Any) -> bool:
        if self.right.get(id(b), a) is not a:
            return False
        self.left[id(a)] = (a, b)
        self.right[id(b)] = a
        return True


def _is_shared_or_copied(node: Any) -> bool:
    """Whether one node used in two places is another program than two equal ones.

    Expressions of graphs are, but for those without operands: constants and `()`.
    """
    return getattr(type(node), "graph_node", False) and bool(type(node).children(node))


def _number(value: Any) -> Any:
    """A number for a literal: attributes have one or the other."""
    if not is_node(value) or value.type_key not in _LITERALS:
        return value
    return bool(value.value) if value.dtype.is_bool else value.value


_LITERALS = ("IntImm", "FloatImm")


class _NearComparison(_Comparison):
    """The same, with floats that are nearly equal."""

    def values(self, a: Any, b: Any) -> bool:
        if type(a) is float and type(b) is float and abs(a - b) < NEAR:
            return True
        return super().values(a, b)


def _plain_equal(a: Any, b: Any) -> bool:
    if a is b:
        return True
    if isinstance(a, str):
        return isinstance(b, str) and a == b
    if hasattr(a, "numpy") and hasattr(b, "numpy"):
        x, y = a.numpy(), b.numpy()
        return bool(x.dtype == y.dtype and x.shape == y.shape and x.tobytes() == y.tobytes())
    if type(a) is float and type(b) is float:
        return a == b or (a != a and b != b)
    return type(a) is type(b) and bool(a == b)


class _Hasher:
    """Hashes of tuples of integers do not depend on the process; texts go through a checksum."""

    def __init__(self, map_free_vars: bool) -> None:
        self.map_free = map_free_vars
        self.known: dict[int, tuple[Any, int]] = {}
        self.bound = 0
        self.graph_nodes = 0  # met so far: their numbers tell one used twice from two equal ones

    def value(self, value: Any) -> int:
        if is_node(value):
            return self.node(value)
        if isinstance(value, (tuple, list)):
            return hash((7, *[self.value(item) for item in value]))
        if isinstance(value, dict):
            # variables are numbered in the order met: functions of a module go by name
            items = sorted(value.items(), key=lambda item: getattr(item[0], "name_hint", ""))
            pairs = [(self.value(key), self.value(_number(item))) for key, item in items]
            return hash((11, *sorted(pairs)))
        return _plain_hash(value)

    def node(self, node: Any) -> int:
        known = self.known.get(id(node))
        if known is not None:
            return known[1]
        if _is_variable(type(node)):
            return self.variable(node)
        key = _text_hash(node.type_key)
        parts = [
            self.definition(getattr(node, name)) if binds else self.value(getattr(node, name))
            for name, binds in type(node).compared
        ]
        result = hash((key, *parts))
        if _is_shared_or_copied(node):
            self.graph_nodes += 1
            result = hash((result, self.graph_nodes))
        return self.remember(node, result)

    def definition(self, value: Any) -> int:
        if isinstance(value, (tuple, list)):
            return hash((7, *[self.definition(item) for item in value]))
        if is_node(value) and _is_variable(type(value)):
            self.known.pop(id(value), None)  # bound anew, as it is for equality
            return self.number(value)
        if getattr(type(value), "structural", None) != "definitions":
            return self.value(value)
        free, self.map_free = self.map_free, True
        result = self.value(value)
        self.map_free = free
        return result

    def variable(self, variable: Any) -> int:
        if self.map_free or len(type(variable).children(variable)):
            return self.number(variable)
        # a free variable is equal to itself alone; its name is a fair hash
        name = self.value(getattr(variable, "name_hint", None) or getattr(variable, "name", ""))
        return self.remember(variable, hash((13, name, self.types(variable, named=True))))

    def number(self, variable: Any) -> int:
        if (known := self.known.get(id(variable))) is not None:
            return known[1]
        kind = self.types(variable, named=False)
        if getattr(type(variable), "hashed_by_kind", False):
            return self.remember(variable, hash((19, kind)))
        self.bound += 1
        return self.remember(variable, hash((17, self.bound, kind)))

    def types(self, variable: Any, named: bool) -> int:
        names = () if named else ("name", "name_hint", "vid")
        free, self.map_free = self.map_free, True
        parts = [
            self.value(getattr(variable, name))
            for name, _ in type(variable).compared
            if name not in names
        ]
        self.map_free = free
        return hash((_text_hash(variable.type_key), *parts))

    def remember(self, node: Any, result: int) -> int:
        self.known[id(node)] = (node, result)
        return result


@lru_cache(maxsize=65536)
def _text_hash(text: str) -> int:
    data = text.encode()
    return zlib.crc32(data) << 32 | zlib.adler32(data)


_PLAIN_HASHES: dict[type, Callable[[Any], int]] = {
    int: lambda value: hash((1, value)),
    float: lambda value: hash((2, value if value == value else 0)),
    bool: lambda value: hash((3, value)),
    type(None): lambda value: 5,
}


def _plain_hash(value: Any) -> int:
    direct = _PLAIN_HASHES.get(type(value))
    if direct is not None:
        return direct(value)
    if isinstance(value, Enum):
        return hash((19, _text_hash(str(value))))
    if isinstance(value, str):
        return _text_hash(str(value))
    if isinstance(value, bytes):
        return zlib.crc32(value)
    if hasattr(value, "numpy"):
        array = value.numpy()
        return hash((_text_hash(str(array.dtype)), *array.shape, zlib.crc32(array.tobytes())))
    if hasattr(value, "structural_name"):
        return _text_hash(value.structural_name)
    if callable(value):
        return _text_hash(getattr(value, "__qualname__", type(value).__qualname__))
    raise TVMError(f"structural_hash requires nodes and plain values, got {type(value).__name__}")
