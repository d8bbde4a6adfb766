"""Networks are chosen by name and fitted to the data."""

import pytest
import torch

from lanczosnet.models import MODELS
from lanczosnet.training import TrainingError, architecture_for, task_of
from lanczosnet.training.architecture import option_names
from training_builders import communities, packed_molecules


def test_inputs_and_outputs_come_from_the_data():
    data = packed_molecules()
    options = architecture_for(data, task_of(data, torch.arange(30)), "lanczosnet").options
    assert (options["in_channels"], options["out_channels"], options["num_edge_types"]) == (5, 2, 3)
    assert (options["node_input"], options["readout"]) == ("learned", "sum")
    options = architecture_for(data, task_of(data, torch.arange(30)), "lanczosnet", {"block": "plain"}).options
    assert (options["num_layers"], options["readout"]) == (7, "gated")
    data = communities()
    options = architecture_for(data, task_of(data, torch.arange(9)), "LanczosNet", {"hidden_channels": 7}).options
    assert (options["in_channels"], options["hidden_channels"], options["out_channels"]) == (8, 7, 3)


def test_steps_are_at_most_the_nodes_of_the_largest_graph():
    data = communities()
    task = task_of(data, torch.arange(9))
    wanted = {"num_steps": 9000, "search_steps": 9000}
    options = architecture_for(data, task, "lanczosnet", wanted).options
    most = max(data.num_nodes, 64)
    assert (options["num_steps"], options["search_steps"]) == (most, most)
    assert architecture_for(data, task, "lanczosnet", {"num_steps": 20, "search_steps": 40}).options["num_steps"] == 20


def test_equal_seeds_give_equal_weights():
    data = communities()
    architecture = architecture_for(data, task_of(data, torch.arange(9)), "lanczosnet")
    one, same, other = (architecture.build(seed).state_dict() for seed in (1, 1, 2))
    assert all(torch.equal(one[key], same[key]) for key in one)
    assert not all(torch.equal(one[key], other[key]) for key in one)


def test_a_misspelt_option_or_model_lists_the_right_ones():
    data = communities()
    task = task_of(data, torch.arange(9))
    with pytest.raises(TrainingError, match=r"no option 'hiden_channels'.*hidden_channels"):
        architecture_for(data, task, "lanczosnet", {"hiden_channels": 3})
    with pytest.raises(ValueError, match="unknown model 'lanczosnt'"):
        architecture_for(data, task, "lanczosnt")


@pytest.mark.parametrize("name", MODELS)
def test_every_network_tells_its_options(name):
    names = option_names(name)
    assert {"in_channels", "hidden_channels", "out_channels", "num_layers", "readout", "dropout"} <= set(names)


def test_text_in_place_of_true_or_false_is_refused():
    data = communities()
    with pytest.raises(TrainingError, match="the option bias of lanczosnet is true or false, not 'no'"):
        architecture_for(data, task_of(data, torch.arange(9)), "lanczosnet", {"bias": "no"})
