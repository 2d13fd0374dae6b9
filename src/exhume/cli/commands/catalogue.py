"""`exhume rules` and `exhume explain`: the rule catalogue, and the page of one rule."""

from __future__ import annotations

from typing import Annotated

import typer


def rules(
    json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
) -> None:
    """List the rules of the audit: id, severity, name, what each detects."""
    from json import dumps

    from exhume.cli.output import tell
    from exhume.report.rule_pages import rule_pages

    pages = rule_pages()
    if json:
        listed = [
            {"rule": page.id, "name": page.name, "severity": page.severity.label, "summary": page.summary}
            for page in pages
        ]
        print(dumps(listed, indent=2))
        return
    width = max(len(page.name) for page in pages)
    for page in pages:
        tell(f"{page.id}  {page.severity.label:7s}  {page.name:{width}s}  ", page.summary)


def explain(
    rule: Annotated[
        str,
        typer.Argument(
            metavar="RULE", help="Id or name of a rule, such as EXH101 or duplicate-approval.", show_envvar=False
        ),
    ],
) -> None:
    """Print the documentation of a rule."""
    from exhume.errors import UsageError
    from exhume.report.rule_pages import rule_pages

    for page in rule_pages():
        if rule.casefold() in (page.id.casefold(), page.name.casefold()):
            print(f"{page.id} {page.name} ({page.severity.label})\n\n{page.text.strip()}")
            return
    raise UsageError(f"There is no rule {rule}.", todo="`exhume rules` lists them.")
