"""The wire: the only folder that knows gRPC and protobuf. It checks, calls a use case, and translates."""
