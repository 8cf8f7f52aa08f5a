"""What `--help` shows below each verb's options: commands as one would type them. Tests parse every one."""

from __future__ import annotations

EXAMPLES: dict[str, tuple[str, ...]] = {
    "run": (
        "migrate run mysql://crm@old.example.com/crm postgresql://crm@new.example.com/crm",
        "migrate run '${LEGACY}' '${CLOUD}' --plan plan.yaml --job night --yes",
        "migrate run ./export postgresql://crm@new.example.com/crm --pilot 1% --job night",
        "migrate run legacy cloud --yes --on 'done,question,failure=https://hooks.example.com/${HOOK}'",
    ),
    "resume": ("migrate resume", "migrate resume night --tolerate 0.3", "migrate resume night --executor local:4 --yes"),
    "rehearse": ("migrate rehearse legacy cloud --plan plan.yaml --job night",),
    "preview": (
        "migrate preview night --entity contacts",
        "migrate preview night --html preview.html",
        "migrate preview --plan plan.yaml --json",
    ),
    "jobs": ("migrate jobs", "migrate jobs --json"),
    "status": ("migrate status", "migrate status night --json"),
    "watch": ("migrate watch night", "migrate watch night --pause", "migrate watch night --go-on"),
    "inspect": (
        "migrate inspect night --belief",
        "migrate inspect night --at 420",
        "migrate inspect night --diff 400 420",
        "migrate inspect night --log --type decision_made --json",
    ),
    "answer": ("migrate answer night", "migrate answer night --set zone:source=Europe/Berlin"),
    "verify": ("migrate verify night", "migrate verify night --sample 1000 --json"),
    "report": ("migrate report night -o report.html", "migrate report night -o report.xlsx --show-values"),
    "undo": ("migrate undo night", "migrate undo night --batch contacts:3", "migrate undo night --yes --json"),
    "sync": ("migrate sync night --dry-run", "migrate sync night --deletes mark --edited ask"),
    "cleanup": ("migrate cleanup night --export crosswalk.csv",),
    "purge": ("migrate purge night --dry-run", "migrate purge --older-than 90d --yes"),
    "doctor": ("migrate doctor", "migrate doctor legacy cloud --plan plan.yaml"),
    "init": ("migrate init plan.yaml",),
    "explain": ("migrate explain PH-103",),
    "eval": ("migrate eval --list", "migrate eval dev --model none", "migrate eval dev -o after.json --compare before.json"),
    "demo": ("migrate demo --contacts 2000",),
    "plan draft": ("migrate plan draft legacy cloud -o plan.yaml",),
    "plan check": ("migrate plan check plan.yaml", "migrate plan check plan.yaml --source legacy --target cloud --json"),
    "plan edit": ("migrate plan edit plan.yaml", "migrate plan edit night"),
    "plan explain": ("migrate plan explain contacts.email --job night",),
    "plan diff": ("migrate plan diff before.yaml after.yaml", "migrate plan diff 1 3 --job night"),
    "plan schema": ("migrate plan schema -o plan.schema.json",),
    "quarantine list": ("migrate quarantine list night",),
    "quarantine show": ("migrate quarantine show night --entity contacts --limit 20",),
    "quarantine export": ("migrate quarantine export night -o refused.xlsx",),
    "quarantine retry": (
        "migrate quarantine retry night --plan plan.yaml",
        "migrate quarantine retry night --from refused.xlsx",
    ),
    "quarantine drop": ("migrate quarantine drop night --entity contacts --yes",),
    "dsn add": ("migrate dsn add legacy", "migrate dsn add cloud --as target"),
    "dsn list": ("migrate dsn list",),
    "dsn test": ("migrate dsn test legacy",),
    "dsn rm": ("migrate dsn rm legacy",),
    "model list": ("migrate model list",),
    "model pull": ("migrate model pull qwen3-8b",),
    "model check": ("migrate model check ./model.gguf",),
    "model bench": ("migrate model bench",),
    "experience list": ("migrate experience list --kind value_map",),
    "experience show": ("migrate experience show contacts.email",),
    "experience export": ("migrate experience export -o lessons.json", "migrate experience export --trajectories --job night"),
    "experience import": ("migrate experience import lessons.json",),
    "experience forget": ("migrate experience forget --kind failure", "migrate experience forget --all --yes"),
}  # fmt: skip
"""By the verb's words."""


def epilog(verb: str) -> str | None:
    """The block for a verb's help, its lines as they are; None where there is none."""
    commands = EXAMPLES.get(verb)
    return "\b\nExamples:\n" + "\n".join(f"  {command}" for command in commands) if commands else None
