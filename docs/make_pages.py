"""Makes `docs/rules/` from the docstrings of the rules: one page a rule, and an index.

usage: python docs/make_pages.py          (tests fail when the pages are not up to date)
"""

from __future__ import annotations

from pathlib import Path

from exhume.report.rule_pages import rule_pages
from exhume.report.view import RulePage

RULES = Path(__file__).resolve().parent / "rules"
FAMILIES = {
    "1": "Approvals",
    "2": "Function-call ids",
    "3": "The log itself",
    "4": "State",
    "5": "Pickles",
}


def page(rule: RulePage) -> str:
    """One rule's page in Markdown; the headings are the sections of the docstring."""
    return f"# {rule.id} {rule.name}\n\nSeverity: {rule.severity.label}\n\n{rule.text.strip()}\n"


def index(rules: tuple[RulePage, ...]) -> str:
    """The index in Markdown."""
    lines = [
        "# Rules of the audit",
        "",
        "Made from the docstrings of the rules; `exhume explain RULE` prints the same pages.",
    ]
    for digit, family in FAMILIES.items():
        lines += ["", f"## {digit}xx {family}", "", "| rule | name | severity | |", "|---|---|---|---|"]
        lines += [
            f"| [{rule.id}]({rule.id}.md) | {rule.name} | {rule.severity.label} | {rule.summary} |"
            for rule in rules
            if rule.id.startswith(f"EXH{digit}")
        ]
    return "\n".join(lines) + "\n"


def pages() -> dict[str, str]:
    """File name -> content of everything in `docs/rules/`."""
    rules = rule_pages()
    return {"README.md": index(rules), **{f"{rule.id}.md": page(rule) for rule in rules}}


def main() -> None:
    """Writes the pages and removes those of rules that no longer are."""
    RULES.mkdir(exist_ok=True)
    made = pages()
    for stale in {path.name for path in RULES.iterdir()} - set(made):
        (RULES / stale).unlink()
    for name, content in made.items():
        (RULES / name).write_text(content, encoding="utf-8")


if __name__ == "__main__":
    main()
