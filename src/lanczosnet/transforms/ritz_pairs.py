"""The Ritz pairs of a graph, precomputed by a PyG transform."""

from typing import Any, Literal

import torch
from torch_geometric.data import Data
from torch_geometric.transforms import BaseTransform

from lanczosnet.affinity import RealForm, SparseOperator, adjacency, connected_components, hermitian, normalized
from lanczosnet.affinity.hermitian import check_charge, unfolded
from lanczosnet.graphs.edges import with_usable_edges
from lanczosnet.graphs.formats.stored_graph import StoredGraph
from lanczosnet.krylov import RitzPairs, component_ritz_pairs, hermitian_ritz_pairs, start


class AddRitzPairs(BaseTransform):
    """Run Lanczos once per graph and keep its Ritz pairs on the data, for `LanczosNet` and `LanczosConv`.

    Adds `ritz_vectors` `[node, num_steps]`, `ritz_values` `[component, num_steps]`, and `component_index` `[node]`,
    the first node of every node's component. Batching, saving and moving the data carry them along.

    Args:
        num_steps: K, pairs per connected component; those past its node count are zero.
        start: the start vector: "ones", the "mean" of each node's features, or "random" from `seed`.
        seed: of the random start vector: same seed, same values.
        exact_up_to: components of at most this many nodes are decomposed exactly instead; `num_steps` by default.
        search_steps: Lanczos steps to find the pairs, of which those of largest modulus are kept (an implicit restart);
            `num_steps` by default.
        signed: of a signed graph, as `LanczosNet` has it; so `magnetic`, of a directed one, whose pairs are complex:
            `ritz_vectors` are `[node, 4 x num_steps]`, real parts of two vectors per pair and then imaginary ones, and
            `ritz_values` `[component, 2 x num_steps]`.
    """

    def __init__(
        self,
        num_steps: int = 20,
        start: Literal["ones", "mean", "random"] = "ones",
        seed: int = 0,
        exact_up_to: int | None = None,
        search_steps: int | None = None,
        signed: bool = False,
        magnetic: float = 0.0,
    ) -> None:
        if num_steps < 1:
            raise ValueError(f"num_steps must be at least 1, but is {num_steps}")
        if start not in ("ones", "mean", "random"):
            raise ValueError(f"start must be 'ones', 'mean' or 'random', not {start!r}")
        self.num_steps = num_steps
        self.start = start
        self.seed = seed
        self.exact_up_to = exact_up_to
        self.search_steps = search_steps
        self.signed, self.magnetic = signed, magnetic
        check_charge(magnetic)
        if magnetic and start != "ones":
            raise ValueError("pairs of a directed graph start from ones: leave start out, or magnetic")

    def forward(self, data: Data) -> Data:
        component, pairs = self._of_phases(data) if self.signed or self.magnetic else self._of_weights(data)
        nodes = torch.arange(len(component), device=component.device)
        first = torch.full((len(pairs.values),), len(component), device=component.device)
        first = first.scatter_reduce(0, component, nodes, "amin")
        data.ritz_vectors = unfolded(pairs.vectors) if self.magnetic else pairs.vectors
        data.ritz_values = pairs.values
        data.component_index = first[component]
        return data

    def _of_weights(self, data: Data) -> tuple[torch.Tensor, RitzPairs]:
        edges = data if isinstance(data, StoredGraph) else data.edge_index
        S = normalized(adjacency(edges, data.get("edge_weight"), num_nodes=data.num_nodes))
        assert isinstance(S, SparseOperator)
        return self._of_operator(S, connected_components(S), data)

    def _of_phases(self, data: Data) -> tuple[torch.Tensor, RitzPairs]:
        """Of signs and directions; the components are those of the weights."""
        usable = with_usable_edges(data)
        A = adjacency(usable)
        assert isinstance(A, SparseOperator)
        components, S = connected_components(A), hermitian(usable, self.magnetic, signed=self.signed)
        if not isinstance(S, RealForm):
            return self._of_operator(S, components, data)
        bounds = {"exact_up_to": self.exact_up_to, "search_steps": self.search_steps}
        return components[0], hermitian_ritz_pairs(S, self.num_steps, components, **bounds)

    def _of_operator(
        self, S: SparseOperator, components: tuple[torch.Tensor, int], data: Data
    ) -> tuple[torch.Tensor, RitzPairs]:
        start = self._start_vector(data, S)
        bounds = {"exact_up_to": self.exact_up_to, "search_steps": self.search_steps}
        return components[0], component_ritz_pairs(S, self.num_steps, start, components=components, **bounds)

    def _start_vector(self, data: Any, S: SparseOperator) -> torch.Tensor:
        if self.start == "mean":
            if data.x is None:
                raise ValueError('start="mean" is the mean of each node\'s features, but the data has no x: use "ones"')
            return start.mean_feature(S, data.x)
        if self.start == "random":
            return start.random(S, torch.Generator().manual_seed(self.seed))
        return start.ones(S)

    def __repr__(self) -> str:
        # PyG compares transforms by this text: whatever changes the pairs must be in it.
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in vars(self).items())})"
