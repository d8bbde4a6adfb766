"""The arrays of a graph folder. This module needs no package, so that a graph in memory can know their names."""

REMEDY = "The folder is damaged: convert the files again with `lanczosnet data convert`"
# With the kinds of their NumPy types and their number of axes.
ARRAYS = {
    "row_pointer": ("i", (1,)),
    "column": ("i", (1,)),
    "edge_weight": ("f", (1,)),
    "features": ("f", (2,)),
    "labels": ("if", (1, 2)),
    "labelled": ("b", (1,)),
    "train_mask": ("b", (1,)),
    "val_mask": ("b", (1,)),
    "test_mask": ("b", (1,)),
}
OF_ENTRIES = ("row_pointer", "column", "edge_weight")
