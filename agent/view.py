"""What a model sees: views of the workspace, rendered by code and bounded in tokens however large the job is.

A view is kept within its room by choosing whole items in order of worth (candidates, sample values, beliefs, lessons).
A value that is shown is never masked: it stands in the data block as it is, its first 40 characters; the model's adapter
fences and neutralises it. Names alone are cut, by their middle, and only where the view has no room for one whole.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice

from agent.matter import Matter, Option
from agent.models.counting import Count
from agent.models.data_block import data_block, plain_words
from agent.models.pairs import branches
from agent.models.protocol import NONE_OF_THESE, Match, Prompt
from workspace.state import State

QUESTION_TOKENS = 120
"""The room of a choice: the question, its options and the values shown. The system's line is the same for all."""
VIEW_TOKENS = 1_500
"""The room of a proposal: all of its prompt."""
PROPOSAL_TOKENS = 400
"""What of that is kept for the question and the values; the workspace has the rest."""
_SYSTEM = "You match columns of an old CRM with columns of a new one. Answer with one of the options."
_OPTIONS = 7
_MOST = 40  # items of a section that are looked at, those of most worth
_VALUE = 40  # characters of a sample value
_NAME = 24  # tokens of a field's name where it is too long
_FIRST = 3  # candidates of which more than one value is shown
_OWN = 48  # tokens of a value that is asked about itself, with its fence
_TIGHT = ((64, 64), (48, 24), (40, 12))  # tokens for the question and for an option, ever fewer


def question_view(matter: Matter, options: Sequence[Option], count: Count) -> tuple[Prompt, list[str]]:
    """The small view for a choice among `options`, best first: the prompt, and the labels of as many options as there
    is room for, with "none of these" as the last."""
    offered = [*(o.label for o in options[:_OPTIONS]), NONE_OF_THESE]
    question, labels = matter.text, offered
    own = "" if matter.match is not None and matter.match.values else _begun(matter.data, _OWN, count)
    room = QUESTION_TOKENS - (
        _fenced(own, count) if own else 0
    )  # what is asked about is no item to choose or leave out
    if _price(question, labels, count) > room:
        question = matter.brief or question
    for most, longest in _TIGHT:
        if _price(question, labels, count) <= room:
            break
        question = shortened(question, most, count)
        labels = [shortened(label, longest, count) for label in offered]
    while len(labels) > 2 and _price(question, labels, count) > room:
        labels = [*labels[:-2], labels[-1]]
    shown = options[: len(labels) - 1]
    data = own or _values(matter.match, shown, labels, room - _price(question, labels, count), count)
    return Prompt(_SYSTEM, question, data, _parts(matter.match, shown, labels, count)), labels


def tokens_of(prompt: Prompt, options: Sequence[str], count: Count) -> int:
    """The tokens of a choice that its room is for."""
    return _price(prompt.question, options, count) + (_fenced(prompt.data, count) if prompt.data else 0)


def values_within(values: Sequence[str], room: int, count: Count) -> str:
    """As many of the values as the data block has room for, in their order."""
    return " | ".join(chosen((_value(v) for v in values), room, lambda shown: _fenced(" | ".join(shown), count)))


def view(
    state: State, goal: str, question: str, actions: Sequence[str], changed: Sequence[str], count: Count,
    room: int = VIEW_TOKENS - PROPOSAL_TOKENS,
) -> str:  # fmt: skip
    """The workspace as it stands, for a proposal or a recovery, in at most `room` tokens. What changes least comes first,
    so that a prefix cache serves it; what bears most on the question is chosen first."""
    progress = state.progress
    words = set(_words(question))
    asked = sorted(progress.open_questions, key=lambda id_: (-len(words & set(_words(id_))), id_))
    head = {"GOAL": [goal], "PHASE": [progress.phase], "QUESTION": [question]}
    items = {
        "GOAL": [goal],
        "ACTIONS": list(actions),
        "LEARNT": list(islice(_lessons(state, words), _MOST)),
        "KNOWN": list(islice(_beliefs(state, words), _MOST)),
        "PHASE": [progress.phase],
        "OPEN QUESTIONS": [f"{len(asked)} in all", *asked[:8]],
        "NEXT": progress.attend_next[:4],
        "CHANGED": list(changed[-5:]),
        "QUESTION": [question],
    }
    tight = room // 4
    taken = {name: [shortened(line, tight, count) for line in lines] for name, lines in head.items()}
    worth = ("ACTIONS", "KNOWN", "LEARNT", "CHANGED", "NEXT", "OPEN QUESTIONS")
    for place in range(max(map(len, items.values()))):  # the first of each section, then the second, …
        for name in worth:
            if place < len(items[name]):
                more = {**taken, name: [*taken.get(name, ()), plain_words(items[name][place]).replace("\n", " ")]}
                if count(_rendered(items, more)) <= room:
                    taken = more
    return _rendered(items, taken)


def chosen(items: Iterable[str], room: int, price: Callable[[list[str]], int]) -> list[str]:
    """The items that fit, in order of worth: one that doesn't is left out whole, and smaller ones after it may still."""
    taken: list[str] = []
    for item in items:
        if item and price([*taken, item]) <= room:
            taken.append(item)
    return taken


def shortened(text: str, most: int, count: Count) -> str:
    """The text, or its beginning and end where it is more than `most` tokens."""
    if count(plain_words(text)) <= most:
        return text
    low, high = 0, len(text)
    while low < high:  # how many characters of it there is room for
        middle = (low + high + 1) // 2
        low, high = (middle, high) if count(plain_words(_ends(text, middle))) <= most else (low, middle - 1)
    return _ends(text, low)


def _ends(text: str, characters: int) -> str:
    head = (characters + 1) // 2
    return f"{text[:head]}…{text[len(text) - (characters - head) :]}"


def _price(question: str, labels: Sequence[str], count: Count) -> int:
    return count(plain_words(question)) + sum(count(f"- {plain_words(label)}\n") for label in labels)


def _fenced(data: str, count: Count) -> int:
    return count(f"\n\n{data_block(data)}")


def _value(value: str) -> str:
    return "".join(c if c.isprintable() else " " for c in value[:_VALUE])


def _begun(data: str, most: int, count: Count) -> str:
    """A value's beginning: all of it, but for scripts that take several tokens a character."""
    while data and _fenced(data, count) > most:
        data = data[: len(data) * 7 // 8]
    return data


def _values(match: Match | None, shown: Sequence[Option], labels: Sequence[str], room: int, count: Count) -> str:
    """The data block's text: a value of each candidate, best first, then more of the first few."""
    if match is None:
        return ""
    held: dict[str, list[str]] = {}
    for place in range(3):
        for option, label in zip(shown if place == 0 else shown[:_FIRST], labels, strict=False):
            values = list(match.values.get(option.label, ()))[place : place + 1]
            if values and values[0]:
                more = {**held, label: [*held.get(label, ()), _value(values[0])]}
                if _fenced(_listed(more), count) <= room:
                    held = more
    return _listed(held)


def _listed(held: dict[str, list[str]]) -> str:
    return "; ".join(f"{label}: {' | '.join(values)}" for label, values in held.items())


def _parts(match: Match | None, shown: Sequence[Option], labels: Sequence[str], count: Count) -> Match | None:
    """The parts of the question for the options as they are labelled; each option is then a text of its own, whose values
    have the room of one."""
    if match is None:
        return None
    names = {option.label: label for option, label in zip(shown, labels, strict=False)}

    def room_for(asked: Match, label: str) -> bool:
        _, ways = branches(asked, [label])
        return count("".join(ways[0])) <= QUESTION_TOKENS

    if any(not room_for(replace(match, values={}), label) for label in names.values()):
        match = replace(
            match,
            new_field=shortened(match.new_field, _NAME, count),
            old_column=shortened(match.old_column, _NAME, count),
        )
    values = {}
    for name, held in match.values.items():
        if name in names or name == match.old_column:
            label, few = names.get(name, name), list(held[:3])
            while few and not room_for(replace(match, values={label: few}), label):
                few.pop()
            values[label] = few
    return replace(match, values=values)


def _rendered(items: dict[str, list[str]], taken: dict[str, list[str]]) -> str:
    """The sections in their order, each item in the order in which it was offered."""
    return "\n".join(f"{name} {'; '.join(taken[name])}" for name in items if taken.get(name))


def _beliefs(state: State, words: set[str]) -> Iterator[str]:
    """The beliefs on subjects that the question names, those that share most with it first, with the figures that they
    rest on; texts of records stay out."""
    claims = state.belief.claims
    near = {subject: len(words & set(_words(subject))) for subject in claims}
    for subject in sorted((s for s, shared in near.items() if shared), key=lambda s: (-near[s], s)):
        for claim, held in sorted(claims[subject].items(), key=lambda item: (-item[1].confidence, item[0])):
            figures = {k: v for k, v in held.evidence.items() if isinstance(v, int | float)}
            told = "".join(f", {k} {v}" for k, v in figures.items())
            yield f"{subject} {claim} ({held.confidence:.2f}{told})"


def _lessons(state: State, words: set[str]) -> Iterator[str]:
    """What was learnt in this job about failures that the question's words are in."""
    for signature, remedies in sorted(state.experience.remedies.items()):
        if words & set(_words(signature)):
            yield from (f"{signature}: {r} held {t.held} of {t.tried}" for r, t in sorted(remedies.items()))


def _words(text: str) -> list[str]:
    return text.replace(".", " ").replace(":", " ").split()
