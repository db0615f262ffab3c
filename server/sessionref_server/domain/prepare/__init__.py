"""The pure steps of Prepare."""
