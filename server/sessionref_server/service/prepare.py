"""Prepare: snapshots of referenced sessions as one bounded, untrusted, tag-safe message."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Sequence
from dataclasses import dataclass

from sessionref_server.domain.limits import DEFAULT_REFERENCE_CONTEXT_FRACTION, MAX_REFERENCES
from sessionref_server.domain.ports import ModelCatalogue
from sessionref_server.domain.prepare.budget import reference_budget_bytes
from sessionref_server.domain.prepare.parse import parse_references
from sessionref_server.domain.prepare.render import OmissionNotice, RetainedSource, render
from sessionref_server.domain.prepare.retain import retain
from sessionref_server.domain.reference import Content, Reference, SessionReference
from sessionref_server.domain.session import ModelRoute, SessionId
from sessionref_server.service.admission import Admission
from sessionref_server.service.mentions import Mentions
from sessionref_server.service.session_catalog import SessionCatalog
from sessionref_server.service.snapshots import Draft, SavedSnapshots, Snapshots


@dataclass(frozen=True, slots=True, kw_only=True)
class PrepareLimits:
    """What configuration says about Prepare."""

    max_references: int = MAX_REFERENCES
    max_reference_bytes: int | None = None
    reference_context_fraction: float = DEFAULT_REFERENCE_CONTEXT_FRACTION


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """The session that receives the context."""

    session_id: SessionId
    route: ModelRoute
    """Model it will talk to next; counts when its own log names none yet."""
    context_window_tokens: int | None = None
    """The window itself, when the host knows it; always counts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PrepareCall:
    """A message to prepare."""

    target: Target
    content: Sequence[Content]
    references: Sequence[SessionReference]
    parse_mentions: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextMessage:
    """The one message for the model, with the facts of where it came from."""

    message_id: str
    text: str
    sources: Sequence[RetainedSource]
    snapshots: SavedSnapshots

    @property
    def omissions(self) -> Sequence[OmissionNotice]:
        """One notice for each cut source."""
        return self.snapshots.notices


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """What to send to the model."""

    content: Sequence[Content]
    context: ContextMessage | None = None

    def undo(self) -> None:
        """The answer did not reach its caller: nothing that was saved for it stays."""
        if self.context is not None:
            self.context.snapshots.undo()


@dataclass(frozen=True, slots=True, kw_only=True)
class PrepareService:
    """The use case. Calls share nothing but the limit on how many run at once."""

    catalog: SessionCatalog
    models: ModelCatalogue
    mentions: Mentions
    snapshots: Snapshots
    admission: Admission
    limits: PrepareLimits

    async def prepare(self, call: PrepareCall, remaining_seconds: float | None = None) -> Prepared:
        """Parse; read, project and retain each source; spill, render; the first failure wins and nothing is published then.

        Projection runs where the log is read, in a worker process: a capture holds visible messages only.

        Raises:
            SessionReferenceError: any subclass but those of the session store.
        """
        content, references = await self._parse(call)
        if not references:
            return Prepared(content=content)
        async with self.admission.admit(remaining_seconds):
            budget_bytes = await self._budget_bytes(call.target)
            drafts = await self._read_all(references, call.target.session_id, budget_bytes)
            saved = await self.snapshots.save(call.target.session_id, drafts)
        sources = [draft.source for draft in drafts]
        text = render(sources, saved.notices).text
        message = ContextMessage(message_id=str(uuid.uuid4()), text=text, sources=sources, snapshots=saved)
        return Prepared(content=content, context=message)

    async def _parse(self, call: PrepareCall) -> tuple[Sequence[Content], list[Reference]]:
        content, found = await self.mentions.rewrite(call.content) if call.parse_mentions else (call.content, [])
        references = parse_references(call.target.session_id, [*call.references, *found], self.limits.max_references)
        return content, references

    async def _budget_bytes(self, target: Target) -> int:
        fixed_bytes, fraction = self.limits.max_reference_bytes, self.limits.reference_context_fraction
        if fixed_bytes is not None:
            return reference_budget_bytes(fixed_bytes, fraction, None)
        window_tokens = target.context_window_tokens
        if window_tokens is None:
            head = self.catalog.head(target.session_id)
            route = target.route if head is None or head.route is None else head.route
            window_tokens = await self.models.context_window_tokens(route)
        return reference_budget_bytes(None, fraction, window_tokens)

    async def _read_all(self, references: Sequence[Reference], owner: SessionId, budget_bytes: int) -> list[Draft]:
        """Read all in parallel. Of several failures the first in mention order is told, whichever came first in time."""
        reads = [self._read(reference, owner, budget_bytes) for reference in references]
        results = await asyncio.gather(*reads, return_exceptions=True)
        drafts: list[Draft] = []
        for result in results:
            if isinstance(result, BaseException):
                raise result
            drafts.append(result)
        return drafts

    async def _read(self, reference: Reference, owner: SessionId, budget_bytes: int) -> Draft:
        """Read and retain one source, and go on at once with its full text: that needs none of the others."""
        capture = await self.catalog.read_surface(reference.session_id)
        retained = retain(capture, reference.label, budget_bytes)
        return await self.snapshots.draft(owner, RetainedSource(reference=reference, capture=capture, retained=retained))
