"""Ranking of candidates."""
