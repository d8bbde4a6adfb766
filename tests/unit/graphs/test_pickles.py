"""What a pickle may not do."""

import os
import pickle
from collections import defaultdict

import numpy as np
import pytest
import scipy.sparse

from lanczosnet.graphs.errors import DataError
from lanczosnet.graphs.formats.pickles import read_pickle


class Malicious:
    def __init__(self, function, *arguments):
        self.call = function, arguments

    def __reduce__(self):
        return self.call


def written(tmp_path, content: bytes):
    path = tmp_path / "file.pickle"
    path.write_bytes(content)
    return path


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
@pytest.mark.parametrize("function", [os.system, os.mkdir, eval, exec, __import__])
def test_a_malicious_pickle_runs_nothing(tmp_path, function, protocol):
    trace = tmp_path / "it-ran"
    attack = {
        os.system: f"touch {trace}",
        os.mkdir: str(trace),
        eval: f"__import__('os').mkdir({str(trace)!r})",
        exec: f"import os; os.mkdir({str(trace)!r})",
        __import__: "this",
    }[function]
    path = written(tmp_path, pickle.dumps(Malicious(function, attack), protocol=protocol))
    with pytest.raises(DataError, match=r"file\.pickle.*is not admitted.*nothing was run"):
        read_pickle(path)
    assert not trace.exists()


def test_the_malicious_pickle_would_have_run_without_the_guard(tmp_path):
    trace = tmp_path / "it-ran"
    pickle.loads(pickle.dumps(Malicious(os.mkdir, str(trace))))
    assert trace.exists()


def test_the_instance_opcode_of_protocol_0_is_guarded_too(tmp_path):
    trace = tmp_path / "it-ran"
    path = written(tmp_path, f"(S'{trace}'\nios\nmkdir\n.".encode())
    with pytest.raises(DataError, match=r"os\.mkdir"):
        read_pickle(path)
    assert not trace.exists()


@pytest.mark.parametrize("name", ["numpy.ma\nMaskedArray", "numpy\nload", "numpy.testing\nassert_", "builtins\neval"])
def test_other_names_of_the_same_libraries_are_refused(tmp_path, name):
    with pytest.raises(DataError, match="is not admitted"):
        read_pickle(written(tmp_path, f"c{name}\n.".encode()))


def python2(content: bytes) -> bytes:
    """Rename modules to those that a Python-2 pickle names."""
    return content.replace(b"numpy._core.multiarray", b"numpy.core.multiarray")


@pytest.mark.parametrize("array", [np.arange(6.0).reshape(2, 3), np.asfortranarray(np.eye(3)), np.array([1, 2], ">i4")])
def test_arrays_of_numbers_are_read(tmp_path, array):
    read = read_pickle(written(tmp_path, python2(pickle.dumps(array, protocol=3))))
    np.testing.assert_array_equal(read, array)
    assert read.dtype == array.dtype


def test_an_array_of_objects_is_refused(tmp_path):
    content = pickle.dumps(np.array([{}, "text"], dtype=object), protocol=3)
    with pytest.raises(DataError, match="not a plain number"):
        read_pickle(written(tmp_path, python2(content)))


def test_forged_bytes_do_not_become_pointers(tmp_path):
    """Eight bytes under an object dtype would be an address that NumPy follows."""
    content = python2(pickle.dumps(np.zeros(1), protocol=3)).replace(b"f8", b"O8")
    with pytest.raises(DataError, match="not a plain number"):
        read_pickle(written(tmp_path, content))


def test_a_shape_that_does_not_fit_the_bytes_is_refused(tmp_path):
    content = python2(pickle.dumps(np.zeros(3, dtype=np.uint8), protocol=3)).replace(b"K\x03\x85", b"K\x7f\x85")
    with pytest.raises(DataError, match="not a readable pickle"):
        read_pickle(written(tmp_path, content))


def test_a_sparse_matrix_whose_indices_lie_outside_is_refused(tmp_path):
    matrix = scipy.sparse.csr_matrix(np.eye(3))
    matrix.indices[0] = 100
    with pytest.raises(DataError, match="not a readable pickle"):
        read_pickle(written(tmp_path, _csr_pickle(matrix)))


def test_a_sparse_matrix_is_read(tmp_path):
    matrix = scipy.sparse.csr_matrix(np.diag([1.0, 2.0, 0.0]))
    read = read_pickle(written(tmp_path, _csr_pickle(matrix)))
    np.testing.assert_array_equal(read.toarray(), matrix.toarray())


def _csr_pickle(matrix) -> bytes:
    """As SciPy of that time wrote it: an object without arguments and a dictionary."""
    state = {"_shape": matrix.shape, "data": matrix.data, "indices": matrix.indices, "indptr": matrix.indptr}
    inner = python2(pickle.dumps(state, protocol=3)).removeprefix(b"\x80\x03").removesuffix(b".")
    return b"\x80\x03cscipy.sparse.csr\ncsr_matrix\n)\x81" + inner + b"b."


def test_a_dictionary_of_lists_is_read(tmp_path):
    graph = defaultdict(list, {0: [1, 2], 1: [0]})
    content = pickle.dumps(graph, protocol=2, fix_imports=True)
    assert read_pickle(written(tmp_path, content)) == graph


@pytest.mark.parametrize("content", [b"", b"\x80\x02", b"not a pickle", b"\x80\x02K"])
def test_a_damaged_pickle_is_named(tmp_path, content):
    with pytest.raises(DataError, match=r"file\.pickle.*truncated or damaged"):
        read_pickle(written(tmp_path, content))
