"""Splits into train, validation and test: drawn from a seed or read from a file."""

from ihgnn_cli.data.kinds import ALL, HOLDOUT, file_readings, is_drawn, split_shares
from ihgnn_cli.data.splits.folds import (
    PROTOCOL_FOLDS,
    Fold,
    draw_folds,
    fold_file,
    inner_folds,
    read_fold_file,
    write_fold_file,
)
from ihgnn_cli.data.splits.load import load_split
from ihgnn_cli.data.splits.split import Split, holdout

__all__ = [
    "ALL",
    "HOLDOUT",
    "PROTOCOL_FOLDS",
    "Fold",
    "Split",
    "draw_folds",
    "file_readings",
    "fold_file",
    "holdout",
    "inner_folds",
    "is_drawn",
    "load_split",
    "read_fold_file",
    "split_shares",
    "write_fold_file",
]
