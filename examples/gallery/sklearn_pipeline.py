# %% [markdown]
# # A scikit-learn pipeline with DiffusionMap
#
# `DiffusionMap` is a scikit-learn transformer. It works in a `Pipeline`, its parameters can be searched, and it places
# new points by the Nyström extension. Here it turns two entangled moons into a problem for a linear classifier.

# %%
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from lanczosnet import DiffusionMap

X, y = make_moons(600, noise=0.09, random_state=0)
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=200, random_state=0)

linear = make_pipeline(StandardScaler(), LogisticRegression()).fit(X_train, y_train)
pipeline = make_pipeline(StandardScaler(), DiffusionMap(), StandardScaler(), LogisticRegression())
grid = {"diffusionmap__n_components": [1, 2, 4, 8], "diffusionmap__n_neighbors": [16, 24, 32]}
search = GridSearchCV(pipeline, grid, cv=4).fit(X_train, y_train)

print("chosen:", search.best_params_)
print(f"test accuracy: {linear.score(X_test, y_test):.3f} on the points")
print(f"               {search.score(X_test, y_test):.3f} on their diffusion map")
assert search.score(X_test, y_test) > linear.score(X_test, y_test) + 0.05

# %% [markdown]
# The shading is the predicted probability of the second moon at every place of the plane.

# %%
across, up = np.meshgrid(np.linspace(-1.6, 2.6, 90), np.linspace(-1.1, 1.6, 60))
places = np.column_stack([across.ravel(), up.ravel()])
figure, panels = plt.subplots(1, 2, figsize=(10, 3.8), sharey=True, layout="constrained")
for axes, title, model in zip(panels, ("logistic regression", "on the diffusion map"), (linear, search), strict=True):
    probability = model.predict_proba(places)[:, 1].reshape(across.shape)
    shading = axes.contourf(across, up, probability, levels=20, vmin=0, vmax=1, cmap="cividis", alpha=0.7)
    for label, marker in enumerate("os"):
        moon = X_test[y_test == label].T
        axes.scatter(*moon, s=22, marker=marker, color=("black", "white")[label], edgecolors="black", linewidths=0.8)
    axes.set(title=f"{title}: {model.score(X_test, y_test):.3f}", xlabel="first feature")
panels[0].set_ylabel("second feature")
figure.colorbar(shading, ax=panels, label="probability of the second moon", ticks=[0, 0.25, 0.5, 0.75, 1])
figure.savefig("sklearn_pipeline.png", dpi=150)
