# %% [markdown]
# # Lanczos and its Ritz values
#
# The Lanczos algorithm compresses a graph operator S with N nodes into a tridiagonal matrix T with K rows.
# The eigenvalues of T are the Ritz values. They approximate the eigenvalues of S, and the ends of the spectrum
# converge first.

# %%
import matplotlib.pyplot as plt
import torch

from lanczosnet import lanczos
from lanczosnet.affinity import adjacency, normalized
from lanczosnet.graphs import load
from lanczosnet.krylov import ritz, start

graph = load("block-model", sizes=[100, 100, 100], inside=0.12, between=0.005, seed=0)
S = normalized(adjacency(graph.edge_index)).to(torch.float64)  # S = D^-1/2 (A + I) D^-1/2
eigenvalues = torch.linalg.eigvalsh(S.dense()).flip(0)
print(f"{graph.num_nodes} nodes, {graph.num_edges // 2} edges")

# %% [markdown]
# We run Lanczos with one to forty steps from the same random vector. More steps only add to the basis, so one call
# would be enough in practice.

# %%
first = start.random(S, torch.Generator().manual_seed(0))
steps = range(1, 41)
ritz_values = [ritz(lanczos(S, first, num_steps=K)).values for K in steps]

largest_error = torch.tensor([abs(values[0] - eigenvalues[0]) for values in ritz_values])
print(f"error of the largest Ritz value after 10, 20 and 40 steps: {largest_error[[9, 19, 39]].tolist()}")
assert largest_error[-1] < 1e-10

# %% [markdown]
# Every column of the left figure is one run. The three eigenvalues above the gap belong to the three blocks of the
# graph (two of them lie close together near 0.9). About fifteen steps find them. The bulk of the spectrum is only
# sampled. A filter that acts on the leading eigenvectors therefore needs few steps, however many nodes there are.

# %%
plt.style.use("tableau-colorblind10")
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 4.2), width_ratios=[4, 1], sharey=True, layout="constrained")
for K, values in zip(steps, ritz_values, strict=True):
    left.plot([K] * K, values, ".", color="C0", markersize=3.5)
left.set(xlabel="Lanczos steps K", ylabel="value", title="Ritz values")
right.hlines(eigenvalues, 0, 1, color="C3", linewidth=0.5)
right.set(title="all eigenvalues", xticks=[])
figure.savefig("lanczos_ritz_values.png", dpi=150)

# %% [markdown]
# The three leading Ritz values agree with the eigenvalues, and no Ritz value leaves the interval of the spectrum.

# %%
assert torch.allclose(ritz_values[-1][:3], eigenvalues[:3], atol=1e-6)
assert all(values.max() <= eigenvalues[0] + 1e-9 and values.min() >= eigenvalues[-1] - 1e-9 for values in ritz_values)
