"""Which URLs and addresses are contacted."""

from __future__ import annotations

import socket
from typing import Any

import pytest

from partly.errors import SettingError
from partly.teachers.chat.endpoint import KEY_VARIABLE, is_allowed, parse_url, resolve


@pytest.mark.parametrize(
    "url",
    [
        "",
        "localhost:8000",
        "file:///etc/passwd",
        "gopher://127.0.0.1/",
        "http://",
        "http://user:secret@host/v1",
        "http://host/v1?key=secret",
        "http://host/v1#x",
        "http://ho st/v1",
        "http://host:99999/v1",
        "http://höst/v1",
        "http://host/v1\r\nX: y",
        "http://[::1/v1",
    ],
)
def test_urls_that_are_refused(url: str) -> None:
    with pytest.raises(SettingError, match="Give the base URL") as caught:
        parse_url(url)
    assert "secret" not in str(caught.value)


def test_the_path_and_the_port() -> None:
    endpoint = parse_url("https://api.example.com/v1/")
    assert (endpoint.port, endpoint.path) == (443, "/v1/chat/completions")


def leads_to(monkeypatch: pytest.MonkeyPatch, *addresses: str) -> None:
    def getaddrinfo(*args: Any, **more: Any) -> list[Any]:
        return [(0, 0, 0, "", (address, 80)) for address in addresses]

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)


@pytest.mark.parametrize(
    ("scheme", "address"),
    [
        ("https", "169.254.169.254"),
        ("https", "::ffff:169.254.169.254"),
        ("https", "fe80::1"),
        ("https", "0.0.0.0"),
        ("https", "::"),
        ("https", "224.0.0.1"),
        ("https", "240.0.0.1"),
        ("http", "8.8.8.8"),
        ("http", "2606:4700::1111"),
    ],
)
def test_addresses_that_are_refused(monkeypatch: pytest.MonkeyPatch, scheme: str, address: str) -> None:
    for addresses in ([address], ["127.0.0.1", address]):  # a name with one good and one bad address
        leads_to(monkeypatch, *addresses)
        with pytest.raises(SettingError, match=r"no address of an endpoint|in the clear"):
            resolve(parse_url(f"{scheme}://some.host/v1"))


@pytest.mark.parametrize(
    ("scheme", "address"),
    [("http", "127.0.0.1"), ("http", "::1"), ("http", "192.168.1.5"), ("https", "8.8.8.8"), ("https", "10.0.0.1")],
)
def test_addresses_that_are_allowed(monkeypatch: pytest.MonkeyPatch, scheme: str, address: str) -> None:
    leads_to(monkeypatch, address)
    assert resolve(parse_url(f"{scheme}://some.host/v1")) == address


def test_a_key_does_not_leave_the_machine_in_the_clear(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(KEY_VARIABLE, "secret-key")
    leads_to(monkeypatch, "192.168.1.5")
    with pytest.raises(SettingError, match="key in the clear") as caught:
        resolve(parse_url("http://some.host/v1"))
    assert "secret-key" not in str(caught.value)
    assert "secret-key" not in repr(parse_url("http://some.host/v1"))
    monkeypatch.setenv(KEY_VARIABLE, "two\nlines")
    with pytest.raises(SettingError, match="no key has"):
        parse_url("http://some.host/v1")


def test_hosts_of_saved_models_are_named_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not is_allowed("127.0.0.1")
    monkeypatch.setenv("PARTLY_LANGUAGE_MODEL_HOSTS", "a.example, 127.0.0.1")
    assert is_allowed("127.0.0.1")
    assert not is_allowed("b.example")
