"""First step of Prepare: which sessions are referred to, and the person's message made readable."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sessionref_server.domain.errors import InvalidReferenceError, SelfReferenceError, TooManyReferencesError
from sessionref_server.domain.label import clean_label
from sessionref_server.domain.mention import parse_mentions
from sessionref_server.domain.reference import Content, Reference, SessionReference, TextContent
from sessionref_server.domain.session import SessionId


def parse_references(target_id: str, references: Sequence[SessionReference], max_references: int) -> list[Reference]:
    """Check references in order and keep the distinct ones, each with the label it had first.

    A label is cleaned to one line; it never decides anything. An absent one is the id.

    Args:
        target_id: The session the person is typing into.
        references: As given, in mention order.
        max_references: Most distinct references allowed.

    Raises:
        InvalidReferenceError: An id is empty or not valid Unicode.
        SelfReferenceError: A reference names the target.
        TooManyReferencesError: There are more distinct references than allowed. Checked last.
    """
    distinct: dict[str, Reference] = {}
    for index, reference in enumerate(references):
        session_id = _checked_id(reference.session_id, index)
        if session_id == target_id:
            raise SelfReferenceError("a session cannot refer to itself", session_id=session_id)
        if session_id not in distinct:
            label = clean_label(session_id if reference.label is None else reference.label)
            distinct[session_id] = Reference(session_id=session_id, label=label, input_index=len(distinct))
    if len(distinct) > max_references:
        raise TooManyReferencesError(
            f"{len(distinct)} sessions are referred to; at most {max_references} are allowed",
            count=len(distinct),
            maximum=max_references,
        )
    return list(distinct.values())


def rewrite_mentions(
    content: Sequence[Content], label: Callable[[str], str] = clean_label
) -> tuple[list[Content], list[SessionReference]]:
    """Make the mentions in text blocks readable and collect the references in order.

    A block without a mention comes back as the same object, so that a caller can tell which blocks it has to write anew.

    Raises:
        InvalidReferenceError: A mention does not decode; its metadata names the block.
    """
    rewritten: list[Content] = []
    references: list[SessionReference] = []
    for index, block in enumerate(content):
        if not isinstance(block, TextContent):
            rewritten.append(block)
            continue
        parsed = parse_mentions(block.text, label=label, field="content", index=index, file_limit=0)
        rewritten.append(TextContent(parsed.text) if parsed.references else block)
        references += parsed.references
    return rewritten, references


def _checked_id(session_id: str, index: int) -> SessionId:
    # Surrogates never pass a protobuf string; a caller inside the process may still hold some.
    if not session_id or (not session_id.isascii() and any("\ud800" <= character <= "\udfff" for character in session_id)):
        raise InvalidReferenceError("a reference needs a valid session id", field="references", index=index)
    return SessionId(session_id)
