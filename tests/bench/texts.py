"""Texts that look like what people and agents write: prompts, answers, tool output. Ready to stand between the quotes of JSON."""

from __future__ import annotations

import json
from random import Random


def _words(text: str, separator: str | None = None) -> tuple[str, ...]:
    return tuple(text.split(separator))


VERBS = _words("Fix|Add|Refactor|Explain|Speed up|Test|Review|Document|Split|Move|Debug|Port|Rename", "|")
SUBJECTS = _words(
    "payment login session search upload price order rate token mail release checkout audit image feature webhook user invoice "
    "cart stock report backup metrics trace cluster shard tenant billing coupon refund address locale theme editor viewer sync "
    "import export archive draft comment review branch merge deploy canary secret key quota alert incident runbook ledger 日本語"
)
PARTS = _words(
    "gateway form cache queue index worker parser history limiter refresh template script migration page log resizer flag "
    "settings test handler schema client adapter endpoint middleware component layout query cursor lock timer retry job "
    "pipeline fixture snapshot lexer iterator factory validator dashboard table modal menu router store reducer hook plugin "
    "bridge proxy"
)
REASONS = _words(
    "after timeouts|for guests|on Windows|in the nightly build|without a lock|before the release|again|for large files|in Safari|"
    "with two tenants|under load|when offline|on first start|for the demo|behind a proxy|after the upgrade|in strict mode",
    "|",
)
WORDS = _words(
    "the of and to in is that for it as was with be by on not he this are or from at which but have an had they you were their "
    "one all we can her has there been if more when will would who so no what up said about than into them could function "
    "returns value error file line test module import class call cache queue request response server client token session "
    "index path name list"
)


def title(random: Random, number: int) -> str:
    """A title as an agent makes it. Not unique, like real ones, but for some with an issue's number."""
    text = f"{random.choice(VERBS)} {random.choice(SUBJECTS)} {random.choice(PARTS)} {random.choice(REASONS)}"
    return f"{text} (#{number})" if number % 3 == 0 else text


def prose(random: Random, characters: int) -> str:
    """Sentences of about so many characters."""
    words: list[str] = []
    size = 0
    while size < characters:
        word = random.choice(WORDS)
        words.append(word if random.random() > 0.08 else word + ".\n")
        size += len(word) + 1
    return " ".join(words)


def tool_output(random: Random, characters: int) -> str:
    """Lines as programs print them, with quotes, paths, tabs and now and then something that is not ASCII."""
    lines: list[str] = []
    size = 0
    while size < characters:
        kind, word = random.random(), random.choice(WORDS)
        if kind < 0.5:
            line = f"src/{word}/{random.choice(WORDS)}_{random.randrange(1000)}.py:{random.randrange(900)}:\tdef {word}(self):"
        elif kind < 0.9:
            line = f'{random.randrange(10**9):>12} "{word}": {{"id": {random.randrange(10**6)}}}, // {prose(random, 40)}'
        else:
            line = f"✓ {prose(random, 60)} → {random.random():.6f} ms"
        lines.append(line)
        size += len(line) + 1
    return "\n".join(lines)


class Texts:
    """A store of texts, made once and used again and again, since making a gigabyte of them afresh would take minutes."""

    def __init__(self, seed: int) -> None:
        random = self.random = Random(seed)
        self._prompts = [_json(prose(random, random.randrange(40, 700))) for _ in range(64)]
        self._remarks = [_json(prose(random, random.randrange(60, 500))) for _ in range(64)]
        self._answers = [_json(prose(random, random.randrange(400, 4000))) for _ in range(64)]
        small = [_json(tool_output(random, random.randrange(100, 1600))) for _ in range(96)]
        middling = [_json(tool_output(random, random.randrange(2_000, 9_000))) for _ in range(24)]
        big = [_json(tool_output(random, random.randrange(30_000, 120_000))) for _ in range(6)]
        self._outputs = [small] * 78 + [middling] * 20 + [big] * 2

    def prompt(self) -> bytes:
        """What a person types."""
        return self.random.choice(self._prompts)

    def remark(self) -> bytes:
        """What a model says between two tools."""
        return self.random.choice(self._remarks)

    def answer(self) -> bytes:
        """What a model says at the end of a turn."""
        return self.random.choice(self._answers)

    def output(self) -> bytes:
        """What a tool gives back: often little, seldom a lot."""
        return self.random.choice(self.random.choice(self._outputs))


def _json(text: str) -> bytes:
    return json.dumps(text, ensure_ascii=False)[1:-1].encode()
