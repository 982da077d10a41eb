"""Randomness: every draw is a function of the seed and of what it is for.

No generator lives longer than its purpose, so there is no random state to save: epoch 40 draws
the same numbers whether it was reached in one go or after a restart.
"""

import hashlib

import torch


def generator(seed: int, purpose: str, number: int = 0) -> torch.Generator:
    """A generator on the CPU for one purpose of one seed, unrelated to all others."""
    digest = hashlib.sha256(f"{seed} {purpose} {number}".encode()).digest()
    return torch.Generator().manual_seed(int.from_bytes(digest[:8], "big") >> 1)
