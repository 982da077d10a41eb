"""Batches of graphs for stacks of models; `wl_rows` is for code that runs without torch, too."""
