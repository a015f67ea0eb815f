"""What a debugging run leaves behind: the graph, tensors, times, a table."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tvm.runtime.ndarray import NDArray
from tvm.runtime.params import save_param_dict
from tvm.support.files import write_bytes, write_text

GRAPH_DUMP_FILE_NAME = "_tvmdbg_graph_dump.json"
CHROME_TRACE_FILE_NAME = "_tvmdbg_execution_trace.json"


class DebugResult:
    """The results of a debugging run of one graph.

    Parameters
    ----------
    graph_json : str
        The graph.
    dump_path : str
        The folder for files.
    """

    def __init__(self, graph_json: str, dump_path: str) -> None:
        self._dump_path = Path(dump_path)
        self._graph = json.loads(graph_json)
        self._nodes: list[dict[str, Any]] = self._graph["nodes"]
        self._rows: list[int] = self._graph["node_row_ptr"]
        self._detailed = self._nodes_with_details()
        self._output_tensors: list[NDArray] = []
        self.times: list[list[float]] = []
        """Seconds of each node's measurements."""
        self._dump_path.mkdir(parents=True, exist_ok=True)
        self._write(GRAPH_DUMP_FILE_NAME, {**self._graph, "nodes": self._detailed})

    def get_graph_nodes(self) -> list[dict[str, Any]]:
        """The nodes of the graph: name, function or ``param``, names of inputs, shape and type."""
        return self._detailed

    def get_graph_node_shapes(self) -> list[list[int]]:
        """The shapes of all outputs."""
        found: list[list[int]] = self._graph["attrs"]["shape"][1]
        return found

    def get_graph_node_dtypes(self) -> list[str]:
        """The dtypes of all outputs."""
        found: list[str] = self._graph["attrs"]["dltype"][1]
        return found

    def get_graph_node_output_num(self, node: Mapping[str, Any]) -> int:
        """How many outputs a node has."""
        return int(node.get("attrs", {}).get("num_outputs", 1))

    def get_output_tensors(self) -> dict[str, NDArray]:
        """The outputs of all nodes, by ``name____topo-index:i____output-num:k``."""
        keys = [
            f"{node['name']}____topo-index:{i}____output-num:{k}"
            for i, node in enumerate(self._nodes)
            for k in range(self.get_graph_node_output_num(node))
        ]
        return dict(zip(keys, self._output_tensors, strict=False))

    def update_output_tensors(self, tensors: Sequence[NDArray]) -> None:
        """Keep the outputs of all nodes."""
        self._output_tensors = list(tensors)

    def dump_output_tensor(self) -> None:
        """Write the outputs to ``output_tensors.params``."""
        content = save_tensors(self.get_output_tensors())
        write_bytes(self._dump_path / "output_tensors.params", content)

    def dump_chrome_trace(self) -> None:
        """Write the times as a file that Chrome's tracing page shows."""
        events: list[dict[str, Any]] = []
        at = 0.0
        for node, times in zip(self._detailed, self.times, strict=False):
            common = {"cat": "op", "pid": 1, "tid": 1, "name": node["name"]}
            common["args"] = {"op": node["op"]}
            events.append({**common, "ph": "B", "ts": at})
            at += 1e6 * sum(times) / max(len(times), 1)
            events.append({**common, "ph": "E", "ts": at})
        self._write(CHROME_TRACE_FILE_NAME, {"displayTimeUnit": "ns", "traceEvents": events})

    def get_debug_result(self, sort_by_time: bool = True) -> str:
        """A table of all operators."""
        columns = [
            "Node Name", "Ops", "Time(us)", "Time(%)", "Shape", "Inputs", "Outputs",
            "Measurements(us)",
        ]  # fmt: skip
        rows = self._rows_of_operators()
        total = sum(mean for mean, _ in rows)
        if sort_by_time:
            rows.sort(key=lambda row: -row[0])
        lines = [columns, ["-" * len(column) for column in columns]]
        for mean, (name, func, shape, inputs, outputs, measurements) in rows:
            share = f"{100 * mean / total:.3f}" if total else "0.000"
            lines.append([name, func, f"{mean:.3f}", share, shape, inputs, outputs, measurements])
        lines.append(["Total_time", "-", f"{total:.3f}", "-", "-", "-", "-", "-"])
        widths = [max(len(line[i]) for line in lines) for i in range(len(columns))]
        return "\n".join(
            "".join(f"{cell.ljust(w)}  " for cell, w in zip(line, widths, strict=True))
            for line in lines
        )

    def _rows_of_operators(self) -> list[tuple[float, tuple[str, ...]]]:
        rows: list[tuple[float, tuple[str, ...]]] = []
        for i, (node, times) in enumerate(zip(self._nodes, self.times, strict=False)):
            if node["op"] == "null" or node["attrs"]["func_name"] == "__nop":
                continue
            micros = [seconds * 1e6 for seconds in times]
            texts = (
                node["name"],
                node["attrs"]["func_name"],
                str(tuple(self.get_graph_node_shapes()[self._rows[i]])),
                str(len(node["inputs"])),
                str(self.get_graph_node_output_num(node)),
                str([round(value, 3) for value in micros]),
            )
            rows.append((sum(micros) / max(len(micros), 1), texts))
        return rows

    def display_debug_result(self, sort_by_time: bool = True) -> None:
        """Print the table."""
        print(self.get_debug_result(sort_by_time))

    def _nodes_with_details(self) -> list[dict[str, Any]]:
        nodes = []
        for i, node in enumerate(self._nodes):
            entry = self._rows[i]
            own = node.get("attrs", {})
            detail = {
                **node,
                "op": own.get("func_name", "param"),
                "inputs": [self._nodes[source[0]]["name"] for source in node["inputs"]],
                "attrs": {**own, "T": f"type: {self.get_graph_node_dtypes()[entry]}"},
                "shape": self.get_graph_node_shapes()[entry],
            }
            nodes.append(detail)
        return nodes

    def _write(self, name: str, content: Any) -> None:
        write_text(self._dump_path / name, json.dumps(content, indent=2, sort_keys=True))


def save_tensors(params: Mapping[str, NDArray]) -> bytearray:
    """The tensors as bytes, which ``load_param_dict`` reads."""
    return save_param_dict(params)
