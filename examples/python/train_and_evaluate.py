"""Train on a data set, and see how accurate the model is on homophilic and heterophilic graphs.

Run: python examples/python/train_and_evaluate.py [NAME or PATH] [EPOCHS]
"""

import sys
import tempfile
from pathlib import Path

from ihgnn_cli.data import load_dataset
from ihgnn_cli.inference.evaluation import evaluate
from ihgnn_cli.training import run
from ihgnn_cli.training.classifier import load_torch
from ihgnn_cli.training.config import configure
from ihgnn_cli.training.devices import resolve_device


def main() -> None:
    name = sys.argv[1] if len(sys.argv) > 1 else "MUTAG"
    epochs = int(sys.argv[2]) if len(sys.argv) > 2 else 50

    with tempfile.TemporaryDirectory() as parent:
        folder = Path(parent) / "run"
        config = configure(overrides={"dataset": name, "epochs": epochs})
        prepared = run.start(run.prepare(config), folder)
        outcome = run.fit(prepared, folder)
        classifier = load_torch(folder / "ckpt.pt", resolve_device("auto"))

    found = evaluate(classifier, load_dataset(name))
    print(f"{name}: {found.metrics.accuracy:.1%} of {found.metrics.graphs} test graphs")
    print(f"(epoch {outcome.best.epoch} of {outcome.epochs}, chosen on validation; one run)")
    for words, side in (
        ("mostly heterophilic", found.sides.heterophilic),
        ("mostly homophilic", found.sides.homophilic),
    ):
        if side.graphs:
            print(f"  {words}: {side.accuracy:.1%} of {side.graphs}")


if __name__ == "__main__":
    main()
