"""Random valid ONNX graphs: they grow node by node."""

from __future__ import annotations

import numpy as np
import onnx

from .random_onnx_graph import DTYPES, Graph
from .random_onnx_more import MORE_DRAWS
from .random_onnx_nodes import DRAWS
from .random_onnx_rare import RARE_DRAWS
from .random_onnx_shapes import SHAPE_DRAWS

OPSETS = (14, 17, 18, 20, 21)
ALL_DRAWS = (*DRAWS, *MORE_DRAWS, *SHAPE_DRAWS, *RARE_DRAWS)
OPEN = 0.25  # of the models leave extents of their inputs open


def random_model(
    seed: int, nodes: int | None = None
) -> tuple[onnx.ModelProto, dict[str, np.ndarray]]:
    """A model of 1 to 20 nodes, and its inputs."""
    rng = np.random.default_rng(seed)
    graph = Graph(rng, int(rng.choice(OPSETS)))
    for _ in range(graph.integer(1, 3)):
        rank = graph.choose((0, 1, 2, 2, 3, 3, 4, 4))
        shape = [graph.integer(1, 6) for _ in range(rank)]
        dtype = graph.choose(DTYPES) if graph.chance(0.5) else "float32"
        graph.input(shape, dtype)
    if graph.chance(OPEN):
        graph.open_axes = {
            (v.name, axis) for v in graph.values for axis in range(v.rank) if graph.chance(0.5)
        }
    wanted = nodes or graph.integer(1, 20)
    for _ in range(40 * wanted):
        if len(graph.nodes) >= wanted:
            break
        graph.choose(ALL_DRAWS)(graph)
    if not graph.nodes:
        graph.add("Identity", [graph.values[0]], graph.values[0])
    return graph.model(), graph.inputs
