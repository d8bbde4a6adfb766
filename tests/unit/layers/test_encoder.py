import pytest
import torch

from lanczosnet.layers import NodeEncoder


@pytest.mark.parametrize("node_input", ["one-hot", "learned"])
@pytest.mark.parametrize("types", [[0, 5], [-1, 2]])
def test_node_types_that_the_model_does_not_know_are_named(node_input: str, types: list[int]) -> None:
    encoder = NodeEncoder(5, node_input)
    first, last = types
    with pytest.raises(ValueError, match=f"knows the node types 0 to 4, but x has {first} to {last}"):
        encoder.check_types(torch.tensor(types))
    encoder.check_types(torch.tensor([0, 4]))
    encoder.check_types(torch.tensor([[0], [4]]))
    with pytest.raises(ValueError, match=r"takes node types, integers \[node\]"):
        encoder.check_types(torch.tensor([[0, 9]]))
    encoder.check_types(torch.zeros(0, dtype=torch.long))
