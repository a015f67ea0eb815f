"""Element-wise, creating and joining operators under the classic module name."""

from __future__ import annotations

from .binary import *
from .unary import *
