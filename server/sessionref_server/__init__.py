"""sessionref: the service behind ``@``."""

__version__ = "0.1.0"
