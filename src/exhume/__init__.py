"""exhume: understand, migrate and audit session databases of Google's Agent Development Kit (ADK).

The public API is `exhume.api`, with the verbs of the command line.
"""

from exhume._version import __version__

__all__ = ["__version__"]
