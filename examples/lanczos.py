"""Lanczos on the karate club: Ritz values beside the true eigenvalues, and a gradient through all of it."""

import torch

from lanczosnet.affinity import adjacency, normalized
from lanczosnet.graphs import load
from lanczosnet.krylov import lanczos, matrix_function, ritz, tridiagonal_matrix

graph = load("karate")
weight = torch.ones(graph.num_edges, requires_grad=True)
S = normalized(adjacency(graph.edge_index, weight))
result = lanczos(S, num_steps=12)
pairs = ritz(result)
true = torch.linalg.eigvalsh(S.dense().detach().double()).flip(0)

print(f"{S.num_nodes} nodes, {result.steps.item()} Lanczos steps")
print("leading Ritz values:", [round(value, 5) for value in pairs.values[:5].tolist()])
print("true eigenvalues:   ", [round(value, 5) for value in true[:5].tolist()])

heat = matrix_function(tridiagonal_matrix(result), lambda r: torch.exp(-2 * (1 - r)))
trace = (result.basis @ heat @ result.basis.mT).diagonal().sum()
trace.backward()
strongest = int(weight.grad.abs().argmax())
pair = graph.edge_index[:, strongest].tolist()
print(f"heat kernel trace {trace.item():.4f}; the edge it depends on most joins nodes {pair[0]} and {pair[1]}")
