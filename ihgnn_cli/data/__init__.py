"""Graph data sets: sources, readers, columns, splits and batches."""

from ihgnn_cli.data.dataset import GraphDataset
from ihgnn_cli.data.features import Features, node_features
from ihgnn_cli.data.sources import load_dataset

__all__ = ["Features", "GraphDataset", "load_dataset", "node_features"]
