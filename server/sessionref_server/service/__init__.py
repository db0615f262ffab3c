"""The use cases. They ask ports for what they need and know nothing of gRPC, files or processes."""
