"""Homophily of nodes and graphs: equations 1 and 2 of the paper and two other measures."""
