"""What is printed: options, names, parts of programs."""

from __future__ import annotations

import pytest

import tvm
from tvm import tir
from tvm.ir import IRModule, assert_structural_equal
from tvm.runtime import ObjectPath
from tvm.script import from_source
from tvm.script import tir as T
from tvm.script.highlight import cprint

x = tir.Var("x", "int32")


@T.prim_func
def program(A: T.Buffer((4,), "float32")):
    for i in range(4):
        A[i] = 1.0


def test_options() -> None:
    text = program.script(name="other", tir_prefix="tir", indent_spaces=2)
    assert text.splitlines() == [
        "# from tvm.script import tir as tir",
        "",
        "@tir.prim_func",
        'def other(A: tir.Buffer((4,), "float32")):',
        '  tir.func_attr({"global_symbol": "program"})',
        "  for i in range(4):",
        "    A[i] = tir.float32(1.0)",
    ]
    assert program.script(print_line_numbers=True).splitlines()[3] == (
        '4 def program(A: T.Buffer((4,), "float32")):'
    )
    with pytest.raises(
        TypeError, match="script has no option 'tir_prefx'; did you mean 'tir_prefix'"
    ):
        program.script(tir_prefx="T")


def test_prefixes_are_names() -> None:
    with pytest.raises(ValueError, match="script requires an identifier as ir_prefix, got '2I'"):
        program.script(ir_prefix="2I")


def test_types_ranges_and_global_variables_are_scripts_too() -> None:
    pointer = tvm.ir.PointerType(tvm.ir.PrimType("int32"), "shared")
    assert pointer.script() == 'T.handle("int32", "shared")'
    assert tvm.ir.TupleType([tvm.ir.PrimType("int8")]).script() == "T.Tuple(T.int8)"
    assert tvm.ir.Range(2, 10).script() == "T.Range(2, 10)"
    assert tvm.ir.GlobalVar("f").script() == 'I.GlobalVar("f")'


def test_str_and_show_give_the_script(capsys: pytest.CaptureFixture[str]) -> None:
    assert str(program) == repr(program) == program.script()
    program.show()
    assert capsys.readouterr().out == program.script() + "\n"


def test_modules() -> None:
    mod = IRModule({"b": program.with_attr("global_symbol", "b"), "a": program})
    lines = mod.script(module_alias="this", ir_prefix="ir").splitlines()
    assert lines[:6] == [
        "# from tvm.script import ir as ir",
        "# from tvm.script import tir as T",
        "",
        "@ir.ir_module",
        "class Module:",
        "    @T.prim_func",
    ]
    heads = [line.strip()[:6] for line in lines if "def " in line]
    assert heads == ["def a(", "def b("]
    assert IRModule().script().endswith("class Module:\n    pass")


def test_expressions() -> None:
    y = tir.Var("y", "int32")
    assert str((x + 1) * 2 - (y - 3 - x)) == "(x + 1) * 2 - (y - 3 - x)"
    assert str(x - (y + 1)) == "x - (y + 1)"
    assert str(tir.all(x < y, tir.any(x == 1, y == 2))) == "x < y and (x == 1 or y == 2)"
    assert str(tir.Not(tir.all(x < y, y < 3))) == "not (x < y and y < 3)"
    assert str(tir.EQ(tir.EQ(x, y), tir.const(True))) == "(x == y) == T.bool(True)"
    assert str(tir.const(2.5)) == "T.float32(2.5)"
    assert str(tir.StringImm('a"b')) == '"a\\"b"'
    assert str(tir.IterVar((0, 4), "k", 2)) == 'T.iter_var(k, T.Range(0, 4), "CommReduce", "")'


def test_a_type_left_out_is_configurable() -> None:
    n = tir.Var("n", "int64")
    assert str(n + 1) == "n + T.int64(1)"
    assert (n + 1).script(int_dtype="int64") == "n + 1"


def test_statements_tell_their_buffers() -> None:
    A = tir.decl_buffer((4,), "int8", "A")
    stmt = tir.For(x, 0, 4, 0, tir.BufferStore(A, tir.const(1, "int8"), [x]))
    assert str(stmt).splitlines() == [
        "for x in range(4):",
        '    A = T.Buffer((4,), "int8")',
        "    A[x] = T.int8(1)",
    ]
    assert str(A[0:2]) == "A[0:2]"
    assert str(A) == "A"
    assert A.script(verbose_expr=True) == 'A = T.Buffer((4,), "int8")\nA'


def test_names_are_unique_where_they_are_visible() -> None:
    first, second, third = (tir.Var("i", "int32") for _ in range(3))
    inner = tir.For(second, 0, first + 1, 0, tir.Evaluate(first + second))
    func = tir.PrimFunc(
        [],
        tir.SeqStmt([tir.For(first, 0, 4, 0, inner), tir.For(third, 0, 4, 0, tir.Evaluate(third))]),
    )
    assert "\n".join(func.script().splitlines()[4:]) == (
        "    for i in range(4):\n"
        "        for i_1 in range(i + 1):\n"
        "            T.evaluate(i + i_1)\n"
        "    for i in range(4):\n"
        "        T.evaluate(i)"
    )


def test_names_are_identifiers() -> None:
    names = ["blockIdx.x", "lambda", "T", "4x", ""]
    func = tir.PrimFunc([tir.Var(name, "int32") for name in names], tir.Evaluate(0))
    head = next(line for line in func.script().splitlines() if line.startswith("def"))
    assert head == (
        "def main(blockIdx_x: T.int32, lambda_1: T.int32, T_1: T.int32, _4x: T.int32, v: T.int32):"
    )
    from_source(func.script())


def test_printing_twice_gives_the_same() -> None:
    assert program.script() == program.script()


def test_without_sugar() -> None:
    text = program.script(syntax_sugar=False)
    assert "A_handle: T.handle" in text
    assert "A = T.match_buffer(A_handle, (4,))" in text


def test_launched_threads_of_another_range_are_spelled_out() -> None:
    axis = tir.IterVar((0, 16), "t", tir.IterVar.ThreadIndex, "threadIdx.x")
    stmt = tir.AttrStmt(axis, "thread_extent", 8, tir.Evaluate(axis.var))
    text = tir.PrimFunc([], stmt).script()
    assert (
        '    T.attr(T.iter_var(t, T.Range(0, 16), "ThreadIndex", "threadIdx.x"), "thread_extent", 8)'
        in text
    )
    from_source(text)


def test_comments_and_underlines_show_parts_of_a_program() -> None:
    @T.prim_func
    def func(A: T.Buffer((4,), "int32")):
        x = A[0] + 1
        A[1] = x
        A[2] = x

    text = func.script(
        obj_to_annotate={func.body: "a binding", func.body.body.seq[1]: "the last"},
        path_to_underline=[ObjectPath.root().attr("body").attr("value")],
    )
    assert text.splitlines()[4:] == [
        "    # a binding",
        "    with T.LetStmt(A[0] + 1) as x:",
        "                   ^^^^^^^^",
        "        A[1] = x",
        "        A[2] = x  # the last",
    ]


def test_what_has_no_text_is_kept_in_the_metadata() -> None:
    func = tir.PrimFunc([], tir.Evaluate(tir.StringImm("two\nlines")))
    text = func.script(show_meta=True)
    assert text.startswith("metadata = tvm.ir.load_json(")
    assert 'T.evaluate(metadata["tir.StringImm"][0])' in text
    assert_structural_equal(from_source(text), func)
    assert func.script().splitlines()[-1].strip().startswith("# Metadata omitted.")


def test_colours_are_for_terminals_alone(capsys: pytest.CaptureFixture[str]) -> None:
    program.show(style="ansi")
    assert "\x1b[" in capsys.readouterr().out
    cprint(program.script())
    assert "\x1b[" not in capsys.readouterr().out
    with pytest.raises(TypeError, match="cprint requires a text or a node, got int"):
        cprint(3)
