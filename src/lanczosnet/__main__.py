"""`python -m lanczosnet` is the command `lanczosnet`."""

from lanczosnet.cli import main

main()
