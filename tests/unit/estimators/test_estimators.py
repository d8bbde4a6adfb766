"""`LanczosClassifier` and `LanczosRegressor`: scikit-learn's contract, tables, graphs, new rows, bad input."""

import pickle

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.datasets import load_diabetes, load_wine
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks
from torch_geometric.data import Data

import lanczosnet
from lanczosnet.estimators import LanczosClassifier, LanczosRegressor
from lanczosnet.estimators.attached import TrainingGraph
from lanczosnet.graphs import knn_graph, load

SMALL = {"hidden_channels": 8, "num_steps": 5, "short_scales": (1, 2), "long_scales": (5,), "learning_rate": 0.1}
QUICK = SMALL | {"epochs": 3}


@parametrize_with_checks([LanczosClassifier(**SMALL, epochs=8)])
def test_scikit_learn_finds_nothing_to_object_to_in_the_classifier(estimator, check) -> None:
    check(estimator)


@parametrize_with_checks([LanczosRegressor(**SMALL, epochs=12, dropout=0.0)])
def test_scikit_learn_finds_nothing_to_object_to_in_the_regressor(estimator, check) -> None:
    check(estimator)


def wine() -> list[np.ndarray]:
    X, y = load_wine(return_X_y=True)
    return train_test_split(X, np.array(["red", "rose", "white"])[y], random_state=0)


def test_the_package_offers_both() -> None:
    assert lanczosnet.LanczosClassifier is LanczosClassifier
    assert lanczosnet.LanczosRegressor is LanczosRegressor


def test_a_classifier_learns_a_table_in_a_pipeline() -> None:
    X, X_test, y, y_test = wine()
    model = make_pipeline(StandardScaler(), LanczosClassifier(**SMALL, epochs=20)).fit(X, y)
    assert model.score(X_test, y_test) > 0.9
    assert set(model.predict(X_test)) == set(model.classes_) == {"red", "rose", "white"}
    np.testing.assert_allclose(model.predict_proba(X_test).sum(1), 1.0)


def test_a_regressor_learns_one_number_and_several() -> None:
    X, y = load_diabetes(return_X_y=True)
    model = make_pipeline(StandardScaler(), LanczosRegressor(**SMALL, epochs=20)).fit(X[:300], y[:300])
    assert model.score(X[300:], y[300:]) > 0.3
    both = LanczosRegressor(**QUICK).fit(X[:300], np.stack([y, -y], 1)[:300])
    assert both.predict(X[300:]).shape == (142, 2)


def test_a_search_over_parameters_and_a_clone() -> None:
    X, _, y, _ = wine()
    search = GridSearchCV(LanczosClassifier(**QUICK), {"n_neighbors": [3, 8], "dropout": [0.0, 0.2]}, cv=2).fit(X, y)
    assert set(search.best_params_) == {"n_neighbors", "dropout"}
    assert clone(search.best_estimator_).get_params()["n_neighbors"] == search.best_params_["n_neighbors"]


@pytest.mark.parametrize("kind", [LanczosClassifier, LanczosRegressor])
def test_a_pickled_model_predicts_the_same_and_a_seed_is_a_seed(kind) -> None:
    X, X_test, y, _ = wine()
    y = y if kind is LanczosClassifier else X[:, 0]
    model = kind(**QUICK).fit(X, y)
    predicted = model.predict(X_test)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict(X_test), predicted)
    np.testing.assert_array_equal(kind(**QUICK).fit(X, y).predict(X_test), predicted)
    other = kind(**QUICK, random_state=1).fit(X, y)
    assert not all(
        torch.equal(a, b) for a, b in zip(other.network_.parameters(), model.network_.parameters(), strict=True)
    )


@pytest.mark.parametrize("block", ["plain", "residual"])
@pytest.mark.parametrize("scales", [{}, {"long_scales": ()}, {"short_scales": ()}], ids=str)
def test_new_rows_leave_the_outputs_of_the_training_rows_as_they_are(block, scales) -> None:
    X, X_test, y, _ = wine()
    model = LanczosClassifier(**QUICK | scales, block=block).fit(X, y)
    seen = []
    model.network_.register_forward_hook(lambda *call: seen.append(call[-1]))
    for rows in (X_test, X_test[:1]):
        model.predict(rows)
    torch.testing.assert_close(seen[0][: len(X)], seen[1][: len(X)], atol=1e-12, rtol=1e-10)
    torch.testing.assert_close(seen[0][len(X)], seen[1][len(X)], atol=1e-12, rtol=1e-10)


def training_graph() -> tuple[TrainingGraph, torch.Tensor]:
    """Of 20 points on a line, and A + I of it."""
    x = torch.arange(20.0).square().unsqueeze(1)
    edges = knn_graph(x, 3)
    A = torch.eye(20, dtype=torch.float64).index_put(tuple(edges), torch.ones((), dtype=torch.float64))
    return TrainingGraph.of(Data(x=x, edge_index=edges), num_steps=20, n_neighbors=3), A


def test_new_rows_see_their_neighbours_and_themselves_and_are_not_seen() -> None:
    graph, A = training_graph()
    neighbors = torch.tensor([[0, 1, 2], [7, 5, 6]])
    degree = graph._degree()
    torch.testing.assert_close(degree, A.sum(1))
    found = graph._extended(neighbors, (4 * degree[neighbors]).rsqrt(), 0.25).dense()
    root = degree.sqrt()
    expected = torch.zeros(22, 22, dtype=torch.float64)
    expected[:20, :20] = A / root / root.unsqueeze(1)
    for place, row in enumerate(neighbors):
        expected[20 + place, row] = 1 / (2 * root[row])
        expected[20 + place, 20 + place] = 1 / 4
    torch.testing.assert_close(found, expected)


def test_the_long_scales_of_a_new_row_are_the_mean_of_its_neighbours() -> None:
    """The leading pair is the root of the degree, for new rows as for old ones."""
    graph, _ = training_graph()
    seen = []
    graph.outputs(lambda batch: seen.append(batch.spectrum.basis) or batch.x, torch.tensor([[3.0], [200.0]]))
    basis, root = seen[0], graph._degree().sqrt()
    lifted = basis.lift(basis.project(torch.cat([root, torch.zeros(2)]).unsqueeze(1)))
    torch.testing.assert_close(lifted[:, 0], torch.cat([root, torch.full((2,), 2.0, dtype=torch.float64)]))


def test_the_nodes_of_a_graph_are_samples() -> None:
    data = load("karate")
    nodes, y = np.arange(34), data.y.numpy()
    model = LanczosClassifier(**SMALL, epochs=30, graph=data).fit(nodes[::2], y[::2])
    assert model.score(nodes[::2], y[::2]) > 0.8
    assert model.score(nodes[1::2], y[1::2]) > 0.5
    np.testing.assert_array_equal(model.predict(nodes[:, None]), model.predict(nodes))
    assert len(cross_val_score(clone(model).set_params(epochs=2), nodes[:, None], y, cv=2)) == 2


def test_a_network_on_a_graph_sees_weights_and_the_answers_it_was_given_alone() -> None:
    data = load("karate")
    nodes, y = np.arange(0, 34, 2), data.y.numpy()[::2]
    plain = LanczosClassifier(**QUICK, graph=data).fit(nodes, y).predict_proba(nodes)
    changed = data.clone()
    changed.y = (data.y + 1) % 4
    np.testing.assert_array_equal(LanczosClassifier(**QUICK, graph=changed).fit(nodes, y).predict_proba(nodes), plain)
    changed.edge_weight = torch.full((data.num_edges,), 3.0)
    assert not np.allclose(LanczosClassifier(**QUICK, graph=changed).fit(nodes, y).predict_proba(nodes), plain)


def test_settings_reach_the_recipe() -> None:
    X, _, y, _ = wine()
    model = LanczosClassifier(**QUICK, settings={"class_weight": "balanced"}).fit(X, y)
    assert model.task_.class_weights
    assert LanczosRegressor(**QUICK, settings={"regression_loss": "mse"}).fit(X, X[:, 0]).task_.loss == "mse"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_neighbors": 0}, "n_neighbors must be at least 1, but is 0"),
        ({"validation_fraction": 1.0}, r"must lie in \[0, 1\), but is 1.0"),
        ({"epochs": 0}, "epochs must be a number"),
        ({"settings": {"momentum": 1}}, "no setting 'momentum'; known are"),
    ],
)
def test_a_wrong_argument_is_told_what_to_do(options, message) -> None:
    X, _, y, _ = wine()
    with pytest.raises(ValueError, match=message):
        LanczosClassifier(**QUICK | options).fit(X, y)


def test_wrong_answers_and_wrong_nodes_are_told_what_to_do() -> None:
    X, _, _, _ = wine()
    with pytest.raises(ValueError, match="only one class: red"):
        LanczosClassifier(**QUICK).fit(X, ["red"] * len(X))
    with pytest.raises(NotFittedError):
        LanczosClassifier().predict(X)
    on_graph = LanczosClassifier(**QUICK, graph=load("karate"))
    for nodes in ([0, 34], [0.5, 1.0], [-1, 0]):
        with pytest.raises(ValueError, match="numbers of its nodes, integers below 34"):
            on_graph.fit(nodes, [0, 1])
    with pytest.raises(ValueError, match="names a node twice"):
        on_graph.fit([0, 0], [0, 1])
