"""Readers: raw text to a `GraphDataset`, or every reason why not."""
