"""The limit: a server on the same grpcio and event loop that sends given bytes back and does nothing else.

``python -m tests.bench.echo_server ADDRESS RESPONSE_FILE``
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import grpc
import uvloop


async def main(address: str, response: bytes) -> None:
    """Serve until killed. Neither requests nor responses are parsed."""

    async def unary(_request: bytes, _context: object) -> bytes:
        return response

    async def stream(_request: bytes, context: grpc.aio.ServicerContext[bytes, bytes]) -> None:
        await context.write(response)

    handlers = {
        "Unary": grpc.unary_unary_rpc_method_handler(unary),
        "Stream": grpc.unary_stream_rpc_method_handler(stream),
    }
    server = grpc.aio.server(options=[("grpc.so_reuseport", 0)])
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("echo.Echo", handlers),))
    server.add_insecure_port(address)
    await server.start()
    await asyncio.Event().wait()


if __name__ == "__main__":
    uvloop.run(main(sys.argv[1], Path(sys.argv[2]).read_bytes()))
