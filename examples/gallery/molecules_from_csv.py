# %% [markdown]
# # Molecules from a CSV file
#
# A CSV file with a column `smiles` and a column of numbers is all that is needed to train a network on molecules.
# Reading SMILES needs RDKit: `pip install lanczosnet[chem]`.
#
# This example writes such a file. Its molecules are small and made of a ring or chain with two substituents. Its target
# is RDKit's estimate of the water-octanol partition coefficient, logP.

# %%
import csv
from itertools import combinations_with_replacement

import matplotlib.pyplot as plt
import torch
from rdkit import Chem
from rdkit.Chem import Crippen

from lanczosnet.graphs import load, split
from lanczosnet.training import architecture_for, fit, recipe, task_of

groups = ["", "C", "CC", "C(C)C", "O", "OC", "N", "NC", "F", "Cl", "Br", "C#N", "C=O", "C(=O)O", "C(=O)C", "CO", "S"]
cores = ["c1cc({})ccc1{}", "C1CC({})CCC1{}", "C(C{})CC{}", "c1c({})cncc1{}", "C1OC({})CC1{}"]
pairs = list(combinations_with_replacement(groups, 2))
smiles = [core.format(*pair).replace("()", "") for core in cores for pair in pairs]

with open("molecules.csv", "w", newline="") as stream:
    writer = csv.writer(stream)
    writer.writerow(["smiles", "logP"])
    writer.writerows([text, round(Crippen.MolLogP(Chem.MolFromSmiles(text)), 4)] for text in smiles)
print(f"{len(smiles)} molecules, for example {smiles[100]}")

# %% [markdown]
# `load` reads the file, `task_of` sees that the target is a number per molecule, and `architecture_for` builds the
# network that fits. `lanczosnet train molecules.csv` does the same on the command line.

# %%
molecules = load("molecules.csv", targets=["logP"])
parts = split(molecules, "random", seed=0)
task = task_of(molecules, parts.train)
model = architecture_for(molecules, task, "lanczosnet", {"hidden_channels": 32, "num_layers": 3}).build(seed=0)
settings = recipe("modern", task.level, {"epochs": 30, "learning_rate": 5e-3, "averaging": 0.9})
fitted = fit(model, molecules, parts, task, settings, seed=0)
error = fitted.metrics["test"]["mae"]
print(f"mean absolute error on {len(parts.test)} test molecules: {error:.3f}")
assert error < 0.25

# %% [markdown]
# Predictions of the test molecules against the true values:

# %%
model.eval()
truth = torch.cat([molecules[i].y for i in parts.test.tolist()]).flatten()
with torch.no_grad():
    predicted = task.predicted(model(molecules.batch(parts.test))).flatten()

plt.style.use("tableau-colorblind10")
figure, axes = plt.subplots(figsize=(4.8, 4.6), layout="constrained")
axes.axline((0, 0), slope=1, color="C3", linewidth=1)
axes.scatter(truth, predicted, s=18, color="C0", alpha=0.8, linewidths=0)
axes.set(xlabel="logP", ylabel="predicted logP", title=f"mean absolute error {error:.2f}", aspect="equal")
figure.savefig("molecules_from_csv.png", dpi=150)
