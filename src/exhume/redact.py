"""What is shown passes here: passwords are masked, control characters are made visible.

Text from a database is hostile. It may hold escape sequences that rewrite a terminal, bidirectional
controls that reorder a line, or line breaks that forge one.
"""

from __future__ import annotations

import re
import unicodedata

#: Unicode categories that never reach a screen as they are: control, format, surrogate, private use,
#: unassigned, line and paragraph separators.
_HIDDEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
#: SQLAlchemy lets a password hold `/`, `?` and `#` as they are: all up to the last `@` of the word is masked, even
#: where that takes a path for a password. The bound keeps hostile text from costing more than its length.
_PASSWORD = re.compile(r"(?<=://)([^/?#:\s]*):\S{0,2000}@")
_QUERY_VALUE = re.compile(r"(?<=[?&])([^=&#\s]+)=([^&#\s]*)")


def printable(text: object, *, limit: int | None = None) -> str:
    """`text` as one harmless line: hidden characters become visible escapes such as `\\x1b` or `\\u202e`.

    Args:
        text: any value; `str()` is taken of it.
        limit: longest result in characters; a longer one ends in an ellipsis.
    """
    shown = str(text)
    if limit is not None and len(shown) > limit * 8:
        shown = shown[: limit * 8]  # a hostile text may be megabytes long; only its head can be shown
    if not shown.isprintable():  # quick for nearly all texts; of what is printable no character is hidden
        shown = "".join(_visible(char) for char in shown)
    if limit is not None and len(shown) > limit:
        shown = shown[: max(limit - 1, 0)] + "…"
    return shown


def _visible(char: str) -> str:
    if unicodedata.category(char) not in _HIDDEN:
        return char
    code = ord(char)
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def mask_url(text: str) -> str:
    """A URL, or any text that holds URLs, with user passwords and all query values masked."""
    if "://" not in text:
        return text
    return _QUERY_VALUE.sub(r"\1=***", _PASSWORD.sub(r"\1:***@", text))
