"""Neural-network operators."""

from . import attention
from .nn import *
from .nn import __all__
