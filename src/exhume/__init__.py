"""exhume: understand, migrate and audit session databases of Google's Agent Development Kit."""

from exhume._version import __version__

__all__ = ["__version__"]
