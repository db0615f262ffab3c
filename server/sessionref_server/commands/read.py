"""``sessionref read``: the full transcript that was saved for a cut session."""

from __future__ import annotations

import argparse
import codecs
import sys
from collections.abc import Iterator

from sessionref_client import SnapshotChunk

from sessionref_server.commands.connection import open_client
from sessionref_server.commands.output import write_bytes, write_json


def read(arguments: argparse.Namespace) -> int:
    """Run the command."""
    with (
        open_client(arguments) as client,
        client.read_snapshot(
            arguments.locator, arguments.owner, offset_bytes=arguments.offset, limit_bytes=arguments.limit
        ) as chunks,
    ):
        if arguments.json:
            _write_document(arguments, list(chunks))
        else:
            _write_raw(chunks)
    return 0


def _write_document(arguments: argparse.Namespace, chunks: list[SnapshotChunk]) -> None:
    write_json(
        {
            "locator": arguments.locator,
            "owner_session_id": arguments.owner,
            "offset_bytes": chunks[0].offset_bytes if chunks else arguments.offset or 0,
            "total_bytes": chunks[0].total_bytes if chunks else 0,
            "text": b"".join(chunk.data for chunk in chunks).decode("utf-8", "replace"),
        }
    )


def _write_raw(chunks: Iterator[SnapshotChunk]) -> None:
    """A chunk may end inside a character. A terminal gets whole characters, anything else the very bytes."""
    if not sys.stdout.isatty():
        for chunk in chunks:
            write_bytes(chunk.data)
        return
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    for chunk in chunks:
        write_bytes(decoder.decode(chunk.data).encode())
    write_bytes(decoder.decode(b"", final=True).encode())
