"""Random relay programs, well-typed by construction: what they are drawn from."""
