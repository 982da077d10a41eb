"""IHGNN, fast: the model of `models/ihgnn.py` with a leading member axis and written gradients."""
