import re
from pathlib import Path

import pytest

from tvm import te
from tvm.contrib import tedd
from tvm.error import TVMError

VIEWS = [tedd.viz_schedule_tree, tedd.viz_itervar_relationship_graph, tedd.viz_dataflow_graph]


def schedule() -> te.Schedule:
    a = te.placeholder((8, 16), name="A")
    k = te.reduce_axis((0, 16), name="k")
    b = te.compute((8,), lambda i: te.sum(a[i, k], axis=k), name="B")
    c = te.compute((8,), lambda i: b[i] + 1, name="C")
    s = te.create_schedule(c.op)
    outer, inner = s[c].split(c.op.axis[0], factor=4)
    s[c].vectorize(inner)
    s[b].compute_at(s[c], outer)
    return s


@pytest.mark.parametrize("view", VIEWS)
def test_drawings_are_graphs_of_known_nodes(view) -> None:
    text = view(schedule(), output_dot_string=True)
    assert text.startswith("digraph ") and text.count("{") == text.count("}")
    nodes = set(re.findall(r"(\w+) \[label=", text))
    ends = set(re.findall(r"(\w+) -> ", text)) | set(re.findall(r" -> (\w+)", text))
    assert ends and ends <= nodes


def test_the_tree_shows_where_a_stage_runs() -> None:
    s = schedule()
    assert tedd.schedule_tree_text(s) == "\n".join(
        [
            "C (global)",
            "  i.outer in [0, 2) DataPar",
            "    B (global)",
            "      i in [i_outer * 4, i_outer * 4 + 4) DataPar",
            "        k in [0, 16) CommReduce",
            "    i.inner in [0, 4) Vectorized",
        ]
    )
    tree = tedd.viz_schedule_tree(s, output_dot_string=True)
    assert re.search(r"Stage_1 -> IterVar_2_1;", tree)


def test_the_graph_of_axes_has_their_relations() -> None:
    text = tedd.viz_itervar_relationship_graph(schedule(), output_dot_string=True)
    assert 'label="split"' in text


def test_drawings_go_to_files(tmp_path: Path) -> None:
    path = tmp_path / "flow.dot"
    assert tedd.viz_dataflow_graph(schedule(), dot_file_path=str(path)) is None
    assert "float32['8', '16']" in path.read_text()


def test_what_is_no_schedule_is_rejected() -> None:
    with pytest.raises(TVMError, match="tedd requires a schedule, got a value of int"):
        tedd.viz_schedule_tree(3)
