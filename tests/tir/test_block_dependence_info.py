"""Dependencies of blocks, asked for without a schedule."""

from __future__ import annotations

import pytest

import tvm
from tvm.script import tir as T
from tvm.tir import Block, BlockDependenceInfo, stmt_functor
from tvm.tir.block_scope import DepKind


@T.prim_func
def chain(A: T.Buffer(16, "float32"), C: T.Buffer(16, "float32")):
    B = T.alloc_buffer((16,), "float32")
    for i in range(16):
        with T.block("twice"):
            v = T.axis.spatial(16, i)
            B[v] = A[v] * T.float32(2)
    for i in range(16):
        with T.block("outer"):
            v = T.axis.spatial(16, i)
            with T.block("next"):
                C[v] = B[v] + T.float32(1)
            with T.block("again"):
                C[v] = C[v] + A[v]
    for i in range(16):
        with T.block("overwrite"):
            v = T.axis.spatial(16, i)
            B[v] = T.float32(0)


def blocks_of(func) -> dict[str, Block]:
    found: dict[str, Block] = {}

    def note(node) -> None:
        if isinstance(node, Block):
            found[node.name_hint] = node

    stmt_functor.post_order_visit(func.body, note)
    return found


def edges(info: BlockDependenceInfo, scope: Block) -> set[tuple[str, str, DepKind]]:
    inside = info.get_block_scope(info.get_sref(scope))
    return {
        (dep.src.stmt.name_hint, dep.dst.stmt.name_hint, dep.kind)
        for child in inside.children
        for dep in inside.get_deps_by_src(child)
    }


@pytest.mark.parametrize("program", [chain, tvm.IRModule({"main": chain})])
def test_dependencies_are_between_blocks_of_one_scope(program) -> None:
    info, blocks = BlockDependenceInfo(program), blocks_of(chain)
    assert edges(info, blocks["root"]) == {
        ("twice", "outer", DepKind.RAW),
        ("twice", "overwrite", DepKind.WAW),
        ("outer", "overwrite", DepKind.WAR),
    }
    assert edges(info, blocks["outer"]) == {
        ("next", "again", DepKind.RAW),
        ("next", "again", DepKind.WAW),
    }


def test_parents_are_blocks() -> None:
    info, blocks = BlockDependenceInfo(chain), blocks_of(chain)
    again = info.get_sref(blocks["again"])
    assert again.seq_index == 1
    assert again.parent is info.get_sref(blocks["outer"])
    assert again.parent.parent is info.get_sref(blocks["root"])
    assert again.parent.parent.parent is None


def test_blocks_of_other_programs_are_rejected() -> None:
    info, other = BlockDependenceInfo(chain), BlockDependenceInfo(chain)
    assert info.get_sref(blocks_of(chain)["twice"].replace(name_hint="other")) is None
    with pytest.raises(ValueError, match="get_block_scope requires a reference that get_sref"):
        info.get_block_scope(other.get_sref(blocks_of(chain)["root"]))
    with pytest.raises(TypeError, match="BlockDependenceInfo requires an IRModule or a PrimFunc"):
        BlockDependenceInfo(chain.body)
