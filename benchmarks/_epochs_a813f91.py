"""The side of revision a813f91 in `versions.py`, which has no `_epochs.py` of its own.

It runs with that checkout's package and its `benchmarks/_plain.py`; only `_epoch_server.py` is the
one beside this file. Later revisions have an `_epochs.py`.
"""

import math
import sys

from _epoch_server import serve
from _plain import BATCH_SIZE, late, load_task, stack


def main() -> None:
    name, models = sys.argv[1], int(sys.argv[2])
    task = load_task(name)
    steps = math.ceil(len(task.splits[0].train) / BATCH_SIZE)
    serve(lambda: late(stack(task, models)).train_epoch, models, steps)


if __name__ == "__main__":
    main()
