"""What is pure: retention, and the grammar of mentions on texts made to slow it down."""

from __future__ import annotations

import time
from collections.abc import Callable

from sessionref_server.domain.capture import Capture
from sessionref_server.domain.conversation import Conversation
from sessionref_server.domain.errors import SessionReferenceError
from sessionref_server.domain.mention import parse_mentions
from sessionref_server.domain.message import Message, Role
from sessionref_server.domain.prepare.retain import retain
from sessionref_server.domain.session import SessionId

from tests.bench.report import Curve, exponent, median
from tests.bench.texts import Texts
from tests.bench.workbench import Workbench

BUDGET_BYTES = 64 * 1024
MESSAGES = (2_000, 20_000, 200_000)
SIZES = (10_000, 100_000, 1_000_000)
ROUNDS = 5
HOSTILE = {
    "openings": "@[",
    "labels": "@[a](",
    "schemes": "dsh-session:",
    "nested": "@[@[](dsh-session:",
    "backslashes": "@[\\\\\\",
    "cut mentions": "@[x](dsh-session:abc ",
    "file tokens": '@"a ',
    "at signs": " @a",
}


def measure(bench: Workbench) -> None:
    """Best of five, since what disturbs only adds."""
    report, texts = bench.report, Texts(9)
    costs: dict[float, float] = {}
    for count in MESSAGES:
        capture = _capture(texts, count)
        costs[count] = _best_ms(lambda capture=capture: retain(capture, "label", BUDGET_BYTES))  # type: ignore[misc]
    report.at_most("retention of 20,000 messages into 64 KiB", costs[20_000], "ms", 50)
    report.info("retention of 200,000 messages into 64 KiB", costs[200_000], "ms")
    report.at_most("growth of retention with messages", exponent(costs), "exponent", 1.05)
    curves = [Curve(label="retention: messages", points=list(costs.items()))]
    worst: dict[str, dict[float, float]] = {}
    for name, part in HOSTILE.items():
        worst[name] = {size: _best_ms(lambda text=(part * size)[:size]: _parsed(text)) for size in SIZES}  # type: ignore[misc]
        curves.append(Curve(label=f"mentions: {name}", points=list(worst[name].items())))
    slowest = max(worst, key=lambda name: worst[name][SIZES[-1]])
    report.at_most(f"mentions in 1 MB, slowest text ({slowest})", worst[slowest][SIZES[-1]], "ms", 100)
    report.at_most("growth of mentions with size, worst text", max(exponent(costs) for costs in worst.values()), "exponent", 1.1)
    report.draw("pure-growth", "messages or characters", "ms", curves, log_x=True)


def _capture(texts: Texts, count: int) -> Capture:
    messages = (
        Message(Role.ASSISTANT if number % 2 else Role.USER, texts.remark().decode(), checkpoint=False) for number in range(count)
    )
    return Capture(session_id=SessionId("s"), cwd="/work", through_seq=count, conversation=Conversation.of(messages))


def _parsed(text: str) -> None:
    try:
        parse_mentions(text, field="texts", index=0)
    except SessionReferenceError:
        return


def _best_ms(work: Callable[[], object]) -> float:
    times: list[float] = []
    for _ in range(ROUNDS):
        begun = time.perf_counter()
        work()
        times.append(1000 * (time.perf_counter() - begun))
    return min(times) if min(times) > 0 else median(times)
