"""Worker processes that do the CPU work."""
