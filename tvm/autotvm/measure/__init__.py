"""Measuring candidates: building them and running them, in processes of their own."""

from . import executor, measure_methods
from .measure import (
    Builder,
    MeasureErrorNo,
    MeasureInput,
    MeasureResult,
    Runner,
    create_measure_batch,
    measure_option,
)
from .measure_methods import (
    DaskBuilder,
    DaskRunner,
    LocalBuilder,
    LocalRunner,
    RPCRunner,
    request_remote,
)
