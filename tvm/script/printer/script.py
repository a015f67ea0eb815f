"""``node.script()``: a node as the text of a program, or of a part of one."""

from __future__ import annotations

from typing import Any

from tvm.ir.script_printer import PrinterConfig, config_of
from tvm.ir.serialize import save_json
from tvm.support import deep

from .doc import CommentDoc, Doc, ExprDoc, ExprStmtDoc, StmtBlockDoc, StmtDoc
from .doc_printer import to_python_script
from .docsifier import IRDocsifier


@deep
def script(node: Any, **options: Any) -> str:
    """The node in TVMScript; see :class:`PrinterConfig` for the options."""
    config = config_of(options)
    d = IRDocsifier(config)
    doc = document(node, d)
    text = to_python_script(
        doc, config.indent_spaces, config.print_line_numbers, config.num_context_lines, d.underlined
    )
    if d.metadata and config.show_meta:
        return f'metadata = tvm.ir.load_json("""{_raw(save_json(d.metadata))}""")\n{text}'
    return text


def document(node: Any, d: IRDocsifier) -> Doc:
    """The document of a program, or of a part of one with the variables that nothing defines."""
    d.usage.add(node)
    if d.config.name is not None:
        d.function_names.append(d.config.name)
    with d.frame() as frame:
        doc = d.doc(node, d.root)
        if isinstance(doc, ExprDoc):
            if not d.config.verbose_expr:
                frame.stmts.clear()
            frame.stmts.append(ExprStmtDoc(doc))
        elif isinstance(doc, StmtBlockDoc):
            frame.stmts.extend(doc.stmts)
        else:
            assert isinstance(doc, StmtDoc)
            frame.stmts.append(doc)
    if d.metadata and not d.config.show_meta:
        hint = "Metadata omitted. Use show_meta=True in script() method to show it."
        frame.stmts.append(CommentDoc(hint))
    result = StmtBlockDoc(frame.stmts)
    if not isinstance(doc, ExprDoc):
        result.source_paths = doc.source_paths
    return result


def _raw(text: str) -> str:
    return text.replace("\\", "\\\\")


__all__ = ["PrinterConfig", "script"]
