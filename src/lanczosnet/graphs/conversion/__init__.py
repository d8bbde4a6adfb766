"""From files of any size to a graph folder, in memory that does not grow with them (`lanczosnet data convert`).

`tables` reads files block by block, `edges` sorts the edges outside memory, `nodes` copies features, labels and masks,
and `journal` remembers what is done, so that a killed conversion goes on. Nothing here imports torch.
"""
