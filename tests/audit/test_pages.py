"""Every rule has one place, a page with all its sections, and a line of advice."""

from __future__ import annotations

import inspect

import pytest

from exhume.audit.rule import Rule, catalogue

SECTIONS = ("What it detects", "Why it matters", "Example", "How ADK behaves", "Harmless causes", "What to do")


@pytest.mark.parametrize("rule", list(catalogue()), ids=lambda rule: str(rule.id))
def test_the_page_of_a_rule(rule: type[Rule]) -> None:
    page = inspect.getdoc(rule) or ""
    assert page.startswith(f"{rule.id} {rule.name}\n")
    places = [page.index(f"\n## {section}\n") for section in SECTIONS]
    assert places == sorted(places)
    for before, after in zip(places, [*places[1:], len(page)], strict=True):
        assert len(page[before:after].split("\n", 2)[2].strip()) > 10
    assert rule.todo.endswith(".")


def test_ids_are_unique_and_belong_to_their_family() -> None:
    rules = list(catalogue())
    assert len({rule.id for rule in rules}) == len({rule.name for rule in rules}) == len(rules)
    assert {rule.id[:4] for rule in rules} == {"EXH1", "EXH2", "EXH3", "EXH4", "EXH5"}
    numbers = [int(rule.id[3:]) for rule in rules]
    assert [number for number in numbers if number < 300] == [*range(101, 115), *range(201, 214)]
