"""Arguments and options that several verbs share, so that they read the same everywhere."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Job = Annotated[str | None, typer.Argument(metavar="[JOB]", help="The job's name; the newest without it.")]
AsJson = Annotated[bool, typer.Option("--json", help="One JSON object on stdout instead of text.")]
Source = Annotated[
    str,
    typer.Argument(
        metavar="SOURCE",
        help="The legacy system: a DSN, a folder or zip of CSV, XLSX or JSONL files, ${NAME} for a variable, or a name of"
        " `migrate dsn list`.",
    ),
]
Target = Annotated[
    str,
    typer.Argument(
        metavar="TARGET", help="The cloud database: postgresql://, mysql:// or sqlite:///FILE, ${NAME}, or a name."
    ),
]
SourceSsh = Annotated[
    str | None,
    typer.Option(
        "--source-ssh", metavar="USER@HOST", help="Reach the source through this host, by ssh; :PORT may follow."
    ),
]
TargetSsh = Annotated[
    str | None,
    typer.Option(
        "--target-ssh", metavar="USER@HOST", help="Reach the target through this host, by ssh; :PORT may follow."
    ),
]
Model = Annotated[
    str | None,
    typer.Option(
        "--model",
        metavar="NAME|PATH|URL|none",
        help="A model of `migrate model list`, a GGUF file, a server's URL, or none for rules and questions only."
        " Default: qwen3-8b once it was pulled, else the embedded model.",
    ),
]
Adapter = Annotated[
    str | None, typer.Option("--adapter", metavar="FILE", help="A LoRA adapter in GGUF, put over the model.")
]
Think = Annotated[
    bool,
    typer.Option("--think", help="Let the model think before it writes an expression; it never does for a choice."),
]
AllowRemote = Annotated[
    bool,
    typer.Option(
        "--allow-remote",
        help="Let a model's server be on another machine: it is told names of tables and columns, and of record values"
        " their shapes.",
    ),
]
SendValues = Annotated[
    bool, typer.Option("--send-values", help="With --allow-remote: send sample values too, as they are.")
]
PriceIn = Annotated[
    float,
    typer.Option("--price-in", min=0, metavar="MONEY", help="What a million tokens read cost, for the job's report."),
]
PriceOut = Annotated[
    float,
    typer.Option("--price-out", min=0, metavar="MONEY", help="What a million tokens written cost."),
]
ModelSeconds = Annotated[
    float,
    typer.Option(
        "--model-seconds",
        min=0,
        metavar="SECONDS",
        help="How long the model may take in this job, in all; from then on, what rules leave open is asked.",
    ),
]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Ask nothing; what is unsure waits in migrate answer.")]
Autonomy = Annotated[
    float,
    typer.Option(
        "--autonomy",
        min=0,
        max=1,
        help="How sure a decision must be to be taken without a person, 0 to 1; the more, the more is asked.",
    ),
]
Tolerate = Annotated[
    float,
    typer.Option(
        "--tolerate",
        min=0,
        metavar="SHARE|ROWS",
        help="How many rows may be in quarantine: a share of those read below 1, else rows. The load stops where more"
        " are, or surely will be, and the exit code is 3.",
    ),
]
Tolerated = Annotated[
    float | None,
    typer.Option(
        "--tolerate",
        min=0,
        metavar="SHARE|ROWS",
        help="How many rows may be in quarantine from now on: a share of those read below 1, else rows.",
    ),
]
LedgerSchema = Annotated[
    str | None,
    typer.Option(
        "--ledger-schema",
        metavar="NAME",
        help="The schema in the target for ledger, crosswalk and quarantine; the job remembers it. Default: packhorse.",
    ),
]
Executor = Annotated[
    str | None,
    typer.Option(
        "--executor",
        metavar="inline|local:N|dask://HOST:PORT",
        help="Who loads: this process, N worker processes here, or a Dask cluster. Default: inline.",
    ),
]
StagePlace = Annotated[
    str | None,
    typer.Option(
        "--stage",
        metavar="PATH|URL",
        help="Where workers on other machines find the job's files, as fsspec reaches it. Default: the job's folder.",
    ),
]
PlanFile = Annotated[
    Path | None, typer.Option("--plan", metavar="FILE", help="The plan to follow; drafted without it.")
]


Stray = Annotated[
    float | None,
    typer.Option(
        "--stray",
        min=0,
        metavar="SHARE|ROWS",
        help="How many rows more than rehearsed may be excluded or in quarantine before the job stops: a share of"
        " those read below 1, else rows. Default: 0.01, and never fewer than 10 rows.",
    ),
]


def here() -> Path:
    """The folder that jobs lie under: the one that `migrate` was called in."""
    return Path.cwd()
