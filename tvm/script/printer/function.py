"""How functions and modules are written."""

from __future__ import annotations

from typing import Any

from tvm.ir.module import IRModule
from tvm.ir.script_printer import PrinterConfig, config_of
from tvm.ir.type import PrimType, TupleType
from tvm.support import deep
from tvm.tir.buffer import DEFAULT_ALIGNMENT, Buffer, BufferType
from tvm.tir.expr import IntImm, Var
from tvm.tir.function import PrimFunc
from tvm.tir.stmt import BlockRealize, Stmt

from .block import BlockPrinter
from .plan import Plan


class FunctionPrinter(BlockPrinter):
    """Writes a function, or a part of one."""

    def function(self, func: PrimFunc, name: str) -> None:
        """``@T.prim_func`` and all that follows."""
        symbol = func.attrs.get("global_symbol")
        self.line()
        self.out.append(f"@{self.T}.prim_func{'' if symbol is not None else '(private=True)'}")
        self.line()
        self.names.enter()
        inline = {p for p in func.params if self._is_annotation(func, p)}
        self.out.append(f"def {name}(")
        self._parameters(func, inline)
        self.out.append(f"){self._result(func)}:")
        self.indent += 1
        attrs = {k: v for k, v in func.attrs.items() if (k, v) != ("global_symbol", name)}
        if attrs:
            self.line()
            self.out.append(f"{self.T}.func_attr(")
            self.value(attrs)
            self.out.append(")")
        for param in func.params:
            if param in func.buffer_map and param not in inline:
                self._match(param, func.buffer_map[param])
        self._free_variables()
        self._function_body(func.body)
        self.indent -= 1
        self.names.leave()

    def _is_annotation(self, func: PrimFunc, param: Var) -> bool:
        """Whether the parameter can be written ``A: T.Buffer((16,), "float32")``."""
        buffer = func.buffer_map.get(param)
        if buffer is None or param in self.plan.variables or not self.config.syntax_sugar:
            return False
        offset = buffer.elem_offset
        return (
            all(type(extent) is IntImm for extent in buffer.shape)
            and not buffer.strides
            and not buffer.axis_separators
            and type(offset) is IntImm
            and offset.value == 0
            and buffer.scope() == "global"
            and buffer.data_alignment == DEFAULT_ALIGNMENT
            and buffer.offset_factor == 1
            and buffer.buffer_type is BufferType.DEFAULT
            and list(func.buffer_map.values()).count(buffer) == 1
            and sum(other.data is buffer.data for other in func.buffer_map.values()) == 1
            and param.dtype.is_handle
            and param.type_annotation is None
        )

    def _parameters(self, func: PrimFunc, inline: set[Var]) -> None:
        for index, param in enumerate(func.params):
            if index:
                self.out.append(", ")
            if param in inline:
                buffer = func.buffer_map[param]
                self.out.append(f"{self.define_buffer(buffer)}: {self.T}.Buffer(")
                self.shape(buffer.shape)
                self.out.append(f', "{buffer.dtype}")')
            else:
                name = self.names.define(param, param.name)
                kind = self.type_text(param.type_annotation, param.dtype)
                self.out.append(f"{name}: {kind}")

    def _result(self, func: PrimFunc) -> str:
        kind = func.ret_type
        if isinstance(kind, PrimType):
            return f" -> {self.type_text(kind, kind.dtype)}"
        if isinstance(kind, TupleType):
            return ""
        return f" -> {self.type_text(kind, kind.dtype)}" if hasattr(kind, "dtype") else ""

    def _match(self, param: Var, buffer: Buffer) -> None:
        self.define_free(buffer)
        name = self.define_buffer(buffer)
        self.line()
        self.out.append(f"{name} = {self.T}.match_buffer({self.name_of(param)}, ")
        self.buffer_arguments(buffer, None)
        self.out.append(")")

    def _free_variables(self) -> None:
        for var in (*self.plan.free_variables(), *self.plan.in_expressions):
            if var not in self.names.texts:
                self.define_variable(var)
        for var, count in self.plan.thread_scopes.items():
            if count > 1 and var not in self.names.texts:
                tag = self.plan.thread_tags[var]
                name = self.names.define(var, var.name)
                self.line()
                kind = "" if var.dtype == "int32" else f', "{var.dtype}"'
                self.out.append(f'{name} = {self.T}.env_thread("{tag}"{kind})')

    def _function_body(self, body: Stmt) -> None:
        if self.config.syntax_sugar and is_implicit_root(body):
            assert isinstance(body, BlockRealize)
            self.line()
            self.out.append(f'# with {self.T}.block("root"):')
            for buffer in self.plan.declared_in.get(id(body), ()):
                self.declare(buffer)
            self.root_contents(body)
            return
        self.body(body)

    def root_contents(self, realize: BlockRealize) -> None:
        """What the root block holds, with its regions left out: the parser finds them."""
        block = realize.block
        if block.annotations:
            self.line()
            self.out.append(f"{self.T}.block_attr(")
            self.value(block.annotations)
            self.out.append(")")
        for buffer in block.alloc_buffers:
            self._bind_buffer(buffer, "alloc_buffer", "")
        self.body(block.body)

    # ---- modules

    def module(self, mod: IRModule) -> None:
        """``class Module`` with its functions by name."""
        self.line()
        self.out.append(f"@{self.config.ir_prefix}.ir_module")
        self.line()
        self.out.append("class Module:")
        self.indent += 1
        if mod.attrs:
            self.line()
            self.out.append(f"{self.config.ir_prefix}.module_attrs(")
            self.value(dict(mod.attrs.items()))
            self.out.append(")")
        functions = mod.functions_items()
        for gvar, func in functions:
            self.names.bind(gvar, f"{self.config.module_alias}.{gvar.name_hint}")
            if isinstance(func, PrimFunc) and isinstance(func.ret_type, PrimType):
                self.result_types[gvar] = func.ret_type.dtype
        for index, (gvar, func) in enumerate(functions):
            if index:
                self.out.append("\n")
            self.plan = Plan(func)
            if isinstance(func, PrimFunc):
                self.function(func, gvar.name_hint)
            else:
                self.line()
                self.out.append(f"# {gvar.name_hint}: {type(func).__name__}")
        if not functions and not mod.attrs:
            self.line()
            self.out.append("pass")
        self.indent -= 1


def is_implicit_root(body: Stmt) -> bool:
    """Whether the body is a root block that need not be written."""
    if not isinstance(body, BlockRealize):
        return False
    block = body.block
    predicate = body.predicate
    return (
        block.name_hint == "root"
        and not (block.iter_vars or block.reads or block.writes or block.match_buffers)
        and block.init is None
        and type(predicate) is IntImm
        and predicate.value == 1
        and (bool(block.alloc_buffers) or contains_block(block.body))
    )


def contains_block(stmt: Any) -> bool:
    """Whether a statement has a block realisation in it."""
    pending = [stmt]
    while pending:
        node = pending.pop()
        if isinstance(node, BlockRealize):
            return True
        pending += [part for part in node.children() if isinstance(part, Stmt)]
    return False


@deep
def script(node: Any, **options: Any) -> str:
    """The node in TVMScript; see :class:`PrinterConfig` for the options."""
    config = config_of(options)
    text = _write(node, config)
    return _numbered(text) if config.print_line_numbers else text


def _write(node: Any, config: PrinterConfig) -> str:
    if isinstance(node, IRModule):
        printer = FunctionPrinter(config, Plan())
        printer.module(node)
        heads = [f"# from tvm.script import ir as {config.ir_prefix}"]
        if any(isinstance(func, PrimFunc) for func in node.functions.values()):
            heads.append(f"# from tvm.script import tir as {config.tir_prefix}")
        return "\n".join(heads) + "\n" + "".join(printer.out)
    if isinstance(node, PrimFunc):
        printer = FunctionPrinter(config, Plan(node))
        printer.function(node, config.name or str(node.attrs.get("global_symbol", "main")))
        return f"# from tvm.script import tir as {config.tir_prefix}\n" + "".join(printer.out)
    return fragment(node, config)


def fragment(node: Any, config: PrinterConfig) -> str:
    """A statement or expression; what nothing in it defines is written by its name."""
    if not isinstance(node, Stmt):
        printer = FunctionPrinter(config, Plan())
        if isinstance(node, Buffer):
            printer.names.define(node, node.name)
            return f"{node.name}: {printer.text_of(printer._decl_head, node, None)}"
        printer.visit(node)
        return "".join(printer.out)
    printer = FunctionPrinter(config, Plan(node))
    printer.body(node)
    return "".join(printer.out).lstrip("\n")


def _numbered(text: str) -> str:
    lines = text.split("\n")
    width = len(str(len(lines)))
    return "\n".join([f"{number:>{width}} {line}" for number, line in enumerate(lines, 1)])
