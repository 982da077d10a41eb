"""Figures and tables in files."""
