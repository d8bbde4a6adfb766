# %% [markdown]
# # Long range on a road network
#
# On a road network, what matters for a place may lie many crossings away. A layer that looks one or two hops far cannot
# see it. The task here: given two stations, predict the distance of every crossing to the nearest one. We make the
# network ourselves: a grid of streets, a third of which is closed.

# %%
import matplotlib.pyplot as plt
import networkx as nx
import torch
from torch_geometric.data import Data

from lanczosnet import LanczosNet
from lanczosnet.graphs import split
from lanczosnet.training import fit, recipe, task_of

streets = nx.grid_2d_graph(26, 26)
chance = torch.rand(streets.number_of_edges(), generator=torch.Generator().manual_seed(4))
streets.remove_edges_from([edge for edge, closed in zip(list(streets.edges), chance < 0.33, strict=True) if closed])
streets = nx.convert_node_labels_to_integers(
    streets.subgraph(max(nx.connected_components(streets), key=len)), label_attribute="pos"
)
pos = torch.tensor([streets.nodes[node]["pos"] for node in streets], dtype=torch.float)
stations = [int((pos - torch.tensor(place)).norm(dim=1).argmin()) for place in ((5.0, 5.0), (19.0, 21.0))]
distance = nx.multi_source_dijkstra_path_length(streets, set(stations), weight=None)

x = torch.zeros(len(streets), 1)
x[stations] = 10.0
edges = torch.tensor(list(streets.edges)).t()
roads = Data(
    x=x,
    edge_index=torch.cat([edges, edges.flip(0)], dim=1),
    y=torch.tensor([float(distance[node]) for node in streets]),
)
print(f"{roads.num_nodes} crossings, up to {int(roads.y.max())} streets from a station")

# %% [markdown]
# Two networks of the same shape. One multiplies S out up to two hops. The other one adds scales of up to 400 hops, as
# learned filters on Ritz values. `search_steps` runs more Lanczos steps than pairs are kept, so that the kept pairs
# have converged.

# %%
parts = split(roads, "uniform", fraction=0.4, seed=0)
task = task_of(roads, parts.train)
settings = recipe("modern", "node", {"epochs": 400, "averaging": 0.9, "weight_decay": 0.0})


def predict(long_scales):
    torch.manual_seed(0)
    model = LanczosNet(1, 32, 1, short_scales=[0, 1, 2], long_scales=long_scales, num_steps=60, search_steps=180)
    fitted = fit(model, roads, parts, task, settings, seed=0)
    with torch.no_grad():
        return task.predicted(model.eval()(roads)).flatten(), fitted.metrics["test"]["mae"]


short, short_error = predict([])
long, long_error = predict([10, 30, 100, 400])
print(f"mean absolute error: {short_error:.2f} streets with short scales, {long_error:.2f} with long ones")
assert long_error < 0.6 * short_error

# %% [markdown]
# With short scales, the network knows the way only close to a station, and predicts the same number everywhere else.

# %%
panels = {
    "true distance": roads.y,
    f"short scales, error {short_error:.1f}": short,
    f"long scales, error {long_error:.1f}": long,
}
figure, row = plt.subplots(1, 3, figsize=(9.5, 3.6), layout="constrained")
for axes, (title, values) in zip(row, panels.items(), strict=True):
    nx.draw_networkx_edges(streets, dict(enumerate(pos.tolist())), ax=axes, edge_color="0.45")
    dots = axes.scatter(*pos.T, c=values, s=11, cmap="cividis", vmin=0, vmax=roads.y.max(), zorder=2)
    axes.scatter(*pos[stations].T, s=130, marker="*", color="white", edgecolors="black", zorder=3)
    axes.set(title=title, aspect="equal")
    axes.axis("off")
figure.colorbar(dots, ax=row, label="streets to the nearest station ★", shrink=0.8)
figure.savefig("road_network.png", dpi=150)
