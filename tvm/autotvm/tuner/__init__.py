"""Tuners: which candidates to measure next."""

from . import callback, metric
from .ga_tuner import GATuner
from .index_based_tuner import GridSearchTuner, RandomTuner
from .tuner import Tuner
