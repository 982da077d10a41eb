"""The models: IHGNN, readable and stacked; the methods it is compared with; their registry."""
