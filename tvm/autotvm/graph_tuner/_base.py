"""What the parts of the graph tuner have in common."""

OPT_OUT_OP: tuple[str, ...] = ()  # operators whose results count as parameters
