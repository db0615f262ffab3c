"""Sessions from the logs agents keep on disk."""
