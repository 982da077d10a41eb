"""Graph classification on graphs that mix homophily and heterophily (IHGNN)."""

import logging

__version__ = "0.1.0"

# A library is silent unless its user listens; the command line does.
logging.getLogger(__name__).addHandler(logging.NullHandler())
