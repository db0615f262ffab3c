"""Context windows of models."""
