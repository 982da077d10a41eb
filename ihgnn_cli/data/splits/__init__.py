"""Splits into train, validation and test: drawn from a seed or read from a file."""
