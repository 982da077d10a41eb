"""The one model package: IHGNN, its layers, its readout and its ablations."""
