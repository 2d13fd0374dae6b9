"""The rules by family; importing a module here registers its rules, one line a module."""

from exhume.audit.rules import (  # noqa: F401 - each import registers
    content,
    log_losses,
    log_rows,
    log_times,
    log_turns,
    pickles,
    state,
    state_replay,
)
