"""SessionStoreService: in the contract, not in this release."""

from __future__ import annotations

from typing import Any, NoReturn

from sessionref.v1.session_store_service_pb2_grpc import SessionStoreServiceServicer

from sessionref_server.domain.errors import NotServedError
from sessionref_server.wire.guard import Calls, Context, guarded


def _not_served(name: str) -> Any:  # noqa: ANN401 - as guarded
    async def method(_servicer: object, _request: object, _context: Context) -> NoReturn:
        raise NotServedError(f"{name} is not in this release")

    method.__name__ = name
    return guarded(method)


class StoreService(SessionStoreServiceServicer):
    """Answers every RPC with UNIMPLEMENTED and reason NOT_SERVED."""

    def __init__(self, calls: Calls) -> None:
        self.calls = calls

    CreateSession = _not_served("CreateSession")
    AppendEvents = _not_served("AppendEvents")
    GetSession = _not_served("GetSession")
    ListSessions = _not_served("ListSessions")
    DeleteSession = _not_served("DeleteSession")
    UpdateSessionTitle = _not_served("UpdateSessionTitle")
