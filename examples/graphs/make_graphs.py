"""Print alcohols-and-ethers.jsonl: 200 random carbon skeletons with one or two oxygen atoms.

In an alcohol the oxygen has one carbon neighbour (C-O), in an ether two (C-O-C). Sizes and numbers
of oxygen atoms are drawn the same way for both classes, so only the bonds tell them apart.

Usage: python make_graphs.py > alcohols-and-ethers.jsonl
"""

import json
import random
import sys


def molecule(rng: random.Random, kind: str) -> tuple[list[str], list[list[int]]]:
    """Labels and edges of a random tree of carbons with its oxygen atoms."""
    carbons = rng.randint(4, 12)
    edges = [[rng.randrange(node), node] for node in range(1, carbons)]
    labels = ["C"] * carbons
    for _ in range(rng.randint(1, 2)):
        oxygen = len(labels)
        labels.append("O")
        if kind == "ether":  # insert it into a bond between two carbons
            bond = rng.choice([edge for edge in edges if max(edge) < carbons])
            edges.remove(bond)
            edges += [[bond[0], oxygen], [bond[1], oxygen]]
        else:
            edges.append([rng.randrange(carbons), oxygen])
    return labels, edges


rng = random.Random(0)
for number in range(200):
    kind = ("alcohol", "ether")[number % 2]
    labels, edges = molecule(rng, kind)
    graph = {"id": f"{kind}-{number}", "node_labels": labels, "edges": edges, "class": kind}
    sys.stdout.write(json.dumps(graph) + "\n")
