"""The 10-fold protocol and the search over configurations."""
