"""What the commands do, as functions: `ihgnn_cli` exports them, and `cli` calls the same ones."""
