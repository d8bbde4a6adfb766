"""Devices and precisions by name."""

import pytest
import torch

from lanczosnet.training import TrainingError
from lanczosnet.training.devices import PRECISIONS, exact_products, fabric_for


@pytest.fixture(autouse=True)
def _products_as_before():
    before = torch.get_float32_matmul_precision()
    yield
    torch.set_float32_matmul_precision(before)


@pytest.mark.parametrize(("name", "products"), [("32-true", "high"), ("32-exact", "highest"), ("64-true", "highest")])
def test_a_precision_says_how_float32_matrices_are_multiplied(name, products):
    fabric = fabric_for("cpu", name)
    assert torch.get_float32_matmul_precision() == products
    assert fabric._precision.precision == name.replace("exact", "true")


def test_exact_products_are_exact_for_a_while():
    fabric_for("cpu")
    with exact_products():
        assert torch.get_float32_matmul_precision() == "highest"
    assert torch.get_float32_matmul_precision() == "high"


def test_a_name_that_is_none_lists_those_that_are():
    with pytest.raises(TrainingError, match=f"no precision '32'; known are {', '.join(PRECISIONS)}"):
        fabric_for("cpu", "32")
    with pytest.raises(TrainingError, match="no device 'gpu'; known are auto, cpu, cuda, mps"):
        fabric_for("gpu")
