"""Graph classification on graphs that mix homophily and heterophily (IHGNN)."""

import logging

__version__ = "0.1.0"

# Libraries do not log unless the application configures it.
logging.getLogger(__name__).addHandler(logging.NullHandler())
