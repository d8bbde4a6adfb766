"""Counts what would be kernels on a GPU: the operations of a call but for views."""

from collections import Counter
from collections.abc import Callable

from torch.utils._python_dispatch import TorchDispatchMode

VIEWS = {"_unsafe_view", "alias", "as_strided", "detach", "expand", "permute", "select", "slice", "split", "squeeze"}
VIEWS |= {"split_with_sizes", "t", "transpose", "unbind", "unsqueeze", "view"}
EMPTY = {"empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided"}


class Operations(TorchDispatchMode):
    """How often each was called."""

    def __init__(self) -> None:
        super().__init__()
        self.counts: Counter[str] = Counter()

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        name = function._schema.name.split("::")[1]
        if name not in VIEWS | EMPTY:
            self.counts[name] += 1
        return function(*args, **(kwargs or {}))


def operations(call: Callable[[], object]) -> Counter[str]:
    with Operations() as found:
        call()
    return found.counts
