"""Values and pure functions: what the product means, without any I/O."""
