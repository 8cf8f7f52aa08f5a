"""What a job teaches those to come: answers at once, and what was decided without a person once the job is verified.

Lessons hold names of columns and tables and, of value maps, words of lists; no record's value. That a remedy held is
counted once a job; that it failed, when a person says otherwise.
"""

from __future__ import annotations

from typing import cast

from agent.matter import Matter
from agent.remembered import NOT
from workspace.events import DecisionMade, LessonLearnt
from workspace.experience_store import ExperienceStore, LessonKind
from workspace.log import Workspace

_LIKELY = 0.15  # an option below this was none to be wrong about
_ALONE = ("rule", "experience", "choose")
"""The rungs whose decisions nobody confirmed: what they teach waits for the job to be verified."""


def lessons_of(matter: Matter, answer: str | None) -> list[dict[str, object]]:
    """What a decision on a match teaches, as `DecisionMade.lessons` has it: where a column went, and where those did not go
    that looked likely."""
    if answer is not None and matter.option(answer) is None:
        return []
    told = [
        (o.lesson, remedy if o.answer == answer else NOT + remedy)
        for o in matter.options
        if o.lesson and (remedy := o.remedy or matter.signature) and (o.answer == answer or o.weight >= _LIKELY)
    ]
    return [{"kind": "match", "signature": signature, "remedy": remedy} for signature, remedy in told]


def learn_answer(store: ExperienceStore, workspace: Workspace, matter: Matter, answer: str | None) -> None:
    """Keeps what a person's answer teaches, and counts against lessons that said otherwise."""
    right = {(str(each["signature"]), str(each["remedy"])) for each in lessons_of(matter, answer)}
    for signature, remedy in sorted(right):
        store.record("match", signature, remedy, True)
        workspace.record(LessonLearnt(signature, remedy, True))
    for option in matter.options:
        remedy = option.remedy or matter.signature
        for said in (remedy, NOT + remedy) if option.lesson and remedy else ():
            if (said == remedy) != (option.answer == answer) and any(
                each.remedy == said for each in store.recall("match", option.lesson)
            ):
                store.record("match", option.lesson, said, False)
                workspace.record(LessonLearnt(option.lesson, said, False))


def learn_decisions(store: ExperienceStore | None, workspace: Workspace) -> None:
    """Keeps what the job's decisions teach that nobody was asked about. For a job that was verified; given again, it
    counts nothing twice."""
    known, made = set[tuple[str, str]](), dict[str, DecisionMade]()
    for entry in workspace.events(types=[DecisionMade, LessonLearnt]):
        if isinstance(entry.event, LessonLearnt):
            known.add((entry.event.signature, entry.event.remedy))
        elif isinstance(entry.event, DecisionMade):
            made[entry.event.id] = entry.event
    for decision in made.values():
        for told in decision.lessons if decision.rung in _ALONE else ():
            signature, remedy = str(told["signature"]), str(told["remedy"])
            if store is None or (signature, remedy) in known:
                continue
            known.add((signature, remedy))
            store.record(cast(LessonKind, told["kind"]), signature, remedy, True)
            workspace.record(LessonLearnt(signature, remedy, True))
