"""A network as data: its name in the catalogue and the options of its constructor."""

import inspect
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cache
from typing import Any, get_type_hints

import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from lanczosnet.graphs import PackedGraphs
from lanczosnet.graphs.molecules.featurizer import MOLECULE
from lanczosnet.models.base import LanczosNetwork
from lanczosnet.models.registry import model, network
from lanczosnet.schemas.limits import LimitError, check_limit
from lanczosnet.schemas.limits import check_options as check_sizes
from lanczosnet.schemas.record import FileError, check_type, shown
from lanczosnet.training.errors import ArchitectureError, TrainingError
from lanczosnet.training.recipes import Kind
from lanczosnet.training.tasks import Task

# Sizes of the paper's appendix: two layers of 64 for nodes, seven of 128 for molecules.
_PLAIN: dict[str, dict[str, Any]] = {
    "node": {"hidden_channels": 64, "num_layers": 2, "dropout": 0.5},
    "graph": {"hidden_channels": 128, "num_layers": 7, "readout": "gated"},
    "molecule": {"hidden_channels": 128, "num_layers": 4, "readout": "sum"},
}
# Chosen on the validation parts of ESOL and FreeSolv (docs/protocols.md); docs/choosing.md has other graphs. The sum
# fits quantities that grow with the graph, and the head what does not.
_RESIDUAL_GRAPHS = {
    "hidden_channels": 96,
    "num_layers": 3,
    "readout": "sum",
    "head_channels": 96,
    "short_scales": [0, 1],
    "long_scales": [10, 20, 30],
    "spectral_filter": "mlp",
}
# Of the residual form: as the networks of Platonov et al. (2023) have them, but narrower and with fewer blocks,
# which see as far by several scales.
_RESIDUAL: dict[str, dict[str, Any]] = {
    "node": {"hidden_channels": 64, "num_layers": 3, "dropout": 0.5},
    "graph": _RESIDUAL_GRAPHS,
    "molecule": _RESIDUAL_GRAPHS,
}

HEAD_CHANNELS = 96  # where descriptors need a head, and the form has none
MOST_TYPES = 100  # of edges, each of which has weights in every convolution
LEAST_STEPS = 64  # up to which steps may outnumber the nodes of the largest graph: that costs nothing


@dataclass(frozen=True)
class Architecture:
    """What builds a network; equal architectures and seeds give equal weights."""

    name: str
    options: dict[str, Any]

    def build(self, seed: int = 0) -> nn.Module:
        """The network with its first weights; the caller's random state stays as it was."""
        self.shapes()
        return self._built(seed)

    def shapes(self) -> dict[str, Tensor]:
        """The network's tensors without their content; options of a wrong type and too large sizes are an error."""
        try:
            check_options(self.name, self.options)
            check_sizes(self.options)
        except ValueError as error:
            raise ArchitectureError(str(error)) from error
        tensors: dict[str, Tensor] = self.blank().state_dict()
        try:
            check_limit("PARAMETERS", sum(tensor.numel() for tensor in tensors.values()))
        except LimitError as error:
            raise ArchitectureError(str(error)) from error
        return tensors

    def blank(self) -> nn.Module:
        """The network without memory for its weights."""
        with torch.device("meta"):
            return self._built(0)

    def _built(self, seed: int) -> nn.Module:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            try:
                return model(self.name, **self.options)
            except (TypeError, ValueError, RuntimeError, ArithmeticError, AttributeError) as error:
                options = ", ".join(f"{key}={shown(value)}" for key, value in self.options.items())
                raise ArchitectureError(f"{self.name} cannot be built with {options}: {error}") from error

    def described(self) -> dict[str, Any]:
        return asdict(self)

    def identity(self) -> dict[str, Any]:
        """What tells runs apart. Those of earlier versions, which may go on, do not name the published form; what only
        changes memory and time tells none apart."""
        options = {key: value for key, value in self.options.items() if key != "checkpoint_activations"}
        if options.get("block") == "plain":
            del options["block"]
        return {"name": self.name, "options": options}


def architecture_for(
    data: Data | PackedGraphs, task: Task, name: str, options: Mapping[str, Any] | None = None
) -> Architecture:
    """The network of this name that fits the data: inputs and outputs from the data, sizes from the options."""
    options = dict(options or {})
    check_options(name, options)
    _check_phases(data, options)
    for key in ("in_channels", "out_channels", "descriptor_channels", "edge_channels"):
        if key in options:
            raise TrainingError(f"{key} follows from the data ({data.name}): leave it out")
    options |= _capped_steps(data, options)
    form = own_form(name) | {key: options[key] for key in options if key == "block"}
    sizes = (_RESIDUAL if form.get("block") == "residual" else _PLAIN)[kind_of(data, task)]
    known = {key: value for key, value in sizes.items() if key in _constructor(name)}  # GCN has no head, and no filter
    defaults = _descriptors(data, name) | known | _inputs(data, name, options)
    return Architecture(name, defaults | {"out_channels": task.out_channels} | form | options)


def kind_of(data: Data | PackedGraphs, task: Task) -> Kind:
    """What defaults depend on: nodes, graphs, or molecules whose atoms a featuriser describes."""
    featurizer = data.about.get("featurizer") if isinstance(data, PackedGraphs) else None
    return "molecule" if featurizer is not None and featurizer.atoms else task.level


def own_form(name: str) -> dict[str, Any]:
    """The option of its form that a Lanczos network has where none is given; named, lest another default change it."""
    return {"block": "residual"} if issubclass(network(name), LanczosNetwork) else {}


def _capped_steps(data: Data | PackedGraphs, options: Mapping[str, Any]) -> dict[str, int]:
    """A Krylov space has no more dimensions than its graph nodes; more steps would only take memory."""
    nodes = int(data.node_ptr.diff().max()) if isinstance(data, PackedGraphs) else int(data.num_nodes or 0)
    steps = {key: options[key] for key in ("num_steps", "search_steps") if isinstance(options.get(key), int)}
    return {key: min(number, max(nodes, LEAST_STEPS)) for key, number in steps.items()}


def check_options(name: str, options: Mapping[str, Any]) -> None:
    """Options that the network does not have, or of another type than it wants, are an error; builds nothing."""
    known = _constructor(name)
    for key, value in options.items():
        if key not in known:
            raise TrainingError(f"{name} has no option {key!r}; known are {', '.join(known)}")
        try:
            check_type(value, known[key], f"the option {key} of {name}")
        except FileError as error:
            raise TrainingError(str(error)) from error


def option_names(name: str) -> list[str]:
    """The options of a network's constructor, those that it hands on to its base class included."""
    return list(_constructor(name))


@cache
def _constructor(name: str) -> dict[str, Any]:
    """The options of a network and their types."""
    found: dict[str, Any] = {}
    for kind in network(name).__mro__:
        parameters = inspect.signature(vars(kind)["__init__"]).parameters.values()
        types = get_type_hints(vars(kind)["__init__"])
        named = [p.name for p in parameters if p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL)]
        found |= {key: types.get(key, Any) for key in named if key not in found}
        if not any(p.kind == p.VAR_KEYWORD for p in parameters):
            break
    return {key: kind for key, kind in found.items() if key != "self"}


def _check_phases(data: Data | PackedGraphs, options: Mapping[str, Any]) -> None:
    """One graph must have what an option is for; of many, each may be another kind."""
    if isinstance(data, PackedGraphs):
        return
    if options.get("magnetic") and not _has(data, "edge_flow"):
        raise TrainingError(f"no edge of {data.name} is directed: leave magnetic out")
    if options.get("signed") and not _has(data, "edge_sign"):
        raise TrainingError(f"no edge of {data.name} has a negative weight: leave signed out")


def _has(data: Data | PackedGraphs, key: str) -> bool:
    return key in data.edge if isinstance(data, PackedGraphs) else key in data


def _descriptors(data: Data | PackedGraphs, name: str) -> dict[str, int]:
    """Numbers that graphs bring as a whole join at a hidden layer, where no other width is given."""
    held = data.graph.get("descriptors") if isinstance(data, PackedGraphs) else None
    if held is None:
        return {}
    if "descriptor_channels" not in _constructor(name):
        if _are_default(data):
            return {}
        raise TrainingError(f"{name} takes no descriptors: use lanczosnet or adalanczosnet, or leave them out")
    if held.dim() != 2 or not held.is_floating_point():
        raise TrainingError(f"descriptors of {data.name} must be numbers [1, descriptor] of every graph")
    return {"head_channels": HEAD_CHANNELS, "descriptor_channels": held.shape[1]}


def _are_default(data: PackedGraphs) -> bool:
    """Whether nobody asked for the descriptors."""
    featurizer = data.about.get("featurizer")
    is_default = featurizer is not None and featurizer.descriptors == MOLECULE.descriptors
    return is_default and not data.about.get("descriptor_columns")


def _inputs(data: Data | PackedGraphs, name: str, options: Mapping[str, Any]) -> dict[str, Any]:
    x = data.node.get("x") if isinstance(data, PackedGraphs) else data.x
    if x is None:
        raise TrainingError(f"{data.name} has no node features: give every node an x")
    if x.is_floating_point():
        inputs = {"in_channels": x.shape[1], "node_input": "features"}
    else:
        inputs = {"in_channels": int(x.max()) + 1, "node_input": "learned"}
    return inputs | _edge_inputs(data, name, options)


def _edge_inputs(data: Data | PackedGraphs, name: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Flags and whole numbers are types of edges; of real numbers the Lanczos networks make weights."""
    held: Any = data.edge if isinstance(data, PackedGraphs) else data
    attr, kinds = held.get("edge_attr"), held.get("edge_type")
    if attr is None and kinds is not None:
        return {"num_edge_types": _num_numbered(kinds, f"edge_type of {data.name} {tuple(kinds.shape)} holds")}
    if attr is None or (options.get("signed") and _has(data, "edge_sign")):
        return {"num_edge_types": 0}
    if attr.dim() == 2 and bool(((attr == 0) | (attr == 1)).all()):
        return {"num_edge_types": attr.shape[1]}
    found = f"edge_attr of {data.name} {tuple(attr.shape)} holds"
    if not attr.is_floating_point():
        return {"num_edge_types": _num_numbered(attr, found)}
    if "edge_channels" not in _constructor(name):
        raise TrainingError(
            f"{found} real numbers, which {name} does not use: take lanczosnet or adalanczosnet, make them "
            "edge_weight, one number per edge, or flags of edge types [edge, type], or remove them"
        )
    return {"num_edge_types": 0, "edge_channels": attr.numel() // max(len(attr), 1)}


def _num_numbered(attr: Tensor, found: str) -> int:
    """How many types there are where each edge has the number of one."""
    if attr.numel() != len(attr):
        raise TrainingError(f"{found} several whole numbers per edge: make them flags of edge types, or real numbers")
    if not len(attr):
        return 0
    if int(attr.min()) < 0:
        raise TrainingError(f"{found} {int(attr.min())} as the type of an edge: types are numbered from 0")
    if int(attr.max()) >= MOST_TYPES:
        raise TrainingError(
            f"{found} numbers up to {int(attr.max())}, too many for types of edges: make them real numbers (.float())"
        )
    return int(attr.max()) + 1
