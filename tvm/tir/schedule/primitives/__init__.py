"""The primitives of schedules, a family a file: what each requires, and one rewrite of the block tree."""
