from __future__ import annotations

import datetime
import decimal
import json
import signal
import uuid
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from tests.workspace_events import EVENTS
from workspace import events as ev
from workspace.errors import WorkspaceError


def test_each_type_has_a_strategy_here() -> None:
    assert set(EVENTS) == set(ev.EVENT_TYPES.values())
    assert [kind.type for kind in ev.EVENT_TYPES.values()] == list(ev.EVENT_TYPES)


@given(st.one_of(*EVENTS.values()))
def test_an_event_reads_back_equal(event: ev.Event) -> None:
    body = ev.event_to_json(event)
    assert body.isascii()
    assert "\n" not in body
    assert ev.event_from_json(event.type, body) == event


@given(st.one_of(*EVENTS.values()))
def test_a_field_of_the_future_is_a_newer_version(event: ev.Event) -> None:
    body = json.dumps({**json.loads(ev.event_to_json(event)), "colour": 1})
    with pytest.raises(WorkspaceError, match=r"newer version.*'colour'"):
        ev.event_from_json(event.type, body)


def test_an_event_of_the_future_is_a_newer_version() -> None:
    with pytest.raises(WorkspaceError, match=r"newer version.*'row_blessed'") as caught:
        ev.event_from_json("row_blessed", "{}")
    assert caught.value.exit_code == 2


@pytest.mark.parametrize("body", ["", "[]", "{}", '{"phase":"lunch"}', '{"phase":1}', "null"])
def test_what_is_no_event_is_damage(body: str) -> None:
    with pytest.raises(WorkspaceError, match="damaged"):
        ev.event_from_json("phase_started", body)


@pytest.mark.parametrize(
    ("given_", "kept"),
    [
        (datetime.date(2020, 2, 29), "2020-02-29"),
        (decimal.Decimal("1.50"), "1.50"),
        (uuid.UUID(int=1), "00000000-0000-0000-0000-000000000001"),
        ((1, (2,)), [1, [2]]),
        ({"b", "a"}, ["a", "b"]),
        (b"\x00\xff", "00ff"),
        (float("nan"), None),
        (float("inf"), None),
        (np.float32(0.5), 0.5),
        (np.array([[1, 2]]), [[1, 2]]),
        ("lone \ud800", "lone ?"),
        ({1: "a", None: "b"}, {"1": "a", "null": "b"}),
        (signal.SIGINT, 2),
        (True, True),
    ],
)
def test_what_is_not_json_is_made_so_when_the_event_is_built(given_: Any, kept: Any) -> None:
    event = ev.BeliefHeld("subject", "claim", {"value": given_})
    assert event.evidence == {"value": kept}
    assert type(event.evidence["value"]) is type(kept)
    assert ev.event_from_json(event.type, ev.event_to_json(event)) == event


def test_rounding_of_probabilities_is_forgiven_and_no_more() -> None:
    assert ev.BeliefHeld("s", "c", {}, 1.0000000002).confidence == 1.0
    for wrong in (1.1, -0.1, float("nan")):
        with pytest.raises(ValidationError):
            ev.BeliefHeld("s", "c", {}, wrong)


@pytest.mark.parametrize(
    "dsn",
    [
        "mysql://me:hunter2@host/crm",
        "postgresql://host/crm?user=me&password=hunter2",
        "postgresql://host/crm?sslpassword=hunter2",
        "host=h user=me password=hunter2",
    ],
)
def test_a_password_is_never_recorded_nor_shown_in_the_refusal(dsn: str) -> None:
    with pytest.raises(ValidationError) as caught:
        ev.JobStarted("job", dsn, "sqlite:///x.db")
    assert "hunter2" not in str(caught.value)
    assert "hunter2" not in repr(caught.value)


@pytest.mark.parametrize(
    "dsn",
    [
        "mysql://me:***@host/crm",
        "mysql://me@host/crm",
        "mysql://me:${PW}@h/crm",
        "${LEGACY_DSN}",
        "./crm.csv",
        "postgresql://h/crm?password=***",
    ],
)
def test_a_masked_dsn_is_kept_as_it_is(dsn: str) -> None:
    assert ev.JobStarted("job", dsn, dsn).source == dsn


def test_events_are_frozen() -> None:
    with pytest.raises(AttributeError):
        ev.PhaseStarted("load").phase = "done"  # type: ignore[misc]


def test_a_signal_is_kept_by_name() -> None:
    assert ev.event_from_json("interrupted", '{"signal": 15}') == ev.Interrupted("SIGTERM")
    assert ev.Interrupted(signal.SIGINT.name).signal == "SIGINT"
