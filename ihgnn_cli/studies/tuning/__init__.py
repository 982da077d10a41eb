"""Hyper-parameter search: trials of an Optuna study, trained in stacks."""
