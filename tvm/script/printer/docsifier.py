"""From nodes to documents: what is being printed, what has a name there, who prints which class.

    @IRDocsifier.register(Add)
    def print_add(node: Add, path: Path, d: IRDocsifier) -> Doc:
        return OperationDoc(OperationKind.Add, [d.expr(node.a, path.attr("a")), ...])

Languages register functions for their classes; a class without one has that of the nearest base.
"""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import Any, ClassVar, TypeVar

from tvm.error import TVMError
from tvm.ir.script_printer import PrinterConfig
from tvm.runtime.object_path import ObjectPath
from tvm.support.dtype import DType
from tvm.tir.expr import Var

from .doc import (
    AttrAccessDoc,
    Doc,
    ExprDoc,
    IdDoc,
    LiteralDoc,
    StmtBlockDoc,
    StmtDoc,
)
from .names import Names
from .usage import Usage

F = TypeVar("F", bound=Callable[..., Doc])


class _Untracked:
    """A path of which nobody asks: growing it costs nothing."""

    def attr(self, _: Any) -> _Untracked:
        return self

    array_index = map_value = attr


Path = ObjectPath | _Untracked
UNTRACKED = _Untracked()


class Frame:
    """Statements that are being collected, and the names that are visible in them."""

    def __init__(
        self, docsifier: IRDocsifier, node: Any, stmts: list[StmtDoc] | None = None
    ) -> None:
        self.node = node
        self.stmts: list[StmtDoc] = [] if stmts is None else stmts
        self.declarations: list[StmtDoc] = []  # those of the statements that declare free variables
        self.is_last = False  # nothing follows: what a statement binds may hold for the rest
        self._docsifier = docsifier
        self._defined: list[tuple[Any, str]] = []

    def __enter__(self) -> Frame:
        self._docsifier.frames.append(self)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._docsifier.frames.pop()
        for obj, name in self._defined:
            self._docsifier.forget(obj, name)

    def remember(self, obj: Any, name: str) -> None:
        """Forget a definition when the frame ends."""
        self._defined.append((obj, name))


class IRDocsifier:
    """Makes documents of nodes."""

    printers: ClassVar[dict[type, Callable[[Any, Any, Any], Doc]]] = {}

    def __init__(self, config: PrinterConfig) -> None:
        self.config = config
        self.frames: list[Frame] = []
        self.names = Names(
            [config.tir_prefix, config.ir_prefix, config.relax_prefix, config.module_alias]
        )
        self.usage = Usage()
        self.metadata: dict[str, list[Any]] = {}
        self.dialects: dict[str, None] = {}  # whose prefixes the text uses
        self.function_names: list[str] = []  # of the functions being printed, if they are given
        self.result_types: dict[Any, DType] = {}  # of calls of functions of the module
        # of relax: whether a module is printed, its devices, whether a signature is, functions around
        self.in_module = False
        self.vdevices: tuple[Any, ...] = ()
        self.in_signature = False
        self.nested = 0
        self.last_name = ""
        self.underlined: list[ObjectPath] = list(config.path_to_underline or ())
        self._docs: dict[Any, Callable[[], ExprDoc]] = {}
        self._found: dict[type, Callable[[Any, Any, Any], Doc]] = {}
        self._notes = _notes(config)
        self._marked = {id(obj) for obj in config.obj_to_underline or ()}
        self.root: Path = ObjectPath.root() if self._is_tracked() else UNTRACKED

    def _is_tracked(self) -> bool:
        config = self.config
        return bool(self.underlined or self._marked or self._notes or config.path_to_annotate)

    @classmethod
    def register(cls, *kinds: type) -> Callable[[F], F]:
        """Print nodes of some classes by a function of (node, path, docsifier)."""

        def add(function: F) -> F:
            for kind in kinds:
                cls.printers[kind] = function
            return function

        return add

    # ---- documents of nodes

    def doc(self, node: Any, path: Path) -> Doc:
        """The document of a node."""
        kind = type(node)
        method = self._found.get(kind)
        if method is None:
            method = self._found[kind] = self._printer_of(kind)
        result = method(node, path, self)
        if isinstance(path, ObjectPath):
            result.source_paths = (*result.source_paths, path)
            self._decorate(result, node, path)
        return result

    def expr(self, node: Any, path: Path) -> ExprDoc:
        """The document of a node that is an expression."""
        result = self.doc(node, path)
        if not isinstance(result, ExprDoc):
            raise TVMError(f"an expression is required in a script, got {type(node).__name__}")
        return result

    def _printer_of(self, kind: type) -> Callable[[Any, Any, Any], Doc]:
        for base in kind.__mro__:
            if (method := self.printers.get(base)) is not None:
                return method
        raise TVMError(f"a script has no text for {kind.__name__}")

    def _decorate(self, doc: Doc, node: Any, path: ObjectPath) -> None:
        if id(node) in self._marked:
            self.underlined.append(path)
        notes = [self._notes[id(node)]] if id(node) in self._notes else []
        notes += [note for p, note in (self.config.path_to_annotate or {}).items() if p == path]
        for note in notes:
            target = doc.stmts[0] if isinstance(doc, StmtBlockDoc) else doc
            if not isinstance(target, StmtDoc):
                raise ValueError(
                    f"a script annotates statements, got one for {type(node).__name__} at {path}"
                )
            target.comment = note if target.comment is None else f"{target.comment}\n{note}"

    def is_annotated(self, node: Any) -> bool:
        """Whether a note is asked for, which needs lines of its own."""
        return id(node) in self._notes

    # ---- words of a language

    def tir(self, name: str) -> AttrAccessDoc:
        """``T.name``"""
        self.dialects["tir"] = None
        return AttrAccessDoc(IdDoc(self.config.tir_prefix), name)

    def ir(self, name: str) -> AttrAccessDoc:
        """``I.name``"""
        self.dialects["ir"] = None
        return AttrAccessDoc(IdDoc(self.config.ir_prefix), name)

    def meta(self, node: Any, key: str | None = None) -> ExprDoc:
        """``metadata["key"][0]``: an object that has no text of its own, by default by its type's."""
        key = node.type_key if key is None else key
        known = self.metadata.setdefault(key, [])
        index = next((i for i, other in enumerate(known) if other is node), len(known))
        if index == len(known):
            known.append(node)
        return IdDoc("metadata")[LiteralDoc(key)][LiteralDoc(index)]

    # ---- names

    def frame(self, node: Any = None) -> Frame:
        """A frame for the statements inside a node."""
        return Frame(self, node)

    def rest_frame(self, node: Any) -> Frame:
        """A frame for the rest of a suite: its statements are those of the frame around it.

        If paths are tracked it has statements of its own, which are underlined together.
        """
        shared = None if isinstance(self.root, ObjectPath) else self.frames[-1].stmts
        return Frame(self, node, shared)

    def is_defined(self, obj: Any) -> bool:
        """Whether a variable, buffer or global variable has a text."""
        return obj in self._docs

    def defined(self, obj: Any) -> ExprDoc | None:
        """The text of what has one."""
        make = self._docs.get(obj)
        return None if make is None else make()

    def define(self, obj: Any, frame: Frame, hint: str) -> IdDoc:
        """A new name for ``obj`` as long as the frame lasts."""
        if self.config.show_object_address:
            hint = f"{hint}_0x{id(obj):x}"
        name = self.names.take(hint)
        self._docs[obj] = lambda: IdDoc(name)
        frame.remember(obj, name)
        return IdDoc(name)

    def define_as(self, obj: Any, frame: Frame, make: Callable[[], ExprDoc]) -> None:
        """Let ``obj`` have the text that a function makes, as long as the frame lasts."""
        self._docs[obj] = make
        frame.remember(obj, "")

    def forget(self, obj: Any, name: str) -> None:
        """End of a definition."""
        self._docs.pop(obj, None)
        self.names.free(name)

    def frame_around_uses(self, obj: Any) -> Frame:
        """The innermost open frame with all uses of a variable in it."""
        scope = self.usage.scopes.get(obj)
        if scope is not None:
            open_frames = {id(frame.node): frame for frame in self.frames if frame.node is not None}
            for node in scope.outwards():
                if (found := open_frames.get(id(node))) is not None:
                    return found
        return next(frame for frame in self.frames if frame.node is None)


def _notes(config: PrinterConfig) -> dict[int, str]:
    return {id(obj): note for obj, note in (config.obj_to_annotate or {}).items()}


def literal(value: str | float | None, path: Path) -> LiteralDoc:
    """A literal that comes from a path."""
    return LiteralDoc(value, path if isinstance(path, ObjectPath) else None)


def variable_name(var: Var) -> str:
    """The hint for a variable's name."""
    return var.name or "v"
