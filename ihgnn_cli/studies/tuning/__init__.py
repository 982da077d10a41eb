"""The search for good settings: trials of an Optuna study, trained in stacks."""
