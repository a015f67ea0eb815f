"""Facets of operators that sort and search; see `facets.py`."""

from tvm.relay.op.facets import facet_reader

__getattr__ = facet_reader(__name__, [])
