"""FakeHub: an HTTP server on loopback that stands in for huggingface.co, as far as a pull goes: metadata by HEAD, bytes
by GET with ranges. It can cut a connection, stand still, refuse, and serve other bytes than it promised."""

from __future__ import annotations

import hashlib
import http.server
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

COMMIT = "0123456789abcdef0123456789abcdef01234567"


@dataclass
class FakeHub:
    """Serves one file as `acme/tiny/tiny.gguf`. `cut_at` ends the connection at that byte, once for each entry; `refuse` ends
    every GET before its first byte; `still_at` sends no more from that byte on; `ranges` holds what was asked for."""

    content: bytes
    size: int = 0
    etag: str = ""
    cut_at: list[int] = field(default_factory=list)
    refuse: bool = False
    still_at: int = 0
    ranges: list[str] = field(default_factory=list)

    def __enter__(self) -> FakeHub:
        self.size = self.size or len(self.content)
        self.etag = self.etag or hashlib.sha256(self.content).hexdigest()
        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def environment(self, home: Path) -> dict[str, str]:
        """What makes a command take it for the hub, and keep what it pulls under `home`."""
        return {"HF_ENDPOINT": f"http://127.0.0.1:{self._server.server_address[1]}", "PACKHORSE_DATA_HOME": str(home)}


def _handler(hub: FakeHub) -> type[http.server.BaseHTTPRequestHandler]:
    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_HEAD(self) -> None:
            if not self.path.endswith(".gguf") or "/resolve/" not in self.path or "nowhere" in self.path:
                self.send_response(404)
                self.send_header("X-Error-Code", "EntryNotFound")
                self.send_header("Content-Length", "0")
                self.end_headers()
                return
            self.send_response(200)
            self.send_header("X-Repo-Commit", COMMIT)
            self.send_header("X-Linked-Etag", f'"{hub.etag}"')
            self.send_header("X-Linked-Size", str(hub.size))
            self.send_header("ETag", f'"{hub.etag}"')
            self.send_header("Content-Length", str(hub.size))
            self.end_headers()

        def do_GET(self) -> None:
            asked = self.headers.get("Range", "")
            hub.ranges.append(asked)
            self.close_connection = True
            if hub.refuse:
                return
            start = int(asked.removeprefix("bytes=").partition("-")[0]) if asked else 0
            self.send_response(206 if asked else 200)
            if asked:
                self.send_header("Content-Range", f"bytes {start}-{len(hub.content) - 1}/{len(hub.content)}")
            self.send_header("Content-Length", str(len(hub.content) - start))
            self.end_headers()
            end = hub.cut_at.pop(0) if hub.cut_at else hub.still_at or len(hub.content)
            self.wfile.write(hub.content[start:end])
            self.wfile.flush()
            while hub.still_at and end == hub.still_at:
                time.sleep(0.05)

        def log_message(self, format: str, *args: object) -> None:
            """Says nothing."""

    return Handler
