"""Molecules: from tables with SMILES to packed graphs.

`table` reads, `columns` and `targets` say what is in it, `smiles` and `featurizer` make arrays, `loading` keeps them.
"""
