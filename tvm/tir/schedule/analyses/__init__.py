"""What primitives ask about a program: bindings, regions, coverage, kinds of blocks."""
