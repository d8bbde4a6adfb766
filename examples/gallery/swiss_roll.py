# %% [markdown]
# # Diffusion map of a Swiss roll
#
# A Swiss roll is a sheet rolled up in space. Points on neighbouring turns are close in space but far apart on the
# sheet. A diffusion map measures distance by random walks along the sheet, and so unrolls it.

# %%
import matplotlib.pyplot as plt
import numpy as np
from scipy.stats import spearmanr
from sklearn.datasets import make_swiss_roll

from lanczosnet import DiffusionMap

X, angle = make_swiss_roll(2000, random_state=0)
model = DiffusionMap(n_components=2, n_neighbors=10).fit(X)
embedding = model.embedding_
print("leading eigenvalues of the walk:", np.round(model.eigenvalues_, 4))

# %% [markdown]
# The first coordinate follows the angle along the roll, which the model has never seen. The second one is a bent copy
# of the first, because the sheet is much longer than wide: its width comes in a later coordinate.

# %%
rank_correlation = abs(spearmanr(embedding[:, 0], angle).statistic)
print(f"rank correlation of the first coordinate with the angle: {rank_correlation:.4f}")
assert rank_correlation > 0.99

# %%
figure = plt.figure(figsize=(9.5, 4), layout="constrained")
room = figure.add_subplot(1, 2, 1, projection="3d", elev=8, azim=-72)
room.scatter(*X.T, c=angle, s=6, cmap="viridis", linewidths=0)
room.set(title="2,000 points on a roll", xticklabels=[], yticklabels=[], zticklabels=[])
axes = figure.add_subplot(1, 2, 2)
points = axes.scatter(*embedding.T, c=angle, s=6, cmap="viridis", linewidths=0)
axes.set(title="their diffusion map", xlabel="first coordinate", ylabel="second coordinate")
figure.colorbar(points, ax=axes, label="angle along the roll")
figure.savefig("swiss_roll.png", dpi=150)

# %% [markdown]
# The map extends to new points. A point of the training data comes back where it was.

# %%
new, new_angle = make_swiss_roll(500, random_state=1)
placed = model.transform(new)
assert abs(spearmanr(placed[:, 0], new_angle).statistic) > 0.99
assert np.allclose(model.transform(X[:100]), embedding[:100], atol=1e-8)
