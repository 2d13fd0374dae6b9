"""Which parts of a value are credentials, and how they are hidden before anything is shown or exported."""

from __future__ import annotations

import re
from typing import Any

from exhume.errors import ExhumeError
from exhume.events.json_text import dump, parse
from exhume.redact import mask_url

#: Stands for what is hidden. It says that something was there, and nothing about it, not even how long it was.
HIDDEN = "(hidden)"

#: Names of fields, without case and separators, whose value is a credential whatever it looks like. OAuth fields are
#: those of google.adk.auth.auth_credential (2.13.0): the code and the redirect that carries it are as good as a token.
_SECRET = re.compile(
    r"(?:.*(?:secret|password|passwd|passphrase|apikey|privatekey|accesskey|assertion"
    r"|token|authorization|authcode|authresponseuri|codeverifier)|pwd|cookie)\Z"
)
#: Names that end like secrets and are none: where the next page of a list begins.
_HARMLESS = frozenset({"nextpagetoken", "pagetoken", "nexttoken"})
#: How many texts inside texts are looked into.
_WRAPS = 3
#: Deepest nesting that is looked into, texts inside texts counted; readers stop at 254 in an event, and at 200
#: in a text in it.
_DEEPEST = 260
_BEARER = re.compile(r"\b(Bearer|Basic)\s+[A-Za-z0-9._~+/=-]{8,}", re.IGNORECASE)
_PEM = re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)", re.DOTALL)


def is_secret_name(name: str) -> bool:
    """Does a field of this name hold a credential? Case, `_`, `-` and blanks do not matter."""
    if len(name) > 200:
        return False
    bare = re.sub(r"[\s_\-.:]", "", name).lower()
    return bare not in _HARMLESS and _SECRET.match(bare) is not None


def hide_text(text: str) -> str:
    """A text without passwords in URLs, tokens after `Bearer` or `Basic`, and private keys."""
    if "://" in text:
        text = mask_url(text)
    text = _BEARER.sub(rf"\1 {HIDDEN}", text)
    return _PEM.sub(HIDDEN, text) if "PRIVATE KEY" in text else text


def hide(value: Any) -> Any:
    """A copy of a JSON value without credentials: shapes and names stay, values under secret names are replaced.

    A text that is itself a JSON object or array is looked into, since answers are often wrapped so. An empty value
    stays: that nothing was given is worth knowing.
    """
    return _hide(value, _WRAPS, _DEEPEST)


def _hide(value: Any, wraps: int, depth: int) -> Any:
    if depth <= 0:
        return HIDDEN  # what cannot be looked into may be a credential
    if isinstance(value, str):
        return _hide_text(value, wraps, depth)
    if isinstance(value, list):
        return [_hide(item, wraps, depth - 1) for item in value]
    if not isinstance(value, dict):
        return value
    found: dict[str, Any] = {}
    for name, item in value.items():
        if is_secret_name(name):
            found[name] = HIDDEN if _given(item) else item
        elif name in ("oauth2", "http") and isinstance(item, dict):
            found[name] = {inner: _hide_credential(inner, part, wraps, depth - 1) for inner, part in item.items()}
        else:
            found[name] = _hide(item, wraps, depth - 1)
    return found


def _hide_text(text: str, wraps: int, depth: int) -> str:
    if wraps and text.lstrip()[:1] in ("{", "["):
        try:
            inner = parse(text).value
        except ExhumeError:
            return hide_text(text)  # prose that begins with a bracket
        hidden = _hide(inner, wraps - 1, depth)
        return text if hidden == inner else dump(hidden)
    return hide_text(text)


def _hide_credential(name: str, value: Any, wraps: int, depth: int) -> Any:
    """One field of an OAuth or HTTP credential, where also `state` and `credentials` are confidential."""
    if name in ("state", "credentials", "nonce") and _given(value):
        return HIDDEN
    return _hide({name: value}, wraps, depth)[name]


def _given(value: Any) -> bool:
    # a number or a list under such a name may be the secret, too; a truth value cannot
    return value is not None and not isinstance(value, bool) and value not in ("", [], {})
