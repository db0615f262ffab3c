"""Finds mentions. Texts that would take long are read in a worker, so that nobody waits for somebody else's megabytes."""

from __future__ import annotations

from collections.abc import Sequence

from sessionref_server.domain.limits import MAX_FILE_MENTIONS, MAX_FILE_MENTIONS_AT_ONCE
from sessionref_server.domain.mention import ParsedText, parse_mentions
from sessionref_server.domain.ports import Offload
from sessionref_server.domain.prepare.parse import rewrite_mentions
from sessionref_server.domain.reference import Content, OpaqueContent, SessionReference, TextContent

INLINE_CHARACTERS = 16_384
"""Text up to this size is read in place: at the worst it takes about two milliseconds, less than a worker's round trip."""


class Mentions:
    """The grammar of mentions, off the event loop where it matters."""

    def __init__(self, offload: Offload) -> None:
        self._offload = offload

    async def parse(self, texts: Sequence[str]) -> list[ParsedText]:
        """Read texts exactly as the grammar says.

        Raises:
            InvalidReferenceError: a mention does not decode; metadata ``field`` is ``texts``, ``index`` the text.
        """
        texts = list(texts)
        if sum(map(len, texts)) <= INLINE_CHARACTERS:
            return parse_texts(texts)
        return await self._offload.run(parse_texts, texts)

    async def rewrite(self, content: Sequence[Content]) -> tuple[Sequence[Content], list[SessionReference]]:
        """Make mentions in text blocks readable and collect them. Other blocks are passed by.

        Raises:
            InvalidReferenceError: a mention does not decode; metadata ``field`` is ``content``, ``index`` the block.
        """
        if sum(len(block.text) for block in content if isinstance(block, TextContent)) <= INLINE_CHARACTERS:
            return rewrite_mentions(content)
        places = [block if isinstance(block, TextContent) else OpaqueContent(None) for block in content]
        rewritten, references = await self._offload.run(rewrite_mentions, places)
        restored = [new if isinstance(new, TextContent) else old for old, new in zip(content, rewritten, strict=True)]
        return restored, references


def parse_texts(texts: Sequence[str]) -> list[ParsedText]:
    """Read texts one after the other."""
    parsed: list[ParsedText] = []
    files_left = MAX_FILE_MENTIONS_AT_ONCE
    for index, text in enumerate(texts):
        file_limit = min(MAX_FILE_MENTIONS, files_left)
        parsed.append(parse_mentions(text, field="texts", index=index, file_limit=file_limit))
        files_left -= len(parsed[-1].files)
    return parsed
