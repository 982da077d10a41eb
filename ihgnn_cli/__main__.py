"""`python -m ihgnn_cli` is the `ihgnn` command."""

from ihgnn_cli.cli import main

if __name__ == "__main__":
    main()
