"""The commands as functions: `ihgnn_cli` exports them and `cli` calls them."""
