"""`python -m lanczosnet.cli`."""

from lanczosnet.cli import main

main()
