"""The side of this checkout in `versions.py`: trains a stack of models, epoch by epoch.

    python benchmarks/_epochs.py NAME MODELS

`versions.py` starts the `_epochs.py` of each checkout that it compares, so that each calls its own
revision's functions. Change this file together with the functions that it calls.
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
