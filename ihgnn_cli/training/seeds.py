"""Randomness: every draw is a function of the seed and its purpose.

Each purpose has its own generator, so there is no random state to save: epoch 40 draws the same
numbers with or without a restart.
"""

import hashlib

import torch


def generator(seed: int, purpose: str, number: int = 0) -> torch.Generator:
    """A CPU generator for one purpose of one seed, independent of all others."""
    digest = hashlib.sha256(f"{seed} {purpose} {number}".encode()).digest()
    return torch.Generator().manual_seed(int.from_bytes(digest[:8], "big") >> 1)
