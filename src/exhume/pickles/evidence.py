"""A second opinion on refused values by fickling, in a child process with limits; evidence, never the gate.

Genuine ADK pickles score "unsafe" with fickling, and it can miss what another reader would load. So its answer decides
nothing; where its list of imports and ours differ, that is reported. An absent, slow or crashing fickling is a note.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

_MOST_VALUES = 20
_LONGEST_VALUE = 256 << 10
_WALL_SECONDS = 15.0
_MOST_CHILDREN = 2
_LONGEST_ANSWER = 8 << 20


@dataclass(frozen=True, slots=True)
class SecondOpinion:
    """What fickling says of one value.

    Attributes:
        severity: its own word, such as `LIKELY_UNSAFE`; None when it has no answer.
        decompiled: the program that it reads off the pickle, cut to 20,000 characters.
        imports: dotted names that this program imports.
        only_fickling: names that fickling lists and exhume does not.
        only_exhume: names that exhume lists and fickling does not.
        note: why there is no answer, else which version answered.
    """

    severity: str | None = None
    decompiled: str = ""
    imports: tuple[str, ...] = ()
    only_fickling: tuple[str, ...] = ()
    only_exhume: tuple[str, ...] = ()
    note: str = ""

    @property
    def differs(self) -> bool:
        """Do the two lists of imports differ?"""
        return bool(self.only_fickling or self.only_exhume)

    def as_text(self) -> str:
        """One line: severity, differences, or why there is none."""
        if self.severity is None:
            return f"fickling: {self.note}"
        text = f"fickling: {self.severity}"
        if self.only_fickling:
            text += f"; it names and exhume does not: {', '.join(self.only_fickling)}"
        if self.only_exhume:
            text += f"; exhume names and it does not: {', '.join(self.only_exhume)}"
        return text


def second_opinions(values: Sequence[tuple[bytes, Iterable[str]]]) -> list[SecondOpinion]:
    """Asks fickling about values, in one child process for all of them.

    Args:
        values: raw bytes, and the dotted names that exhume read in them.

    Returns:
        One opinion a value, in the same order. The first twenty values of at most 256 KiB are asked about.
    """
    opinions = [SecondOpinion(note="not asked: the limit of values per run is reached")] * len(values)
    asked: list[int] = []
    for place, (data, _) in enumerate(values):
        if len(data) > _LONGEST_VALUE:
            opinions[place] = SecondOpinion(note="not asked: the value is too long")
        elif len(asked) < _MOST_VALUES:
            asked.append(place)
    deadline = time.monotonic() + _WALL_SECONDS
    for _ in range(_MOST_CHILDREN):
        if not asked:
            break
        answers, problem = _ask([values[place][0] for place in asked], deadline - time.monotonic())
        for place, answer in zip(asked, answers, strict=False):
            opinions[place] = _opinion(answer, values[place][1])
        rest = asked[len(answers) :]
        if rest:  # the child ended at this value: say so, and give the values after it another child
            opinions[rest[0]] = SecondOpinion(note=problem)
        asked = rest[1:]
    for place in asked:
        opinions[place] = SecondOpinion(note="not asked: fickling failed on other values of this run")
    return opinions


def _opinion(answer: dict[str, Any], ours: Iterable[str]) -> SecondOpinion:
    if "problem" in answer:
        return SecondOpinion(note=str(answer["problem"]))
    imports = tuple(str(name) for name in answer["imports"])
    ours = tuple(dict.fromkeys(ours))
    # fickling writes no import for names of `builtins`: they need none in a program
    known = {name.removeprefix("builtins.") for name in ours}
    named = {name.removeprefix("builtins.") for name in imports}
    return SecondOpinion(
        severity=str(answer["severity"]),
        decompiled=str(answer["decompiled"]) + ("\n# cut" if answer["cut"] else ""),
        imports=imports,
        only_fickling=tuple(name for name in imports if name.removeprefix("builtins.") not in known),
        only_exhume=tuple(name for name in ours if not name.startswith("builtins.") and name not in named),
        note=f"fickling {answer['version']}",
    )


def _ask(values: Sequence[bytes], seconds: float) -> tuple[list[dict[str, Any]], str]:
    """Answers of one child, as many as it gave, and what ended it."""
    problem = "failed"
    with tempfile.TemporaryFile() as questions, tempfile.TemporaryFile() as answers:
        for data in values:
            questions.write(len(data).to_bytes(8, "big") + data)
        questions.seek(0)
        try:
            child = subprocess.Popen(
                # -I: neither the working folder nor the environment can put another module in fickling's place
                [sys.executable, "-I", "-m", "exhume.pickles.evidence_child"],
                stdin=questions,
                stdout=answers,
                stderr=subprocess.DEVNULL,
                env={"PATH": os.defpath, "PYTHONIOENCODING": "utf-8"},
            )
        except (OSError, subprocess.SubprocessError):
            return [], "could not be started"
        try:
            status = child.wait(timeout=max(seconds, 0.1))
            if status:
                problem = "crashed, or needed more memory or time than it may"
        except subprocess.TimeoutExpired:
            problem = "took too long"
        finally:
            child.kill()
            child.wait()
        answers.seek(0)
        return _parsed(answers.read(_LONGEST_ANSWER)), problem


def _parsed(output: bytes) -> list[dict[str, Any]]:
    made: list[dict[str, Any]] = []
    for line in output.splitlines():
        try:
            answer = json.loads(line)
        except ValueError:
            break
        made.append(answer)
    return made
