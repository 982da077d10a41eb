"""Models: IHGNN (readable and stacked), the baselines it is compared with, and their registry."""
