# %% [markdown]
# # LanczosConv inside a PyG model
#
# `LanczosConv` is called as every PyG convolution: `conv(x, edge_index)`. It can stand beside other layers. Here it
# replaces the first of two `GCNConv` layers, and sees neighbourhoods of up to thirty hops at once.

# %%
import matplotlib.pyplot as plt
import torch
from torch.nn import functional as F
from torch_geometric.nn import GCNConv

from lanczosnet import LanczosConv
from lanczosnet.graphs import load, split

digits = load("digits")  # 1,797 images, joined to their nearest neighbours
parts = split(digits, "10-per-class", seed=0)
print(f"{len(parts.train)} nodes have a label, {len(parts.test)} are tested")


class Net(torch.nn.Module):
    def __init__(self, first):
        super().__init__()
        self.first = first
        self.last = GCNConv(32, 10)

    def forward(self, x, edge_index):
        x = F.dropout(self.first(x, edge_index).relu(), 0.5, self.training)
        return self.last(x, edge_index)


# %% [markdown]
# The training loop is the usual one.


# %%
def train(model, epochs=60):
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=5e-4)
    accuracy = []
    for _ in range(epochs):
        model.train()
        optimizer.zero_grad()
        scores = model(digits.x, digits.edge_index)
        F.cross_entropy(scores[parts.train], digits.y[parts.train]).backward()
        optimizer.step()
        model.eval()
        with torch.no_grad():
            correct = model(digits.x, digits.edge_index).argmax(1) == digits.y
        accuracy.append(correct[parts.test].float().mean().item())
    return accuracy


torch.manual_seed(0)
curves = {
    "GCNConv, GCNConv": train(Net(GCNConv(64, 32))),
    "LanczosConv, GCNConv": train(
        Net(LanczosConv(64, 32, short_scales=[1, 2], long_scales=[10, 20, 30], num_steps=20))
    ),
}
for name, accuracy in curves.items():
    print(f"{name}: test accuracy {accuracy[-1]:.3f}")
assert all(accuracy[-1] > 0.85 for accuracy in curves.values())

# %%
plt.style.use("tableau-colorblind10")
figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
for (name, accuracy), line in zip(curves.items(), ("--", "-"), strict=True):
    axes.plot(range(1, len(accuracy) + 1), accuracy, line, label=name)
axes.set(xlabel="epoch", ylabel="test accuracy", title="Digits, ten labels per class")
axes.grid(alpha=0.3)
axes.legend(frameon=False, loc="lower right")
figure.savefig("lanczos_conv_in_pyg.png", dpi=150)

# %% [markdown]
# Called with an `edge_index`, the layer runs Lanczos every time. Where the graph stays the same, do it once. The
# result is the same.

# %%
conv = LanczosConv(64, 32)
spectrum = conv.spectrum(digits.edge_index)
assert torch.allclose(conv.convolve(digits.x, spectrum), conv(digits.x, digits.edge_index), atol=1e-5)
