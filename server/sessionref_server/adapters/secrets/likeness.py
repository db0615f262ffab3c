"""Whether a value looks like a secret, or like one of the many things that stand where secrets stand."""

from __future__ import annotations

import string
from itertools import pairwise

MIN_RANDOM_CHARACTERS = 12
MIN_LETTERS_ONLY_CHARACTERS = 24
MIN_HEX_CHARACTERS = 16
MIN_LETTER_SHARE = 0.15
"""Fewer letters make a number, a date or a version."""
MIN_PAIRS = 3
MAX_EXAMINED_CHARACTERS = 64
"""The start of a long value says enough."""
MAX_FILLER_CHARACTERS = 2
"""Different characters in a filler such as ``xxxx`` or ``*-*-*``."""

# Two signs of chance: the kind of character (lower case, upper case, digit) changes often, and the pairs of letters are not
# those of words. In 38,000 identifiers with digits or capitals 1 % passed, nearly all of them base64; of random values of 20
# letters and digits 98 %.
OFTEN_CHANGES, OFTEN_COMMON_PAIRS = 0.25, 0.6
SELDOM_CHANGES, SELDOM_COMMON_PAIRS = 0.1, 0.4

_PACKED_PAIRS = (
    "abacadagaialamanaparasatauaybablbucacechckclcocrctcudadedidoeaecedefegelemeneperesetevexfffifogegrhahehihoiaic"
    "idieigiliminioipirisitizkelaldlelillloltlulymamemimompnancndnenfngninonsntnvocodolomonoooporosotouowpapephplpo"
    "prptqurarcrdrerirmrorrrsrtrysascseshsisospssstsutatethtitotrtstttutyubueulumunupurusutvavevixextypze"
)
_COMMON_PAIRS = frozenset(first + second for first, second in zip(_PACKED_PAIRS[::2], _PACKED_PAIRS[1::2], strict=True))
"""The pairs of letters that make up 84 % of the words in source code."""

_PLACEHOLDER_PARTS = (
    "example",
    "your",
    "changeme",
    "change_me",
    "change-me",
    "placeholder",
    "dummy",
    "redacted",
    "xxxx",
    "****",
    "...",
    "…",
    "${",
    "{{",
    "$(",
    "process.env",
    "os.environ",
    "getenv",
    "://",
)
_PLACEHOLDER_STARTS = ("$", "<", "{", "%", "@", "[", "(", "&")
_PLACEHOLDER_WORDS = frozenset(
    {
        "admin",
        "changeme",
        "default",
        "foobar",
        "guest",
        "mypassword",
        "mysecret",
        "mysql",
        "none",
        "null",
        "pass",
        "passwd",
        "password",
        "postgres",
        "postgresql",
        "pw",
        "pwd",
        "redis",
        "root",
        "rootpassword",
        "s3cret",
        "secret",
        "string",
        "test",
        "testing",
        "testpass",
        "token",
        "true",
        "undefined",
        "user",
        "userpass",
        "username",
    }
)
_PASSWORD_SPECIALS = frozenset("!@#$%^&*+?~")
_HEX_DIGITS = frozenset(string.hexdigits)
_LOWER_HEX = frozenset("0123456789abcdef")
_UPPER_HEX = frozenset("0123456789ABCDEF")
_UUID_GROUPS = [8, 4, 4, 4, 12]


def is_placeholder(value: str) -> bool:
    """Whether a value only stands in for a secret: a variable, an example, a default everybody knows."""
    lowered = value[:MAX_EXAMINED_CHARACTERS].lower()
    if lowered.startswith(_PLACEHOLDER_STARTS) or lowered.strip("0123456789!_-") in _PLACEHOLDER_WORDS:
        return True
    return len(set(lowered)) <= MAX_FILLER_CHARACTERS or any(part in lowered for part in _PLACEHOLDER_PARTS)


def looks_random(value: str) -> bool:
    """Whether a value seems to come from a generator rather than from a person naming a thing. UUIDs and numbers do not count."""
    examined = value[:MAX_EXAMINED_CHARACTERS]
    characters = "".join(character for character in examined if character.isascii() and character.isalnum())
    if not _has_room_for_chance(characters) or _is_uuid(examined):
        return False
    if len(characters) >= MIN_HEX_CHARACTERS and (_LOWER_HEX.issuperset(characters) or _UPPER_HEX.issuperset(characters)):
        return True
    changes, common_pairs = _share_of_changes(characters), _share_of_common_pairs(examined)
    if changes >= OFTEN_CHANGES:
        return common_pairs is None or common_pairs <= OFTEN_COMMON_PAIRS
    return changes >= SELDOM_CHANGES and common_pairs is not None and common_pairs <= SELDOM_COMMON_PAIRS


def looks_chosen(value: str) -> bool:
    """Whether a value looks like a password somebody was made to choose: letters, digits and a sign."""
    return (
        any(character.isalpha() for character in value)
        and any(character.isdigit() for character in value)
        and not _PASSWORD_SPECIALS.isdisjoint(value)
    )


def _has_room_for_chance(characters: str) -> bool:
    if len(characters) < MIN_RANDOM_CHARACTERS:
        return False
    if sum(map(str.isalpha, characters)) < MIN_LETTER_SHARE * len(characters):
        return False
    if any(map(str.isdigit, characters)):
        return True
    return len(characters) >= MIN_LETTERS_ONLY_CHARACTERS and not characters.islower() and not characters.isupper()


def _share_of_changes(characters: str) -> float:
    kinds = ["0" if character.isdigit() else "A" if character.isupper() else "a" for character in characters]
    # From upper to lower case is how every camel-case word begins.
    changes = sum(1 for before, after in pairwise(kinds) if before != after and (before, after) != ("A", "a"))
    return changes / len(characters)


def _share_of_common_pairs(value: str) -> float | None:
    """``None`` when there are too few pairs of letters to tell."""
    pairs = common = 0
    for before, after in pairwise(value):
        if before.isalpha() and after.isalpha() and not (before.islower() and after.isupper()):
            pairs += 1
            common += (before + after).lower() in _COMMON_PAIRS
    return common / pairs if pairs >= MIN_PAIRS else None


def _is_uuid(value: str) -> bool:
    groups = value.split("-")
    return [len(group) for group in groups] == _UUID_GROUPS and all(_HEX_DIGITS.issuperset(group) for group in groups)
