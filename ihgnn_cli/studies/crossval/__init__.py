"""Nested cross-validation: what is trained, what is chosen, and the result."""
