# %% [markdown]
# # AdaLanczosNet's learned graph kernel
#
# A given graph may join nodes that have little to do with each other. `AdaLanczosNet` learns the weight of every edge
# from the features at its ends, exp(-|f(x_i) - f(x_j)|² / ε), while it learns the rest. The gradient passes through
# Lanczos. Here half of the features are noise, and every second edge joins nodes of different classes.

# %%
import matplotlib.pyplot as plt
import torch

from lanczosnet import AdaLanczosNet
from lanczosnet.affinity import adjacency
from lanczosnet.graphs import load, split
from lanczosnet.training import fit, recipe, task_of

graph = load("block-model", sizes=[100, 100, 100], inside=0.06, between=0.03, seed=0)
generator = torch.Generator().manual_seed(0)
signal = 1.5 * torch.eye(3)[graph.y] + torch.randn(300, 3, generator=generator)
graph.x = torch.cat([signal, 2.0 * torch.randn(300, 3, generator=generator)], dim=1)
source, target = graph.edge_index
is_inside = graph.y[source] == graph.y[target]
print(f"{is_inside.float().mean():.0%} of the edges join nodes of one class")

# %% [markdown]
# `kernel_channels` are the sizes of f. The weights of the edges are those of `model.kernel`.

# %%
torch.manual_seed(0)
model = AdaLanczosNet(6, 16, 3, short_scales=[1, 2, 3], long_scales=[5, 10], kernel_channels=[32, 8], dropout=0.5)


def edge_weights():
    with torch.no_grad():
        A = model.kernel(adjacency(graph.edge_index), graph.x)
    return A.dense()[source, target]


before = edge_weights()
parts = split(graph, "30-per-class", seed=0)
task = task_of(graph, parts.train)
fitted = fit(model, graph, parts, task, recipe("modern", "node", {"epochs": 150, "averaging": 0.9}), seed=0)
after = edge_weights()
print(f"test accuracy {fitted.metrics['test']['accuracy']:.3f}")

# %% [markdown]
# Training lowers the weight of edges between classes and leaves that of edges within a class high.


# %%
def contrast(weights):
    return (weights[is_inside].mean() / weights[~is_inside].mean()).item()


print(f"weight inside a class over weight between classes: {contrast(before):.2f} before, {contrast(after):.2f} after")
assert contrast(after) > 1.2 * contrast(before)
assert fitted.metrics["test"]["accuracy"] > 0.6

# %%
plt.style.use("tableau-colorblind10")
figure, panels = plt.subplots(1, 2, figsize=(9.5, 3.8), sharey=True, layout="constrained")
for axes, title, weights in zip(panels, ("before training", "after training"), (before, after), strict=True):
    kinds = {"within a class": weights[is_inside], "between classes": weights[~is_inside]}
    for (name, values), style in zip(kinds.items(), ("stepfilled", "step"), strict=True):
        line = {"alpha": 0.5} if style == "stepfilled" else {"linewidth": 2}
        axes.hist(values, bins=25, range=(0, 1), density=True, histtype=style, label=name, **line)
    axes.set(title=f"{title}: ratio of means {contrast(weights):.2f}", xlabel="weight of an edge")
panels[0].set_ylabel("density")
panels[0].legend(frameon=False, loc="upper left")
figure.savefig("learned_kernel.png", dpi=150)
