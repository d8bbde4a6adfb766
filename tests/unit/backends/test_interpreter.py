"""Which interpreters of Triton run the tests of kernels."""

import numpy as np
import pytest

from interpreted import IS_OUTDATED, interpreter, is_outdated

OLD = 'scope.set_attr(tensor, "__index__", lambda self: int(self.handle.data))'
NEW = 'scope.set_attr(tensor, "__index__", lambda self: int(self.handle.data.squeeze()))'


@pytest.mark.parametrize(
    ("source", "numpy", "expected"),
    [(OLD, "2.5.0", True), (OLD, "3.0.0rc1", True), (OLD, "2.4.6", False), (NEW, "2.5.0", False), ("", "2.5.0", False)],
)
def test_an_old_interpreter_is_left_out_with_a_new_numpy(source, numpy, expected):
    assert is_outdated(source, numpy) is expected


def test_the_one_here_is_read():
    assert is_outdated(interpreter(), np.__version__) is IS_OUTDATED
