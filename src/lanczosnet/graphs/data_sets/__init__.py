"""Data sets by name: what is published about each, where its files are, how they are downloaded, checked and read."""
