"""What may leave the house: everything, everything but credentials, or the shape of the log without its texts."""

from __future__ import annotations

import hashlib
import hmac
import json
from typing import Any

from exhume.audit.decisions import says_refused, says_unknown_tool
from exhume.audit.log import REQUEST_PREFIX
from exhume.audit.secrets import HIDDEN, hide
from exhume.events.json_text import NotJson, parse
from exhume.export.interface import Redact

#: Members of ADK's own calls and of actions that say how the log hangs together, not what was said.
_STRUCTURE = frozenset({"id", "name", "functionCallId", "function_call_id"})
#: Fields of an event that hold what people, models or tools said. All other fields of an event are ADK's own.
_SAID = frozenset({"error_message", "input_transcription", "output_transcription", "custom_metadata", "output"})
_SAID_IN_ACTIONS = frozenset({"state_delta", "agent_state", "compaction", "render_ui_widgets", "set_model_response"})

#: ADK's fixed texts (google.adk.flows.llm_flows.functions, 2.13.0).
_WANTED = "This tool call requires confirmation, please approve or reject."
_REJECTED = "This tool call is rejected."
_UNKNOWN = "Tool (text) not found."
_ABORTED = "Invocation was aborted by client."


def _outcome(body: Any) -> dict[str, str]:
    """Why a call has no result, in ADK's own words; empty for one that has."""
    error = body.get("error")
    if error in (_WANTED, _REJECTED, _ABORTED):
        return {"error": error}
    if says_unknown_tool(body):
        return {"error": _UNKNOWN}
    return {"error": _REJECTED} if says_refused(body) else {}


class Redactor:
    """Takes out of events and states what the level says.

    At `texts` each text becomes a short mark that is equal for equal texts, so that repeated actions can still be
    told. The marks are keyed with the source's own hash: who does not have the source cannot try texts against them.
    """

    def __init__(self, level: Redact, key: bytes) -> None:
        self.level = level
        self._key = key

    def event(self, data: dict[str, Any]) -> dict[str, Any]:
        """An event in v1 form."""
        if self.level is Redact.NOTHING:
            return data
        hidden: dict[str, Any] = hide(data)
        return hidden if self.level is Redact.CREDENTIALS else self._without_texts(hidden)

    def state(self, state: dict[str, Any]) -> dict[str, Any]:
        """A state: of a session, a user or an app."""
        if self.level is Redact.NOTHING:
            return state
        hidden: dict[str, Any] = hide(state)
        return hidden if self.level is Redact.CREDENTIALS else self._marked(hidden)

    def _without_texts(self, data: dict[str, Any]) -> dict[str, Any]:
        found = {name: self._marked(value) if name in _SAID else value for name, value in data.items()}
        content = data.get("content")
        if isinstance(content, dict):
            parts = content.get("parts")
            kept = {"role": content["role"]} if isinstance(content.get("role"), str) else {}
            if isinstance(parts, list):
                kept["parts"] = [self._part(part) if isinstance(part, dict) else None for part in parts]
            found["content"] = kept
        actions = data.get("actions")
        if isinstance(actions, dict):
            found["actions"] = {
                name: self._marked(value)
                if name in _SAID_IN_ACTIONS
                else self._marked(value, keep=_STRUCTURE)
                if name in ("requested_tool_confirmations", "requested_auth_configs")
                else value
                for name, value in actions.items()
            }
        for name in ("grounding_metadata", "citation_metadata"):
            found.pop(name, None)
        return found

    def _part(self, part: dict[str, Any]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for name, value in part.items():
            if name == "function_call" and isinstance(value, dict):
                own = str(value.get("name", "")).startswith(REQUEST_PREFIX)
                found[name] = {
                    **value,
                    "args": self._marked(value.get("args"), keep=_STRUCTURE if own else frozenset()),
                }
            elif name == "function_response" and isinstance(value, dict):
                found[name] = {**value, "response": self._response(value)}
            elif name in ("inline_data", "file_data", "thought_signature"):
                continue  # bytes say what was said as well as texts do
            else:
                found[name] = self._marked(value)
        return found

    def _response(self, value: dict[str, Any]) -> Any:
        body = value.get("response")
        inner = body.get("response") if isinstance(body, dict) and len(body) == 1 else None
        if str(value.get("name", "")).startswith(REQUEST_PREFIX) and isinstance(inner, str):
            # a decision may come as JSON text inside the JSON: it stays one, so that it can still be read
            try:
                return {"response": json.dumps(self._marked(parse(inner).value), ensure_ascii=True)}
            except NotJson:
                return self._marked(body)
        marked = self._marked(body)
        if isinstance(marked, dict):
            # what became of a call is how the log hangs together: said in ADK's own words, not in the tool's
            marked.update(_outcome(body))
        return marked

    def _marked(self, value: Any, *, keep: frozenset[str] = frozenset()) -> Any:
        if isinstance(value, str):
            return value if value in ("", HIDDEN) else self._mark(value)
        if isinstance(value, list):
            return [self._marked(item, keep=keep) for item in value]
        if isinstance(value, dict):
            return {
                name: item if name in keep and isinstance(item, str) else self._marked(item, keep=keep)
                for name, item in value.items()
            }
        return value

    def _mark(self, text: str) -> str:
        digest = hmac.new(self._key, text.encode("utf-8", "surrogatepass"), hashlib.sha256)
        return f"(text {digest.hexdigest()[:10]})"
