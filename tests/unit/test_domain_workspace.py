from __future__ import annotations

import pytest
from sessionref_server.domain.workspace import same_workspace


@pytest.mark.parametrize(
    ("recorded", "target", "same"),
    [
        ("/w/a", "/w/a", True),
        ("/w/a", "/w/a/", False),
        ("/w/a", "/W/A", False),
        ("/w/a\\b", "/w/a/b", False),
        (None, "/w", False),
        ("/w", None, False),
        (None, None, False),
        ("", "", True),
        ("C:\\Users\\Me\\app", "c:/users/me/app/", True),
        ("C:\\Users\\Me\\app", "D:\\Users\\Me\\app", False),
        ("\\\\server\\share\\x", "\\\\SERVER\\share\\x\\", True),
        ("\\\\?\\C:\\x", "c:\\X", True),
        ("C:", "c:\\", True),
        ("C:relative", "c:relative", False),
    ],
)
def test_recorded_directories_compare_by_their_own_flavour(recorded: str | None, target: str | None, *, same: bool) -> None:
    assert same_workspace(recorded, target) is same


def test_a_resolver_decides_when_the_texts_differ() -> None:
    asked: list[tuple[str, str]] = []

    def same_directory(recorded: str, target: str) -> bool:
        asked.append((recorded, target))
        return True

    assert same_workspace("/srv/app", "/home/u/app", same_directory)
    assert same_workspace("/w", "/w", same_directory)
    assert asked == [("/srv/app", "/home/u/app")]
