"""Trains an epoch for each line read from standard input, and prints what it took as JSON."""

import json
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from _measure import peak_memory
from torch.utils._python_dispatch import TorchDispatchMode

import ihgnn_cli

# Operations that launch no kernel: views, shapes, and memory without content.
FREE = frozenset(
    (
        *("view", "_unsafe_view", "_reshape_alias", "as_strided", "reshape", "flatten", "alias"),
        *("transpose", "t", "permute", "expand", "unsqueeze", "squeeze", "diagonal", "detach"),
        *("slice", "select", "narrow", "split", "split_with_sizes", "chunk", "unbind"),
        *("empty", "empty_like", "new_empty", "empty_strided", "is_same_size", "lift_fresh"),
    )
)
READ = "_local_scalar_dense"
"""Reads the value of a tensor, for which a GPU has to wait."""


class Launches(TorchDispatchMode):
    """Counts the operations that launch a kernel; exact on a CPU, too."""

    def __init__(self) -> None:
        super().__init__()
        self.count: Counter[str] = Counter()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = func.overloadpacket.__name__
        if name not in FREE:
            self.count[name] += 1
        return func(*args, **(kwargs or {}))


def serve(make: Callable[[], Callable[[], object]], models: int, steps: int) -> None:
    """Answer `epoch` with seconds and memory, and `launches` with operations per training step.

    Args:
        make: creates the function that trains all models for one epoch.
        models: how many models it trains; seconds are per model.
        steps: optimizer steps of an epoch.
    """
    torch.set_num_threads(1)
    torch.set_flush_denormal(True)  # as every worker of ihgnn
    epoch = make()
    print(json.dumps({"package": str(Path(ihgnn_cli.__file__).parent)}), flush=True)
    for request in sys.stdin:
        if request.strip() == "launches":
            with Launches() as seen:
                epoch()
            reads = seen.count.pop(READ, 0)
            print(json.dumps({"launches": seen.count.total() / steps, "reads": reads}), flush=True)
            continue
        began = time.process_time()
        epoch()
        seconds = (time.process_time() - began) / models
        print(json.dumps({"seconds": seconds, "memory": peak_memory()}), flush=True)
