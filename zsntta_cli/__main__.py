"""`python -m zsntta_cli` is `zsntta`."""

from zsntta_cli.cli import main

if __name__ == "__main__":
    main()
