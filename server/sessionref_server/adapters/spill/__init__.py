"""Storage for full transcripts of cut sources."""
