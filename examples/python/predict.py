"""Predict the class of a graph with an exported model: onnxruntime and NumPy, nothing else.

Run: ihgnn export runs/MUTAG-1 model.onnx && python examples/python/predict.py model.onnx
"""

import json
import sys
from pathlib import Path

import numpy as np
import onnxruntime

# Nitrobenzene as MUTAG writes it: 0 is carbon, 1 nitrogen, 2 oxygen; hydrogen is left out.
LABELS = [0, 0, 0, 0, 0, 0, 1, 2, 2]
EDGES = [(0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (5, 0), (0, 6), (6, 7), (6, 8)]


def main() -> None:
    path = Path(sys.argv[1] if len(sys.argv) > 1 else "model.onnx")
    about = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
    known = {label: position for position, label in enumerate(about["card"]["label_values"])}
    labels = np.array([known.get(label, about["unknown_label"]) for label in LABELS])
    source, target = np.array(EDGES + [(b, a) for a, b in EDGES]).T  # both directions

    if about["layout"] == "sparse":
        inputs = {
            "node_labels": labels,
            "edge_index": np.stack([source, target]),
            "ptr": np.array([0, len(labels)]),  # where each graph begins, and the end
        }
    else:
        size = about.get("padded_to") or len(labels)
        inputs = {
            "node_labels": np.full((1, size), about["padding_label"]),
            "adjacency": np.zeros((1, size, size), dtype=np.uint8),
        }
        inputs["node_labels"][0, : len(labels)] = labels
        inputs["adjacency"][0, source, target] = 1

    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    (probabilities,) = session.run(["probabilities"], inputs)
    for value, p in zip(about["card"]["class_values"], probabilities[0], strict=True):
        print(f"class {value}: {p:.4f}")


if __name__ == "__main__":
    main()
