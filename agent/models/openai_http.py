"""The way to an OpenAI-compatible server: one request, tried again while the server is busy or away.

It follows no redirect, since a key and record values would go along, and a key is read from OPENAI_API_KEY alone and stands in no
message.
"""

from __future__ import annotations

import http.client
import ipaddress
import json
import os
import urllib.error
import urllib.parse
import urllib.request
from typing import Any

import stamina
import stamina.instrumentation

from workspace.errors import ModelError

PATIENCE = 120.0  # seconds a request
ATTEMPTS = 4
stamina.instrumentation.set_on_retry_hooks([])  # a retry prints nothing
_AGAIN = (408, 425, 429, 500, 502, 503, 504)


class Endpoint:
    """Where a server's `/chat/completions` is. `local` is true for one on this machine."""

    def __init__(self, url: str, patience: float = PATIENCE) -> None:
        parts = urllib.parse.urlsplit(url)
        path = parts.path.rstrip("/") or "/v1"
        self.url = urllib.parse.urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], path, "", ""))
        self.local = is_local(parts.hostname or "")
        self._patience = patience
        self._key = os.environ.get("OPENAI_API_KEY", "")
        if self._key and not self.local and parts.scheme != "https":
            raise ModelError(
                "the key in OPENAI_API_KEY would go over the network in the clear", where=self.url,
                advice="name the server with https://, or unset OPENAI_API_KEY",
            )  # fmt: skip
        # a proxy is not on this machine, and a server here is
        proxies = urllib.request.ProxyHandler({}) if self.local else urllib.request.ProxyHandler()
        self._opener = urllib.request.build_opener(proxies, _NoRedirect)

    def ask(self, body: dict[str, Any]) -> dict[str, Any]:
        """The server's reply. RefusedError for a request that it doesn't take; ModelError where it gives no answer after
        several attempts."""
        data = json.dumps(body).encode()
        headers = {"Content-Type": "application/json", "User-Agent": "packhorse"}
        if self._key:
            headers["Authorization"] = f"Bearer {self._key}"
        try:
            for attempt in stamina.retry_context(
                on=_again, attempts=ATTEMPTS, timeout=None, wait_initial=0.5, wait_max=20.0
            ):
                with attempt:
                    request = urllib.request.Request(f"{self.url}/chat/completions", data, headers)
                    with self._opener.open(request, timeout=self._patience) as reply:
                        found = json.load(reply)
        except urllib.error.HTTPError as error:
            if error.code in (400, 422):
                raise RefusedError(f"the model's server refuses: {error.code} {error.reason}", where=self.url) from None
            raise ModelError(
                f"the model's server refuses: {error.code} {error.reason}", where=self.url,
                advice="OPENAI_API_KEY holds the key" if error.code in (401, 403) else "",
            ) from None  # fmt: skip
        except (OSError, ValueError, http.client.HTTPException) as error:
            reason = getattr(error, "reason", error)
            raise ModelError(
                f"the model's server gives no answer: {type(reason).__name__}", where=self.url, advice="is it running?"
            ) from None
        if not isinstance(found, dict):
            raise ModelError("the model's server gives no answer: not an object", where=self.url)
        return found


class RefusedError(ModelError):
    """The server doesn't take a request of this form; another one may suit it."""


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: Any) -> None:
        """None: the redirect becomes an error."""
        return


def _again(error: Exception) -> bool | float:
    """Whether it is worth another attempt; a number is the seconds that the server asks for."""
    if isinstance(error, urllib.error.HTTPError):
        if error.code not in _AGAIN:
            return False
        wait = error.headers.get("Retry-After", "") if error.headers else ""
        return min(float(wait), 60.0) if wait.isdigit() and int(wait) else True
    return isinstance(error, (OSError, http.client.HTTPException))


def is_local(host: str) -> bool:
    """True for a name or an address that is this machine whatever a name server says."""
    if host.casefold() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
