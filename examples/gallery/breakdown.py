# %% [markdown]
# # Breakdown: when the Krylov space ends early
#
# Lanczos from a vector q builds a basis of span(q, S q, S² q, ...). On a symmetric graph this space is smaller than the
# graph: the start vector of ones has a part in few eigenvectors. The next Lanczos vector then has length zero, and a
# plain implementation divides by it. For molecules this is the normal case.

# %%
import matplotlib.pyplot as plt
import torch

from lanczosnet import lanczos
from lanczosnet.affinity import adjacency, normalized
from lanczosnet.graphs import load
from lanczosnet.krylov import tridiagonal_matrix

path = load("path", n=24)
S = normalized(adjacency(path.edge_index)).to(torch.float64)

# %% [markdown]
# A path looks the same from both ends, so ones have a part in half of the 24 eigenvectors. Lanczos finds a space of
# dimension 12 and stops. By default the remaining columns are zero, and S Q = Q T holds exactly.

# %%
padded = lanczos(S, num_steps=24)
T = tridiagonal_matrix(padded)
residual = (S @ padded.basis - padded.basis @ T).abs().max()
print(f"{padded.steps.item()} of 24 steps, S Q = Q T up to {residual:.0e}")
assert padded.steps == 12
assert residual < 1e-12
assert torch.all(padded.basis[:, 12:] == 0)

# %% [markdown]
# With `on_breakdown="restart"` the iteration continues with a fresh vector orthogonal to all others. The coefficient
# at the seam is zero, and the basis is complete: Q T Qᵀ = S.

# %%
restarted = lanczos(S, num_steps=24, on_breakdown="restart")
Q = restarted.basis
error = (Q @ tridiagonal_matrix(restarted) @ Q.mT - S.dense()).abs().max()
print(f"{restarted.steps.item()} of 24 steps, Q T Q^T = S up to {error:.0e}")
assert restarted.steps == 24
assert error < 1e-12

# %% [markdown]
# The figure shows the off-diagonal coefficients β, which are the lengths of the Lanczos vectors. The padded run ends at
# step 12. The restarted run continues.

# %%
plt.style.use("tableau-colorblind10")
figure, axes = plt.subplots(figsize=(8, 3.8), layout="constrained")
number = torch.arange(1, 25)
axes.plot(number, padded.off_diagonal, "o-", color="C0", label='on_breakdown="pad"')
axes.plot(number, restarted.off_diagonal, "s--", color="C1", markersize=4, label='on_breakdown="restart"')
axes.axvline(12, color="C3", linestyle=":", label="the Krylov space of ones ends")
axes.set(xlabel="Lanczos step", ylabel="length β of the next vector")
axes.legend(frameon=False, loc="center left", bbox_to_anchor=(1, 0.5))
figure.savefig("breakdown.png", dpi=150)
