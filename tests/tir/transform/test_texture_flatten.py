from __future__ import annotations

from typing import Any

import pytest

from tvm import te, tir
from tvm.error import LoweringError
from tvm.tir.stmt import BufferStore
from tvm.tir.transform import TextureFlatten

from .checks import apply, assert_unchanged
from .programs import function, store


def copied(scope: str, shape: tuple[int, ...]) -> tir.PrimFunc:
    A = te.placeholder(shape, name="A")
    B = te.compute(shape, lambda *i: A(*i) + 1.0, name="B")
    C = te.compute(shape, lambda *i: B(*i) * 2.0, name="C")
    s = te.create_schedule(C.op)
    s[B].set_scope(scope)
    stmt = te.schedule.ScheduleOps(s, te.schedule.InferBound(s))
    return te.schedule.SchedulePostProcToPrimFunc([A, C], stmt, None)


def calls(func: tir.PrimFunc) -> dict[str, list[str]]:
    """The arguments of each call of textures, without the texture."""
    found: dict[str, list[str]] = {}

    def note(node: Any) -> None:
        if not isinstance(node, tir.Call):
            return
        if node.op.name == "tir.tvm_stack_make_shape":
            found["shape"] = [str(arg) for arg in node.args]
        elif "texture2d" in node.op.name:
            name = node.op.name.removeprefix("tir.texture2d_")
            found[name] = [str(arg) for arg in node.args[1:3]]

    tir.stmt_functor.post_order_visit(func.body, note)
    return found


@pytest.mark.parametrize("scope, size, column, row", [
    ("global.texture", ["16", "24", "4"], "i3", "(i0 * 3 + i1) * 4 + i2"),
    ("global.texture-weight", ["192", "2", "4"], "(i1 * 4 + i2) * 16 + i3", "i0"),
    ("global.texture-nhwc", ["64", "6", "4"], "i2 * 16 + i3", "i0 * 3 + i1"),
])  # fmt: skip
def test_dimensions_become_rows_columns_and_channels(
    scope: str, size: list[str], column: str, row: str
) -> None:
    found = calls(apply(TextureFlatten(), copied(scope, (2, 3, 4, 16, 4))))
    assert found["shape"] == size
    assert found["store"] == found["load"] == [column, row]


def test_arguments_are_textures_too() -> None:
    A = tir.decl_buffer((2, 3, 4), name="A", scope="global.texture")
    B = tir.decl_buffer((4,), name="B")
    func = function([A, B], BufferStore(B, A[1, 2, 3], [0]))
    assert calls(apply(TextureFlatten(), func))["load"] == ["2", "1"]


@pytest.mark.parametrize("scope, shape, message", [
    ("global.texture", (8, 4), "rows, columns, and 1 or 4 channels"),
    ("global.texture", (8, 8, 3), "rows, columns, and 1 or 4 channels"),
    ("global.texture-odd", (8, 8, 4), "a texture is of scope"),
])  # fmt: skip
def test_other_shapes_and_scopes_are_rejected(
    scope: str, shape: tuple[int, ...], message: str
) -> None:
    with pytest.raises(LoweringError, match=message):
        apply(TextureFlatten(), copied(scope, shape))


def test_other_memory_stays() -> None:
    B = tir.decl_buffer((4,), name="B")
    assert_unchanged(TextureFlatten(), function([B], store(B, 0, 1.0)))
