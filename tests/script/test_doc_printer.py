"""Documents and their text: precedence, comments, underlines, line numbers."""

from __future__ import annotations

import pytest

from tvm.runtime import ObjectPath
from tvm.script.printer.doc import (
    AssignDoc,
    CallDoc,
    ClassDoc,
    CommentDoc,
    Doc,
    ExprDoc,
    ExprStmtDoc,
    ForDoc,
    FunctionDoc,
    IdDoc,
    IfDoc,
    LiteralDoc,
    OperationDoc,
    OperationKind,
    SliceDoc,
    StmtBlockDoc,
    TupleDoc,
)
from tvm.script.printer.doc_printer import to_python_script

A, B, C = IdDoc("a"), IdDoc("b"), IdDoc("c")


def binary(kind: OperationKind, a: ExprDoc, b: ExprDoc) -> OperationDoc:
    return OperationDoc(kind, [a, b])


@pytest.mark.parametrize(
    ("doc", "text"),
    [
        (LiteralDoc(0.1), "0.10000000000000001"),
        (LiteralDoc(2.0), "2.0"),
        (LiteralDoc(float("-inf")), '"-inf"'),
        (LiteralDoc('say "hi"\n'), r'"say \"hi\"\n"'),
        (binary(OperationKind.Sub, A, binary(OperationKind.Sub, B, C)), "a - (b - c)"),
        (binary(OperationKind.Lt, binary(OperationKind.Lt, A, B), C), "(a < b) < c"),
        (binary(OperationKind.Pow, OperationDoc(OperationKind.USub, [A]), B), "(-a) ** b"),
        (A[SliceDoc(LiteralDoc(0), B), C].attr("d"), "a[0:b, c].d"),
        (CallDoc(A, B, key=TupleDoc([C])), "a(b, key=(c,))"),
    ],
)
def test_expressions_have_the_parentheses_that_they_need(doc: Doc, text: str) -> None:
    assert to_python_script(doc) == text


def test_functions_of_a_class_are_separated() -> None:
    functions = [FunctionDoc(name, [], [A], None, [ExprStmtDoc(C)]) for name in (A, B)]
    text = to_python_script(ClassDoc(IdDoc("K"), [], functions), indent_spaces=2)
    assert text == "class K:\n  @a\n  def a():\n    c\n\n  @a\n  def b():\n    c"


def test_comments_stand_behind_plain_statements_and_above_compound_ones() -> None:
    plain, compound = ExprStmtDoc(A), ForDoc(A, B, [])
    plain.comment = compound.comment = "why"
    text = to_python_script(StmtBlockDoc([CommentDoc("first"), plain, compound]))
    assert text == "# first\na  # why\n# why\nfor a in b:\n    pass"


def test_assignment_of_a_tuple_takes_no_annotation() -> None:
    with pytest.raises(ValueError, match="AssignDoc requires a single target"):
        AssignDoc(TupleDoc([A, B]), C, C)
    with pytest.raises(ValueError, match="IfDoc requires statements"):
        IfDoc(A, [], [])


def named(name: str, *attributes: str) -> IdDoc:
    path = ObjectPath.root()
    for attribute in attributes:
        path = path.attr(attribute)
    doc = IdDoc(name)
    doc.source_paths = [path]
    return doc


def test_underline_marks_the_nearest_part_but_no_comment() -> None:
    inner = ExprStmtDoc(named("inner", "x", "y"))
    inner.comment = "note"
    doc = StmtBlockDoc([ExprStmtDoc(named("outer", "x")), inner])
    path = ObjectPath.root().attr("x").attr("y").attr("z")
    assert to_python_script(doc, path_to_underline=[path]) == "outer\ninner  # note\n^^^^^"
    doc.source_paths = [path]
    text = to_python_script(doc, path_to_underline=[path])
    assert text == "outer\n^^^^^\ninner  # note\n^^^^^^"[:-1]


def test_lines_far_from_an_underline_are_left_out() -> None:
    doc = StmtBlockDoc([ExprStmtDoc(named(f"s{i}", f"p{i}")) for i in range(10)])
    text = to_python_script(
        doc, 4, True, num_context_lines=1, path_to_underline=[ObjectPath.root().attr("p4")]
    )
    assert text.splitlines() == [
        "(... 3 lines skipped ...)",
        " 4 s3",
        " 5 s4",
        "   ^^",
        " 6 s5",
        "(... 4 lines skipped ...)",
    ]
