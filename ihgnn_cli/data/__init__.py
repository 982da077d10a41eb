"""Graph data sets: where they come from, how they are read, and the columns they become."""

from ihgnn_cli.data.dataset import GraphDataset
from ihgnn_cli.data.features import Features, node_features
from ihgnn_cli.data.sources import load_dataset

__all__ = ["Features", "GraphDataset", "load_dataset", "node_features"]
