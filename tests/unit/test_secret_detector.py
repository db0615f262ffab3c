"""Secrets are found, look-alikes are left alone. Every secret here is made up while the test runs."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from pathlib import Path

import pytest
from fakes.invented_secrets import ALPHANUMERIC, HEX, SECRETS, Inventor, invented_secrets, look_alikes
from sessionref_server.adapters.secrets import kingfisher
from sessionref_server.adapters.secrets.kingfisher import OVERLAP_BYTES, WINDOW_BYTES, KingfisherDetector
from sessionref_server.adapters.secrets.likeness import is_placeholder, looks_chosen, looks_random
from sessionref_server.domain.errors import InvalidConfigError

SEEDS = range(5)


@pytest.fixture(scope="module")
def cache_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Compiled rules, written while everybody may do everything."""
    folder = tmp_path_factory.mktemp("cache") / "rules"
    before = os.umask(0)
    try:
        KingfisherDetector(folder).load()
    finally:
        os.umask(before)
    return folder


@pytest.fixture(scope="module")
def detector(cache_folder: Path) -> KingfisherDetector:
    detector = KingfisherDetector(cache_folder)
    detector.load()
    return detector


def found(detector: KingfisherDetector, text: str) -> list[str]:
    data = text.encode()
    return [data[first:last].decode() for first, last in detector.find(data)]


def a_key() -> str:
    return "ghp_" + Inventor(random.randrange(10**9)).some(ALPHANUMERIC, 36)


def test_the_sample_is_large_enough() -> None:
    assert len({kind for kind, _, _ in SECRETS}) >= 40
    assert len(set(look_alikes(0))) >= 40


@pytest.mark.parametrize("number", range(len(SECRETS)), ids=[kind for kind, _, _ in SECRETS])
def test_an_invented_secret_is_hidden_whole(detector: KingfisherDetector, number: int) -> None:
    for seed in SEEDS:
        sample = invented_secrets(seed)[number]
        hidden = found(detector, sample.text)
        assert any(sample.secret in text for text in hidden), sample.kind
        assert sum(map(len, hidden)) <= len(sample.secret) + len("https://hooks.slack.com/services/")


def test_a_look_alike_is_left_alone(detector: KingfisherDetector) -> None:
    assert {text: found(detector, text) for seed in SEEDS for text in look_alikes(seed)} == {
        text: [] for seed in SEEDS for text in look_alikes(seed)
    }


def test_all_secrets_in_one_text_are_hidden_and_all_look_alikes_stay(detector: KingfisherDetector) -> None:
    samples, others = invented_secrets(1), look_alikes(1)
    text = "\n\n".join([sample.text for sample in samples] + others)
    hidden = found(detector, text)
    assert [sample.kind for sample in samples if not any(sample.secret in part for part in hidden)] == []
    assert [other for other in others if any(part in other for part in hidden)] == []


def test_ranges_ascend_and_do_not_overlap(detector: KingfisherDetector) -> None:
    data = "\n".join(sample.text for sample in invented_secrets(2)).encode()
    edges = [edge for both in detector.find(data) for edge in both]
    assert edges == sorted(edges)
    assert len(set(edges)) == len(edges)


@pytest.mark.parametrize("before", ["", "é" * 100, "\ufeff", "a\x00b\x00", "日本語 ", "\x1b[31m", "ÿþ"])
def test_offsets_count_bytes_whatever_comes_before(detector: KingfisherDetector, before: str) -> None:
    key = a_key()
    data = f"{before} {key} é".encode()
    first = data.index(key.encode())
    assert detector.find(data) == [(first, first + len(key))]


@pytest.mark.parametrize("data", [b"", b"\n", b"\xff\xfe\x00k", b"\x80" * 1000])
def test_text_without_secrets_has_none(detector: KingfisherDetector, data: bytes) -> None:
    assert detector.find(data) == []


@pytest.mark.parametrize("line", ["word " * 20 + "\n", "word "], ids=["lines", "one line"])
@pytest.mark.parametrize("shift", [-60, -40, -20, -1, 0, 1])
def test_a_secret_at_the_edge_of_a_window_is_hidden_whole(detector: KingfisherDetector, line: str, shift: int) -> None:
    key = a_key()
    filler = (line * (WINDOW_BYTES // len(line) * 3)).encode()
    for edge in (WINDOW_BYTES, 2 * WINDOW_BYTES - OVERLAP_BYTES):
        data = filler[: edge + shift] + b" " + key.encode() + b" " + filler[edge + shift :]
        first = data.index(key.encode())
        assert detector.find(data) == [(first, first + len(key))]


def test_a_long_value_is_hidden_to_its_end(detector: KingfisherDetector) -> None:
    value = Inventor(5).some(ALPHANUMERIC, 3000)
    assert found(detector, f'secret = "{value}" # end') == [value]


def test_a_hint_to_ignore_does_not_help(detector: KingfisherDetector) -> None:
    key = a_key()
    for hint in ("kingfisher:ignore", "betterleaks:allow", "gitleaks:allow", "noqa"):
        assert found(detector, f"token = {key}  # {hint}") == [key]


def test_prose_between_two_markers_of_a_key_is_no_key(detector: KingfisherDetector) -> None:
    text = "-----BEGIN PRIVATE KEY-----\n" + "This is how such a file begins, as you see. " * 20 + "\n-----END PRIVATE KEY-----"
    assert found(detector, text) == []


def test_work_is_linear_in_text_made_to_be_slow(detector: KingfisherDetector) -> None:
    # Steps are not countable inside the scanner; the windows it is given are.
    sizes: list[int] = []
    for text in (b"-----BEGIN PRIVATE KEY-----\n" * 20_000, b"a" * 500_000):
        windows = [len(window) for _, window in kingfisher._windows(text)]
        sizes.append(max(windows))
        assert sum(windows) <= len(text) * 1.3
    assert max(sizes) <= WINDOW_BYTES
    assert detector.find(b"-----BEGIN PRIVATE KEY-----\n" * 3000) == []


def test_find_loads_by_itself(cache_folder: Path) -> None:
    key = a_key()
    assert found(KingfisherDetector(cache_folder), key) == [key]


async def test_a_scanner_that_cannot_be_loaded_stops_the_start_and_every_find(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "kingfisher_sdk", None)
    detector = KingfisherDetector()
    with pytest.raises(InvalidConfigError, match=r"\(ModuleNotFoundError\)") as caught:
        await detector.start()
    assert caught.value.metadata == {"key": "redact_secrets"}
    with pytest.raises(InvalidConfigError):
        detector.find(b"anything")


def test_a_scanner_that_finds_nothing_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    class Blind:
        def scan(self, data: bytes) -> list[object]:
            del data
            return []

    monkeypatch.setattr(kingfisher, "_compile", lambda _: Blind())
    with pytest.raises(InvalidConfigError):
        KingfisherDetector().find(b"anything")


def test_the_rule_cache_is_private(cache_folder: Path) -> None:
    assert {oct(path.stat().st_mode & 0o777) for path in [cache_folder, *cache_folder.iterdir()]} == {"0o700", "0o600"}


@pytest.mark.parametrize("length", [16, 20, 32, 40])
@pytest.mark.parametrize("alphabet", [ALPHANUMERIC, HEX])
def test_generated_values_look_random(alphabet: str, length: int) -> None:
    make = Inventor(11)
    values = [make.some(alphabet, length) for _ in range(1000)]
    assert sum(map(looks_random, values)) >= 950


@pytest.mark.parametrize(
    "value",
    [
        "created_at_descending_v2",
        "getUserAccountSettings2",
        "cl100k_base_extended",
        "SHA256_WITH_RSA_2048",
        "2024-05-01T12:00:00Z",
        "1234567890123456",
        "v1.2.3-beta4.build567",
        "/etc/app/secrets/key_base_2.txt",
        "123e4567-e89b-12d3-a456-426614174000",
        "short1A",
        "",
    ],
)
def test_names_numbers_and_dates_do_not_look_random(value: str) -> None:
    assert not looks_random(value)


@pytest.mark.parametrize(
    "value", ["$TOKEN", "<token>", "{{ key }}", "changeme123", "YOUR_KEY", "xxxxxxxx", "Password1", "AKIAEXAMPLE"]
)
def test_a_stand_in_is_a_placeholder(value: str) -> None:
    assert is_placeholder(value)


@pytest.mark.parametrize(("value", "chosen"), [("P4ssw0rd!", True), ("Password", False), ("abc!def", False), ("12345!", False)])
def test_a_password_chosen_by_rule_is_told_by_its_signs(value: str, chosen: bool) -> None:  # noqa: FBT001
    assert looks_chosen(value) is chosen


def test_importing_the_detector_loads_neither_scanner_nor_grpc() -> None:
    program = (
        "import sys; from sessionref_server.adapters.secrets.kingfisher import KingfisherDetector; KingfisherDetector();"
        "print(sorted({'kingfisher_sdk', 'grpc', 'google'} & set(sys.modules)))"
    )
    assert subprocess.check_output([sys.executable, "-c", program], text=True) == "[]\n"
