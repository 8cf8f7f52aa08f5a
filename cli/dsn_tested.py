"""What `migrate dsn add` and `test` find when they connect, as lines like those of `migrate doctor`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from agent.models.check import Check
from workspace.errors import PackhorseError

if TYPE_CHECKING:
    from connectors.dsn import Dsn
    from connectors.measures import Reached


def tested(text: str, role: Literal["source", "target"]) -> list[Check]:
    """The connection first, then how it is encrypted and the rights that `role` needs; the first line alone where it
    fails. DsnError, KeyringError."""
    from cli.rights import source_rights, target_rights
    from connectors.dsn import Dsn, reach

    dsn = Dsn.parse(text)
    try:
        reached = reach(dsn)
    except PackhorseError as error:
        return [Check("connection", "fail", str(error), error.advice)]
    rights = source_rights(text, None, None) if role == "source" else target_rights(text, None, None, None)
    return [_connection(dsn, reached), *_encryption(dsn, reached), *rights]


def told(checks: Sequence[Check]) -> list[Check]:
    """The lines to show: rights that are held become one."""
    held = [check for check in checks if check.name.endswith(" right") and check.state == "ok"]
    rest = [check for check in checks if check not in held]
    if not held:
        return rest
    rights = len(held) + sum(check.name == held[0].name for check in rest)
    return [*rest, Check(f"{held[0].name}s", "ok", f"{len(held)} of {rights} held")]


def _connection(dsn: Dsn, reached: Reached) -> Check:
    found = f"{reached.server} in {1000 * reached.connected:.0f} ms"
    if reached.trip is not None:
        found += f", a question takes {1000 * reached.trip:.1f} ms there and back"
    return Check("connection", "ok", f"{found}: {dsn.masked}")


def _encryption(dsn: Dsn, reached: Reached) -> list[Check]:
    if dsn.path is not None:
        return []
    if reached.encrypted:
        return [Check("encryption", "ok", reached.encrypted)]
    if dsn.ssh:
        return [Check("encryption", "ok", f"ssh as far as {dsn.ssh}, and none from there on")]
    if dsn.is_local:
        return [Check("encryption", "ok", "none, and nothing goes over a network")]
    return [Check("encryption", "warn", "none: who is on the way reads and changes what goes there")]
