"""The rules by family; importing a module here registers its rules, one line a module."""

from exhume.audit.rules import (  # noqa: F401 - each import registers
    approvals_decisions,
    approvals_repeated,
    approvals_requests,
    approvals_runs,
    call_ids,
    call_ids_links,
    call_ids_reuse,
    call_ids_turns,
    content_json,
    content_secrets,
    log_losses,
    log_rows,
    log_times,
    log_turns,
    pickles,
    state,
    state_replay,
)
