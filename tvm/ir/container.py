"""The containers of nodes: an ``Array`` is a tuple, a ``Map`` a dict."""

from __future__ import annotations

# not aliases for the type checker: these names are for isinstance
Array: type = tuple
Map: type = dict
