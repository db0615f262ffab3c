"""Addresses, and the default one."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from typing import TYPE_CHECKING

import pytest
from sessionref_client import default_address
from sessionref_client.address import grpc_target

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def shared_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The temporary directory of a user without a runtime directory."""
    monkeypatch.delenv("SESSIONREF_ADDRESS", raising=False)
    monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


@pytest.mark.parametrize(
    ("address", "target"),
    [
        ("unix:/run/a.sock", "unix:/run/a.sock"),
        ("unix:///run/a.sock", "unix:/run/a.sock"),
        ("unix:/run/a b%.sock", "unix:/run/a%20b%25.sock"),
        ("localhost:50051", "localhost:50051"),
        ("[::1]:50051", "[::1]:50051"),
    ],
)
def test_address_is_named_as_grpc_does(address: str, target: str) -> None:
    assert grpc_target(address) == target


@pytest.mark.parametrize(
    "address",
    ["", "unix:", "unix:relative", "unix://host", "localhost", ":1", "host:", "host:port", "host:²", "http://host:1", "::1:5"],
)
def test_address_of_another_form_is_refused(address: str) -> None:
    with pytest.raises(ValueError, match="write unix:/path, unix:///path or host:port"):
        grpc_target(address)


def test_environment_variable_is_the_default_address(shared_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(shared_folder))
    monkeypatch.setenv("SESSIONREF_ADDRESS", "localhost:5")

    assert default_address() == "localhost:5"


def test_empty_environment_variable_counts_as_unset(shared_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", "/run/user/7")
    monkeypatch.setenv("SESSIONREF_ADDRESS", "")

    assert shared_folder.is_dir()
    assert default_address() == "unix:/run/user/7/sessionref/sessionref.sock"


@pytest.mark.parametrize("runtime", [None, "", "relative"])
def test_without_a_runtime_directory_the_socket_is_in_the_temporary_one(
    shared_folder: Path, monkeypatch: pytest.MonkeyPatch, runtime: str | None
) -> None:
    if runtime is not None:
        monkeypatch.setenv("XDG_RUNTIME_DIR", runtime)

    assert default_address() == f"unix:{shared_folder}/sessionref-{os.getuid()}/sessionref.sock"


def test_own_directory_in_the_temporary_one_is_used(shared_folder: Path) -> None:
    own = shared_folder / f"sessionref-{os.getuid()}"
    own.mkdir(mode=0o700)

    assert default_address() == f"unix:{own}/sessionref.sock"


def test_link_in_the_place_of_the_own_directory_is_refused(shared_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    (shared_folder / f"sessionref-{os.getuid()}").symlink_to(tmp_path_factory.mktemp("elsewhere"))

    with pytest.raises(PermissionError, match="is not a directory of this user"):
        default_address()


def test_directory_of_another_user_is_refused(shared_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stranger = os.getuid() + 1
    (shared_folder / f"sessionref-{stranger}").mkdir()
    monkeypatch.setattr(os, "getuid", lambda: stranger)

    with pytest.raises(PermissionError, match="is not a directory of this user"):
        default_address()


def test_values_errors_and_addresses_are_imported_without_grpc() -> None:
    program = "import sys, sessionref_client, sessionref_client.address; print('grpc' in sys.modules)"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}

    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)  # noqa: S603

    assert done.stdout == "False\n"


def test_every_public_name_is_there() -> None:
    import sessionref_client

    assert [name for name in sessionref_client.__all__ if not hasattr(sessionref_client, name)] == []
