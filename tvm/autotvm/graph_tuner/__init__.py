"""Choosing among the records of all operators of a graph together, layout transforms included."""

from .base_graph_tuner import BaseGraphTuner, get_infer_layout, layout_transform
from .dynamic_programming_tuner import DPTuner
from .pbqp_tuner import PBQPTuner
