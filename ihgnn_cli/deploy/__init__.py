"""Exported models: export, verification, and prediction with `load(path).predict(graphs)`."""
