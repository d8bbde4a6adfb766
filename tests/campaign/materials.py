"""Good files of every kind, made once by the package's own commands; attacks work on copies."""

import hashlib
import json
import pickle
import shutil
import signal
import struct
import time
from pathlib import Path
from typing import Any

import numpy as np

from campaign.sandbox import Limits, Ran, Victim, run

SMALL = ("--set", "hidden_channels=4", "--set", "num_layers=1", "--set", "num_steps=4", "--device", "cpu")
BOTH = ("--data-set", "targets=['logS', 'weight']")  # of mols.csv
LONG = 60  # epochs: enough to be interrupted
QM8_TARGETS = [f"{quantity}-{method}" for method in ("CC2", "PBE0", "CAM") for quantity in ("E1", "E2", "f1", "f2")]
QM8_SOURCE = "3e70e56805edb2f0796b64f96af9b53dd8cca408d775612d47123f7d2da7d61d"
PARTS = ("x", "tx", "allx", "y", "ty", "ally", "graph", "test.index")


class MaterialError(RuntimeError):
    """A good file could not be made: the package itself does not work."""


def train(source: str, out: str, *more: str, epochs: int = 2) -> tuple[str, ...]:
    targets = BOTH if source == "mols.csv" and "--data-set" not in more else ()
    return ("train", source, "--out", out, *SMALL, "--set", f"epochs={epochs}", *targets, *more)


def make(folder: Path) -> None:
    """All of them; see the commands for what is what."""
    _write_tables(folder)
    _write_graphs(folder)
    _write_planetoid(folder / "data" / "planetoid")
    done(train("mols.csv", "molmodel"), folder)
    done(train("nodes.csv", "nodemodel", "--data-set", "edges=edges.csv"), folder)
    done(train("points.csv", "pointmodel", "--data-set", "k=3"), folder)
    for source, out in (("mols.csv", "stopped"), ("nodes.csv", "stoppednodes")):
        interrupt(train(source, out, "--checkpoint-seconds", "0", epochs=LONG), folder, folder / out)
    _write_folder(folder)
    done(train("big", "bigmodel"), folder)
    done(train("mols.csv", "configured", "--save-config", "run.toml", "--split", "parts.json"), folder)
    packed, *_ = sorted((folder / "data" / "molecules").glob("mols-*.safetensors"))
    shutil.copy(packed, folder / "packed.safetensors")
    _write_qm8(folder)
    done(table("--out", "store"), folder)
    done(("table", "qm8", "--merge", "store", "--out", "results"), folder)
    done(table("--out", "store"), folder)


def table(*more: str) -> tuple[str, ...]:
    """A small table of molecules."""
    small = ("--molecules", "20", "--models", "gcn,lanczosnet", "--seeds", "2", "--epochs", "2", "--device", "cpu")
    return ("table", "qm8", *small, *more)


def done(arguments: tuple[str, ...], folder: Path, limits: Limits | None = None) -> Ran:
    """Run a command that must succeed."""
    ran = run(arguments, folder, limits or Limits(seconds=300))
    if ran.status:
        raise MaterialError(f"{ran.command} ended with {ran.status}: {ran.err[-2000:]}")
    return ran


def interrupt(arguments: tuple[str, ...], folder: Path, out: Path, lines: int = 4) -> None:
    """Kill a training after some epochs."""
    victim = Victim(arguments, folder, Limits(seconds=300))
    metrics = out / "metrics.jsonl"
    until = time.monotonic() + 120
    while time.monotonic() < until and (not metrics.exists() or metrics.read_bytes().count(b"\n") < lines):
        time.sleep(0.001)
    victim.send(signal.SIGKILL)
    ran = victim.wait()
    if not (out / "checkpoint.safetensors").exists():
        raise MaterialError(f"{ran.command} ended before it could be interrupted: {ran.err[-2000:]}")


def _write_tables(folder: Path) -> None:
    draw = np.random.default_rng(0)
    chains = ["C" * (i % 7 + 1) + ("O", "N", "Cl", "c1ccccc1")[i % 4] for i in range(36)]
    rows = [f"{smiles},{draw.normal():.4f},{draw.normal():.4f}" for smiles in chains]
    (folder / "mols.csv").write_text("\n".join(["smiles,logS,weight", *rows]) + "\n")
    features = [",".join(f"{value:.4f}" for value in draw.normal(size=4)) for _ in range(40)]
    nodes = [f"{i},{x},{'red' if i % 3 else 'blue'}" for i, x in enumerate(features)]
    (folder / "nodes.csv").write_text("\n".join(["id,a,b,c,d,label", *nodes]) + "\n")
    (folder / "points.csv").write_text("\n".join(["id,a,b,c,d,label", *nodes]) + "\n")
    edges = [f"{i},{(i * k + 1) % 40},{1 + k / 2}" for i in range(40) for k in (1, 3)]
    (folder / "edges.csv").write_text("\n".join(["source,target,weight", *edges]) + "\n")
    many = [f"{'C' * (1 + i % 40)}{'N' * (i // 40 % 2)}{'O' * (1 + i // 80)},{i / 100}" for i in range(1100)]
    (folder / "many.csv").write_text("\n".join(["smiles,logS", *many]) + "\n")  # more than one process reads them
    (folder / "more.csv").write_text("smiles\nCCO\nCCN\nc1ccccc1C\nCCCl\n")


def _write_folder(folder: Path) -> None:
    """A graph folder, and the other forms of the molecules."""
    import pandas as pd
    from rdkit import Chem

    done(("data", "convert", "edges.csv", "big", "--nodes", "nodes.csv"), folder)
    molecules = pd.read_csv(folder / "mols.csv")
    molecules.to_parquet(folder / "mols.parquet", index=False)
    with Chem.SDWriter(str(folder / "mols.sdf")) as writer:
        for smiles, target, _ in molecules.itertuples(index=False):
            molecule = Chem.MolFromSmiles(smiles)
            molecule.SetProp("logS", str(target))
            writer.write(molecule)
    rows = [*range(len(molecules))]
    parts = {"train": rows[:20], "val": rows[20:30], "test": rows[30:]}
    (folder / "parts.json").write_text(json.dumps(parts))


def node_arrays() -> dict[str, np.ndarray]:
    draw = np.random.default_rng(1)
    ring = np.arange(30)
    edges = np.stack([np.concatenate([ring, ring]), np.concatenate([np.roll(ring, 1), np.roll(ring, 7)])])
    return {"x": draw.normal(size=(30, 3)).astype(np.float32), "y": ring % 3, "edge_index": edges}


def graph(seed: int = 0, nodes: int = 12) -> Any:
    """A PyG graph with a target for every node."""
    import torch
    from torch_geometric.data import Data

    draw = torch.Generator().manual_seed(seed)
    ends = torch.stack([torch.arange(nodes), (torch.arange(nodes) + 1) % nodes])
    both = torch.cat([ends, ends.flip(0)], dim=1)
    return Data(x=torch.randn(nodes, 3, generator=draw), edge_index=both, y=torch.arange(nodes) % 2)


def _write_graphs(folder: Path) -> None:
    import torch

    torch.save(graph(), folder / "graph.pt")
    many = [graph(seed, 5 + seed % 3) for seed in range(20)]
    for place, data in enumerate(many):
        data.y = torch.tensor([[float(place)]])
    torch.save(many, folder / "graphs.pt")
    np.savez(folder / "nodes.npz", **node_arrays())


def planetoid() -> dict[str, bytes]:
    """A citation network of 600 nodes in the eight published files."""
    from collections import defaultdict

    import scipy.sparse

    x = scipy.sparse.random(600, 8, density=0.3, format="csr", random_state=0, dtype=np.float32)
    y = np.eye(3, dtype=np.int32)[np.arange(600) % 3]
    around = defaultdict(list, {i: [(i + 1) % 600, (i - 1) % 600] for i in range(600)})
    content = {
        "x": x[:30],
        "tx": x[540:],
        "allx": x[:540],
        "y": y[:30],
        "ty": y[540:],
        "ally": y[:540],
        "graph": around,
    }
    files = {part: _python_2(pickle.dumps(value, protocol=3)) for part, value in content.items()}
    return files | {"test.index": "".join(f"{i}\n" for i in range(540, 600)).encode()}


def _python_2(content: bytes) -> bytes:
    """The names that NumPy, SciPy and Python had when the files were published."""
    names = {
        b"cnumpy._core.multiarray\n": b"cnumpy.core.multiarray\n",
        b"cscipy.sparse._csr\n": b"cscipy.sparse.csr\n",
        b"cbuiltins\nlist": b"c__builtin__\nlist",
    }
    for new, old in names.items():
        content = content.replace(new, old)
    return content


def _write_planetoid(folder: Path) -> None:
    folder.mkdir(parents=True)
    for part, content in planetoid().items():
        (folder / f"ind.cora.{part}").write_bytes(content)


def with_checksum(document: dict[str, Any]) -> dict[str, Any]:
    """As the package writes it."""
    content = {key: value for key, value in document.items() if key != "checksum"}
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return content | {"checksum": hashlib.sha256(text.encode()).hexdigest()}


# Packed molecules: a safetensors file whose header has a digest of its arrays.


def read_packed(content: bytes) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    from safetensors.numpy import load

    (length,) = struct.unpack("<Q", content[:8])
    return load(content), json.loads(json.loads(content[8 : 8 + length])["__metadata__"]["lanczosnet"])


def write_packed(arrays: dict[str, np.ndarray], header: dict[str, Any] | str) -> bytes:
    """With the digests that it must have, as a forger would; a header that is a text has its own."""
    from safetensors.numpy import save

    digest = hashlib.sha256()
    for key in sorted(arrays):
        digest.update(f"{key} {arrays[key].dtype} {arrays[key].shape}".encode())
        digest.update(np.ascontiguousarray(arrays[key]).data)
    text = header if isinstance(header, str) else json.dumps(with_checksum(header | {"content": digest.hexdigest()}))
    return save(arrays, {"lanczosnet": text})


def _write_qm8(folder: Path) -> None:
    """A cache that says that it was made from QM8, of other molecules; the paper's input is no other's."""
    molecules = folder / "data" / "molecules"
    before = set(molecules.glob("mols-*.safetensors"))
    done(("data", "info", "mols.csv", *BOTH, "--data-set", "featurizer=paper"), folder)
    (packed,) = set(molecules.glob("mols-*.safetensors")) - before
    arrays, header = read_packed(packed.read_bytes())
    packed.unlink()
    arrays["y"] = np.tile(arrays["y"][:, :1], (1, 12)) * np.linspace(0.5, 1.5, 12, dtype=np.float32)
    options = {"smiles": "smiles", "targets": QM8_TARGETS, "task": "regression", "skip_invalid": False}
    header["origin"] |= {"source": QM8_SOURCE, "options": options, "targets": QM8_TARGETS}
    (folder / "data" / "qm8").mkdir(parents=True)
    (folder / "data" / "qm8" / "qm8.safetensors").write_bytes(write_packed(arrays, header))
