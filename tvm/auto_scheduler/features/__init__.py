"""Features of programs, by which cost models tell fast ones from slow ones."""
