from sklearn.utils.estimator_checks import parametrize_with_checks
import pytest
from sklearn.metrics.pairwise import rbf_kernel
from lanczosnet import DiffusionMap
@pytest.mark.filterwarnings("ignore:the graph has .* connected components")
@parametrize_with_checks([DiffusionMap(),DiffusionMap(kernel="self_tuning"),DiffusionMap(kernel="precomputed"),DiffusionMap(kernel=rbf_kernel,n_neighbors=None),DiffusionMap(n_components=3,t=0,n_neighbors=4,alpha=0.5,keep_trivial=True)])
def test_sk(estimator, check):
    check(estimator)
