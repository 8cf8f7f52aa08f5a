"""`migrate dsn`: where systems are and how to log in, kept under a name in this machine's keyring."""

from __future__ import annotations

import sys
from dataclasses import asdict
from typing import Annotated, Literal

import typer

from cli.dsn_asked import ask_dsn, kept_as, read_dsn
from cli.dsn_tested import tested, told
from cli.options import AsJson
from cli.person import at_hand
from cli.views import checks as view
from cli.views import dsns as dsns_view
from cli.views.output import on_stderr, on_stdout, print_json
from workspace.errors import InterruptedJobError, UsageError

app = typer.Typer(rich_markup_mode=None, help="DSNs kept under a name in this machine's keyring, passwords included.")

Name = Annotated[str, typer.Argument(metavar="NAME", help="The name: letters, digits, '-' and '_'.")]
TypedDsn = Annotated[
    str | None,
    typer.Argument(metavar="[DSN]", help="The DSN, where it holds no password; without it, it is asked for."),
]
NameOrDsn = Annotated[str, typer.Argument(metavar="NAME|DSN", help="The name of one that is kept, or any DSN.")]
Replace = Annotated[bool, typer.Option("--replace", help="Keep it in the place of the one of that name.")]
Force = Annotated[bool, typer.Option("--force", help="Keep it although its test fails, and ask nothing.")]
As = Annotated[
    Literal["source", "target"],
    typer.Option(
        "--as", help="Look at the rights that reading a source needs, or at those that writing a target needs."
    ),
]
Ssh = Annotated[
    str | None,
    typer.Option("--ssh", metavar="USER@HOST", help="Reach it through this host, by ssh; :PORT may follow."),
]


@app.command("add")
def add(
    name: Name,
    dsn: TypedDsn = None,
    ssh: Ssh = None,
    role: As = "source",
    replace: Replace = False,
    force: Force = False,
) -> int:
    """Keep a DSN under a name, in this machine's keyring. From then on the name may stand wherever a DSN may.

    On a terminal it asks for system, host, port, database, user and, hidden, password; off a terminal it reads a whole
    DSN from stdin. It connects, names the rights that lack, and keeps no DSN that it can't connect with, unless told to.
    """
    from connectors.dsn import Dsn, through
    from connectors.kept_dsns import check_keyring, check_name, keep, kept_dsns

    check_name(name)
    if name in kept_dsns() and not replace:
        raise UsageError(f"a DSN is kept under the name {name} already", advice="choose another name, or --replace it")
    check_keyring()
    given = through(dsn or (ask_dsn() if sys.stdin.isatty() else read_dsn(name)), ssh)
    text, kept = kept_as(name, given)
    found = tested(text, role)
    view.show(on_stdout(), told(found))
    if found[0].state == "fail" and not force and not _agreed(name):
        on_stderr().print("nothing was kept")
        return InterruptedJobError.exit_code
    keep(kept, text)
    on_stdout().print(f"kept as {name}: {Dsn.parse(text).masked}")
    return 0


@app.command("list")
def list_dsns(as_json: AsJson = False) -> int:
    """List the DSNs that are kept, without their passwords. The keyring isn't asked.

    JSON: `dsns`, a list of objects with `name`, `system` (mysql, postgresql, sqlite, files), `host`, `port` (or null),
    `database`, `user` and `ssh` (the host that the way leads through, or empty).
    """
    from connectors.kept_dsns import kept_dsns

    found = list(kept_dsns().values())
    if as_json:
        print_json({"dsns": [asdict(each) for each in found]})
    else:
        dsns_view.show(on_stdout(), found)
    return 0


@app.command("test")
def try_dsn(dsn: NameOrDsn, ssh: Ssh = None, role: As = "source", as_json: AsJson = False) -> int:
    """Connect: the server's version, whether the way there is encrypted, how long it takes, and which rights lack.

    Exits with 1 when a line fails. JSON: `ok`, and `checks`, a list of objects with `name`, `state` (ok, warn, fail),
    `found`, `advice`.
    """
    from connectors.dsn import through

    found = tested(through(dsn, ssh), role)
    ok = all(check.state != "fail" for check in found)
    if as_json:
        print_json({"ok": ok, "checks": [asdict(check) for check in found]})
    else:
        view.show(on_stdout(), told(found))
    return 0 if ok else 1


@app.command("rm")
def remove(name: Name) -> int:
    """Remove a DSN from the keyring and from the list. A job that began with its name asks for another then."""
    from connectors.kept_dsns import check_name, forget

    forget(check_name(name))
    on_stdout().print(f"removed {name}")
    return 0


def _agreed(name: str) -> bool:
    """Asks once. UsageError where nobody is there to ask."""
    if not at_hand():
        raise UsageError(
            f"the test of {name} failed, so it was not kept", advice="mend the DSN, or keep it nevertheless: --force"
        )
    on_stderr().print("keep it nevertheless? [y/N] ", end="")
    return sys.stdin.readline().strip().lower() in ("y", "yes")
