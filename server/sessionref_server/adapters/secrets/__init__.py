"""Detection of key-shaped strings."""
