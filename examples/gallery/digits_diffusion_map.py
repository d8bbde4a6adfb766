# %% [markdown]
# # Diffusion map of handwritten digits
#
# The data are 1,797 images of digits with 8 by 8 pixels. The diffusion map joins similar images and embeds them
# without looking at the labels.

# %%
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.neighbors import KNeighborsClassifier

from lanczosnet import DiffusionMap

digits = load_digits()
model = DiffusionMap(n_components=12, n_neighbors=256)
embedding = model.fit_transform(digits.data)
print("eigenvalues:", np.round(model.eigenvalues_, 3))

# %% [markdown]
# How much of the digit do the coordinates keep? A nearest-neighbour classifier with every second label answers that.

# %%
accuracy = [
    KNeighborsClassifier().fit(embedding[::2, :n], digits.target[::2]).score(embedding[1::2, :n], digits.target[1::2])
    for n in range(1, 13)
]
print("accuracy with 2, 6 and 12 coordinates:", [round(accuracy[n - 1], 3) for n in (2, 6, 12)])
assert accuracy[11] > 0.92

# %% [markdown]
# In the left figure every image is drawn as its digit: the label is for the reader, the map has not seen it. The right
# figure shows how the accuracy rises with the number of coordinates.

# %%
colors = plt.colormaps["tab10"].colors
figure, (left, right) = plt.subplots(1, 2, figsize=(9.5, 5), width_ratios=[5, 3], layout="constrained")
for digit in range(10):
    left.scatter(
        *embedding[digits.target == digit, :2].T, s=26, marker=f"${digit}$", color=colors[digit], linewidths=0.2
    )
left.set(xlabel="first coordinate", ylabel="second coordinate", title="diffusion map")
right.plot(range(1, 13), accuracy, "o-", color="C0")
right.set(xlabel="coordinates", ylabel="accuracy of 5 nearest neighbours", ylim=(0, 1))
right.grid(alpha=0.3)
figure.savefig("digits_diffusion_map.png", dpi=150)
