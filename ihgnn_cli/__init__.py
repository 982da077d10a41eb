"""Graph classification on graphs that mix homophily and heterophily (IHGNN)."""

__version__ = "0.1.0"
