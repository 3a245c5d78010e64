"""The URL of an endpoint, and which addresses may be contacted.

- There is no default URL. http is allowed to loopback and private addresses only; anything else needs https.
- A URL holds no user, password, query or fragment. The key comes from an environment variable.
- The name is resolved once per request, and the connection goes to the address that was checked. Link-local
  (cloud metadata), multicast, reserved and unspecified addresses are refused. Redirects are not followed.
- A key is never sent over plain http to another machine.
- Proxies of the environment are not used.
- The URL of a saved model is contacted only if the environment variable of `ALLOWED_HOSTS` names its host.
"""

from __future__ import annotations

import ipaddress
import os
import socket
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from partly.errors import SettingError

KEY_VARIABLE = "PARTLY_LANGUAGE_MODEL_KEY"
ALLOWED_HOSTS = "PARTLY_LANGUAGE_MODEL_HOSTS"  # names hosts, separated by commas, that saved models may contact
Address = ipaddress.IPv4Address | ipaddress.IPv6Address


@dataclass(frozen=True)
class Endpoint:
    """A checked URL. The key is not part of any output."""

    url: str
    scheme: str
    host: str
    port: int
    path: str
    key: str = field(default="", repr=False)


def parse_url(url: str, key_variable: str = KEY_VARIABLE) -> Endpoint:
    """Check the base URL of an endpoint, such as http://127.0.0.1:8000/v1, and read the key from the environment."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        parts, port = urlsplit(""), None
    fault = _describe_fault(url, parts)
    if fault:
        raise SettingError(f"url: {fault}. Give the base URL of the endpoint, such as http://127.0.0.1:8000/v1.")
    key = os.environ.get(key_variable, "")
    if not key.isascii() or not key.isprintable():
        raise SettingError(f"{key_variable}: holds characters that no key has. Set it again, without line ends.")
    host = str(parts.hostname)
    path = f"{parts.path.rstrip('/')}/chat/completions"
    return Endpoint(url.rstrip("/"), parts.scheme, host, port or (443 if parts.scheme == "https" else 80), path, key)


def resolve(endpoint: Endpoint) -> str:
    """Return the address to connect to; refuse names that resolve to an address outside the rules above."""
    try:
        infos = socket.getaddrinfo(endpoint.host, endpoint.port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise ConnectionRefusedError(f"the host {endpoint.host} cannot be resolved") from error
    addresses = [_plain(ipaddress.ip_address(str(info[4][0]).partition("%")[0])) for info in infos]
    for address in addresses:
        fault = _describe_address_fault(endpoint, address)
        if fault:
            raise SettingError(f"{endpoint.url}: {fault}")
    return str(addresses[0])


def is_allowed(host: str) -> bool:
    """Tell whether the environment allows saved models to contact a host."""
    return host in [name.strip() for name in os.environ.get(ALLOWED_HOSTS, "").split(",")]


def _describe_address_fault(endpoint: Endpoint, address: Address) -> str:
    if address.is_loopback:
        return ""
    if address.is_link_local or address.is_multicast or address.is_unspecified or address.is_reserved:
        return f"leads to {address}, which is no address of an endpoint. Name another host."
    if endpoint.scheme == "https":
        return ""
    if not address.is_private:
        return "http would send items in the clear over a public network. Use https."
    if endpoint.key:
        return "http would send the key in the clear to another machine. Use https, or unset the key."
    return ""


def _plain(address: Address) -> Address:
    """Return the IPv4 address inside of a mapped IPv6 address."""
    mapped = getattr(address, "ipv4_mapped", None)
    return address if mapped is None else mapped


def _describe_fault(url: str, parts: object) -> str:
    """Describe what is wrong with a URL, without repeating what may be a password."""
    scheme, host = getattr(parts, "scheme", ""), getattr(parts, "hostname", None)
    if not url.isascii() or not url.isprintable() or " " in url:
        return "it holds spaces or characters that are not ASCII"
    if scheme not in ("http", "https") or not host:
        return "it is no http or https URL"
    if getattr(parts, "username", None) is not None or getattr(parts, "password", None) is not None:
        return "it holds a user or password; the key comes from an environment variable"
    if getattr(parts, "query", "") or getattr(parts, "fragment", ""):
        return "it has a query or fragment"
    return ""
