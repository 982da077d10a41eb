"""Batches of graphs for stacks of models."""

from ihgnn_cli.data.batching.batch import Batch, Positions, ReadoutLayout
from ihgnn_cli.data.batching.blocks import Block
from ihgnn_cli.data.batching.store import GraphStore

__all__ = ["Batch", "Block", "GraphStore", "Positions", "ReadoutLayout"]
