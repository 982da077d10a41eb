"""Registry entries, one model per file. They import without torch, which is slow to start."""
