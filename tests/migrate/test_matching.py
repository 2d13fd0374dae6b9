from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from exhume.events.model import EventKey, EventRecord, StateRecord
from exhume.migrate.matching import match_events, match_states

SESSIONS = st.sampled_from(["", "a", "b", "ü", "\udc80", "\U0001f600"])


def event(session: str, ident: str, position: int = 0) -> EventRecord:
    return EventRecord(EventKey("app", "user", session, ident), position, None, 0.0, 0.0, {})


def in_order(events: list[tuple[str, str]]) -> list[EventRecord]:
    ordered = sorted(events, key=lambda one: one[0].encode("utf-8", "surrogateescape"))
    return [event(session, ident, number) for number, (session, ident) in enumerate(ordered)]


EVENTS = st.lists(st.tuples(SESSIONS, st.sampled_from("12345")), max_size=12).map(in_order)


@given(EVENTS, EVENTS)
def test_every_event_comes_once_and_meets_its_partner(ours: list[EventRecord], theirs: list[EventRecord]) -> None:
    pairs = list(match_events(iter(ours), iter(theirs)))
    assert sorted(p.source.position for p in pairs if p.source) == list(range(len(ours)))
    assert sorted(p.destination.position for p in pairs if p.destination) == list(range(len(theirs)))
    both = [p for p in pairs if p.source and p.destination]
    assert all(p.source and p.destination and p.source.key == p.destination.key for p in both)
    common = Counter(one.key for one in ours) & Counter(one.key for one in theirs)
    assert len(both) == common.total()


def state(session: str) -> StateRecord:
    return StateRecord("app", "user", session, {}, "{}", 0.0, 0.0, 0)


@given(st.sets(SESSIONS), st.sets(SESSIONS))
def test_state_rows_meet_by_key(ours: set[str], theirs: set[str]) -> None:
    def stream(names: set[str]) -> list[StateRecord]:
        return [state(name) for name in sorted(names, key=lambda name: name.encode("utf-8", "surrogateescape"))]

    pairs = list(match_states(iter(stream(ours)), iter(stream(theirs))))
    seen = {
        (p.source.session_id if p.source else None, p.destination.session_id if p.destination else None) for p in pairs
    }
    wanted = {(name if name in ours else None, name if name in theirs else None) for name in ours | theirs}
    assert seen == wanted
    assert len(pairs) == len(wanted)


def test_order_inside_a_session_does_not_matter() -> None:
    ours = [event("s", ident) for ident in "abcd"]
    theirs = [event("s", ident) for ident in "dcba"]
    pairs = list(match_events(iter(ours), iter(theirs)))
    assert len(pairs) == 4
    assert all(p.source and p.destination for p in pairs)
