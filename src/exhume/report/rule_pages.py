"""The pages of the rules: `exhume explain`, `docs/rules` and SARIF's list of rules are made of the same docstrings."""

from __future__ import annotations

import inspect
import re

from exhume.audit.rule import Rule, catalogue
from exhume.report.view import RulePage

_DETECTS = re.compile(r"^## What it detects\s*\n(.+?)(?:\n\s*\n|\Z)", re.MULTILINE | re.DOTALL)


def rule_pages(wanted: set[str] | None = None) -> tuple[RulePage, ...]:
    """Pages of the rules with these ids, of all rules for None, in order of id."""
    return tuple(rule_page(rule) for rule in catalogue() if wanted is None or rule.id in wanted)


def rule_page(rule: type[Rule]) -> RulePage:
    """The page of one rule: its docstring, which is a title and sections in Markdown."""
    title, _, text = (inspect.getdoc(rule) or rule.name).partition("\n")
    text = text.strip() or title
    detects = _DETECTS.search(text)
    summary = detects.group(1) if detects else text.split("\n\n", 1)[0]
    return RulePage(rule.id, rule.name, rule.severity, " ".join(summary.split()), text)
