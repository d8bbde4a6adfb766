# %% [markdown]
# # The adjoint against finite differences
#
# `lanczos` has a hand-written gradient: its adjoint walks the iteration backwards and keeps only the basis. We compare
# it with finite differences and with autograd through every operation of the iteration.

# %%
import matplotlib.pyplot as plt
import torch

from lanczosnet import lanczos
from lanczosnet.affinity import adjacency, normalized
from lanczosnet.graphs import load
from lanczosnet.krylov import start

graph = load("karate")
weight = torch.ones(graph.num_edges, dtype=torch.float64)
first = start.random(normalized(adjacency(graph.edge_index, weight)), torch.Generator().manual_seed(0))
direction = torch.randn(graph.num_edges, dtype=torch.float64, generator=torch.Generator().manual_seed(1))


def objective(weight, gradient="adjoint"):
    """A smooth function of the coefficients in T."""
    S = normalized(adjacency(graph.edge_index, weight), validate=False)
    result = lanczos(S, first, num_steps=8, gradient=gradient)
    return (result.diagonal.sin() + result.off_diagonal.square()).sum()


# %% [markdown]
# Edge weights are stored once per direction. An undirected edge needs the same weight both ways, so the direction of
# the derivative is made symmetric.

# %%
source, target = graph.edge_index
place = {edge: number for number, edge in enumerate(zip(source.tolist(), target.tolist(), strict=True))}
reverse = torch.tensor([place[edge] for edge in zip(target.tolist(), source.tolist(), strict=True)])
direction = direction + direction[reverse]


def slope(gradient):
    variable = weight.clone().requires_grad_()
    objective(variable, gradient).backward()
    return (variable.grad * direction).sum().item()


adjoint, autograd = slope("adjoint"), slope("autograd")
print(f"adjoint  {adjoint:.12f}\nautograd {autograd:.12f}")
assert abs(adjoint - autograd) < 1e-9 * abs(adjoint)

# %% [markdown]
# Central differences approach the adjoint with the square of the step h. Below about 1e-5 rounding takes over, as it
# does for every finite difference.

# %%
sizes = torch.logspace(-8, -1, 29, dtype=torch.float64)
with torch.no_grad():
    differences = [(objective(weight + h * direction) - objective(weight - h * direction)) / (2 * h) for h in sizes]
error = (torch.stack(differences) - adjoint).abs() / abs(adjoint)
print(f"smallest relative difference: {error.min():.1e}")
assert error.min() < 1e-8

# %%
plt.style.use("tableau-colorblind10")
figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
axes.loglog(sizes, error, "o-", color="C0", markersize=4, label="central differences against the adjoint")
axes.loglog(sizes[12:], error[20] * (sizes[12:] / sizes[20]) ** 2, "--", color="C1", label="slope 2")
axes.set(xlabel="step h", ylabel="relative difference", title="Gradient of Lanczos coefficients by edge weights")
axes.legend(frameon=False)
figure.savefig("adjoint_gradient.png", dpi=150)
