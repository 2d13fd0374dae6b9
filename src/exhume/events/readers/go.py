"""Readers of adk-go's tables and of adk-java's draft, which look like v0 but hold the actions as JSON."""

from __future__ import annotations

from typing import Any

from exhume.events.actions import Actions, read_json_actions
from exhume.events.model import Capability, Loss
from exhume.events.readers.base import unreadable
from exhume.events.readers.columns import ColumnReader, Seen
from exhume.events.shapes import Findings, model, shape
from exhume.schema.detection import Layout
from exhume.stores.interface import Cell


class GoReader(ColumnReader):
    """adk-go (`session/database/storage_session.go`): actions are JSON in bytes, keys are camelCase, times have a zone.

    `output_json`, `node_info_json`, `isolation_scope` and `routes_json` are what Python calls `output`, `node_info`,
    `isolation_scope` and `actions.route`. `requested_input_json` has no field in Python: it is kept as
    `requested_input` at the top level, which ADK passes over.
    """

    layout = Layout.GO
    capabilities = frozenset(
        {
            Capability.ACTIONS,
            Capability.LONG_RUNNING,
            Capability.STATE,
            Capability.SESSION_TIMES,
            Capability.STATE_ROWS,
            Capability.CONFIRMATIONS,
        }
    )
    own_columns: tuple[str, ...] = (
        "routes_json",
        "output_json",
        "node_info_json",
        "requested_input_json",
        "isolation_scope",
    )

    def actions(self, cell: Cell) -> Actions:
        return read_json_actions(cell)

    def findings(self) -> Findings:
        return Findings(go=True)

    def take_own(self, data: dict[str, Any], cells: dict[str, Cell], seen: Seen) -> None:
        for name, cell in cells.items():
            if name == "isolation_scope":
                text = self.plain_text(cell, name, seen)
                if text:  # Go has no NULL for a text that was never set
                    data[name] = text
                continue
            value = self.json_value(cell, name, seen)
            if value is None:
                continue
            if name == "output_json":
                data["output"] = value
            elif name == "node_info_json" and type(value) is dict:
                found = self.findings()
                data["node_info"] = shape(value, model("NodeInfo"), "node_info", found)
                seen.take(found, name, cell)
            elif name == "routes_json" and _is_route(value):
                if value != []:
                    data["actions"] = {**data["actions"], "route": value}
            elif name == "requested_input_json":
                data["requested_input"] = value
                seen.losses.append(Loss("field-unknown-to-python", "requested_input"))
            else:
                seen.problems.append(unreadable(name, f"{name} is not what adk-go writes there", cell))


def _is_route(value: Any) -> bool:
    """What `EventActions.route` takes: a text, a number, a boolean, or a list of these."""
    members = value if isinstance(value, list) else [value]
    return all(isinstance(one, (str, int)) for one in members)


class JavaFlywayReader(GoReader):
    """adk-java's draft `DatabaseSessionService`: v0's column names, `actions` as JSON, Flyway's own history table."""

    layout = Layout.JAVA_FLYWAY
    own_columns = ()
