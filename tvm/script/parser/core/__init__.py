"""What the parsers of all languages share: sources, names, expressions, dispatch by language."""
