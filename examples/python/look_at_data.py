"""Load a data set, look at its columns, and exchange it with torch-geometric.

Run: python examples/python/look_at_data.py [NAME or PATH]
"""

import sys

import numpy as np

from ihgnn_cli.data import load_dataset
from ihgnn_cli.data.pyg import from_pyg, to_pyg
from ihgnn_cli.homophily.measures import graph_homophily


def main() -> None:
    dataset = load_dataset(sys.argv[1] if len(sys.argv) > 1 else "MUTAG")
    print(f"{dataset.name}: {len(dataset)} graphs, {dataset.num_nodes} nodes in all")

    # Columns, not objects: one graph is a slice of them.
    first = slice(dataset.node_ptr[0], dataset.node_ptr[1])
    print("labels of graph 0:", [dataset.label_values[i] for i in dataset.node_label[first]])

    beta = graph_homophily(dataset)
    most = int(np.argmax(beta))
    print(f"beta {beta.mean():.3f} ± {beta.std():.3f}; graph {most} is the most homophilic")

    # To torch-geometric and back without a loss.
    graphs = to_pyg(dataset)
    print("graph 0 in torch-geometric:", graphs[0])
    print("the same after the round trip:", from_pyg(graphs).fingerprint == dataset.fingerprint)


if __name__ == "__main__":
    main()
