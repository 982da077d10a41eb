"""Cross-validation, tuning and reproduction of the paper."""
