"""Which meanings of the trade lie near one another without being the same, as data (a token is 1.0 to itself).

General knowledge of the field, like `agent.lexicon_words`, and never names taken from one customer's system.
"""

from __future__ import annotations

# Of tables.
NEAR: dict[frozenset[str], float] = {
    frozenset({"customer", "organisation"}): 0.75,
    frozenset({"customer", "person"}): 0.65,
    frozenset({"call", "activity"}): 0.8,
    frozenset({"meeting", "activity"}): 0.8,
    frozenset({"task", "activity"}): 0.8,
    frozenset({"event", "activity"}): 0.75,
    frozenset({"event", "meeting"}): 0.75,
    frozenset({"note", "activity"}): 0.65,
    frozenset({"visit", "activity"}): 0.75,
    frozenset({"visit", "meeting"}): 0.75,
    frozenset({"lead", "person"}): 0.45,
    frozenset({"quote", "deal"}): 0.3,
    frozenset({"ticket", "task"}): 0.3,
    frozenset({"user", "person"}): 0.3,
    frozenset({"team", "user"}): 0.3,
    frozenset({"owner", "user"}): 0.85,
}

# Of columns.
NEAR_COLUMNS: dict[frozenset[str], float] = {
    frozenset({"phone", "mobile"}): 0.55,
    frozenset({"direct", "extension"}): 0.85,
    frozenset({"academic_title", "form_of_address"}): 0.85,
    frozenset({"academic_title", "title"}): 0.7,
    frozenset({"no_marketing", "opt_out"}): 0.3,
    frozenset({"no_marketing", "do_not_call"}): 0.3,
    frozenset({"description", "body"}): 0.8,
    frozenset({"description", "note"}): 0.7,
    frozenset({"note", "body"}): 0.7,
    frozenset({"subject", "title"}): 0.85,
    frozenset({"subject", "name"}): 0.75,
    frozenset({"title", "name"}): 0.7,
    frozenset({"full_name", "name"}): 0.85,
    frozenset({"job_title", "title"}): 0.85,
    frozenset({"stage", "status"}): 0.6,
    frozenset({"type", "category"}): 0.6,
    frozenset({"lead_source", "source"}): 0.9,
    frozenset({"opt_out", "opt_in"}): 0.3,
    frozenset({"opt_out", "do_not_call"}): 0.3,
    frozenset({"consent", "opt_in"}): 0.5,
    frozenset({"amount", "annual_revenue"}): 0.3,
    frozenset({"owner", "user"}): 0.8,
    frozenset({"owner", "created_by"}): 0.3,
    frozenset({"created_by", "modified_by"}): 0.2,
    frozenset({"close_date", "end_at"}): 0.5,
    frozenset({"due_at", "end_at"}): 0.5,
    frozenset({"due_at", "close_date"}): 0.4,
    frozenset({"start_at", "date"}): 0.6,
    frozenset({"website", "domain"}): 0.6,
    frozenset({"street", "address"}): 0.8,
    frozenset({"customer", "organisation"}): 0.75,
    frozenset({"reports_to", "parent"}): 0.5,
    frozenset({"deleted", "deleted_at"}): 0.6,
    frozenset({"deleted", "active"}): 0.2,
    frozenset({"salutation", "title"}): 0.5,
    frozenset({"login", "name"}): 0.4,
    frozenset({"joined_at", "created_at"}): 0.7,
    frozenset({"rating", "priority"}): 0.4,
}
