"""Messages over a stream socket: eight bytes of length, then a pickle. Both ends are this program."""

from __future__ import annotations

import pickle
import socket
import struct

_LENGTH = struct.Struct("!Q")


def encode_frame(value: object) -> bytes:
    """The pickle of ``value``. Raises whatever pickle raises."""
    return pickle.dumps(value, protocol=pickle.HIGHEST_PROTOCOL)


def send_frame(channel: socket.socket, frame: bytes) -> None:
    """Send one frame whole. Raises OSError when the other end is gone."""
    channel.sendall(_LENGTH.pack(len(frame)))
    channel.sendall(frame)


def receive_frame(channel: socket.socket) -> bytearray | None:
    """Receive one frame; ``None`` when the other end closed, in the middle of a frame or between two."""
    header = _receive_exactly(channel, _LENGTH.size)
    if header is None:
        return None
    return _receive_exactly(channel, _LENGTH.unpack(header)[0])


def _receive_exactly(channel: socket.socket, size_bytes: int) -> bytearray | None:
    buffer = bytearray(size_bytes)
    view = memoryview(buffer)
    received = 0
    while received < size_bytes:
        count = channel.recv_into(view[received:], 0, socket.MSG_WAITALL)
        if count == 0:
            return None
        received += count
    return buffer
