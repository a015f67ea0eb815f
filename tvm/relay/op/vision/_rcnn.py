"""Facets of operators on regions; see `facets.py`."""

from tvm.relay.op.facets import facet_reader

__getattr__ = facet_reader(__name__, ["vision."])
