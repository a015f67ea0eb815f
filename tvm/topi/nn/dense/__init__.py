"""Matrix products with a weight."""
