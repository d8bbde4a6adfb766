"""The Triton kernels of `lanczos`: S is `[node, node]`, Q `[vector, node]`, both zero past their sizes."""

import triton
import triton.language as tl


@triton.jit
def iteration(  # type: ignore[no-untyped-def]
    values, start, scale, basis, diagonal, off_diagonal, steps, tolerance,
    REORTHOGONALIZE: tl.constexpr, N: tl.constexpr, K: tl.constexpr, NODES: tl.constexpr, VECTORS: tl.constexpr,
):  # fmt: skip
    """`iteration.iterate` without restarts."""
    graph = tl.program_id(0).to(tl.int64)
    node, vector = tl.arange(0, NODES), tl.arange(0, VECTORS)
    S = _matrix(values + graph * N * N, N, NODES)
    q = tl.load(start + graph * N + node, mask=node < N, other=0.0)
    Q = tl.where(vector[:, None] == 0, q[None, :], 0.0)
    found = tl.where(tl.sum(q * q, 0) > 0, 1, 0)
    previous = tl.zeros([NODES], tl.float64)
    beta = tl.load(scale + graph) * 0.0
    threshold = beta
    for step in range(K):
        z = tl.sum(S * q[None, :], 1)
        if step == 0:
            threshold = tolerance * tl.maximum(tl.load(scale + graph), tl.sqrt(tl.sum(z * z, 0)))
        if REORTHOGONALIZE:
            first = tl.sum(Q * z[None, :], 1)
            z = z - tl.sum(Q * first[:, None], 0)
            second = tl.sum(Q * z[None, :], 1)
            z = z - tl.sum(Q * second[:, None], 0)
            gamma = tl.sum(tl.where(vector == step, first + second, 0.0), 0)
        else:
            gamma = tl.sum(q * z, 0)
            z = z - gamma * q - beta * previous
            previous = q
        length = tl.sqrt(tl.sum(z * z, 0))
        goes_on = length > threshold
        beta = tl.where(goes_on, length, 0.0)
        q = tl.where(goes_on, z / tl.where(goes_on, length, 1.0), 0.0)
        Q = tl.where(vector[:, None] == step + 1, q[None, :], Q)
        tl.store(diagonal + graph * K + step, gamma)
        tl.store(off_diagonal + graph * K + step, beta)
        found += tl.where(goes_on & (step + 1 < K), 1, 0)
    place = (graph * (K + 1) + vector[:, None]) * N + node[None, :]
    tl.store(basis + place, Q, mask=(vector[:, None] <= K) & (node[None, :] < N))
    tl.store(steps + graph, found.to(tl.int64))


@triton.jit
def re_orthogonalized_sweep(  # type: ignore[no-untyped-def]
    values, basis, diagonal, off_diagonal, basis_grad, diagonal_grad, off_diagonal_grad, image_grads, start_grad,
    N: tl.constexpr, K: tl.constexpr, NODES: tl.constexpr, VECTORS: tl.constexpr,
):  # fmt: skip
    """`adjoint.lanczos_adjoint`, whose letters it has."""
    graph = tl.program_id(0).to(tl.int64)
    node, vector = tl.arange(0, NODES), tl.arange(0, VECTORS)
    S = _matrix(values + graph * N * N, N, NODES)
    place = (graph * (K + 1) + vector[:, None]) * N + node[None, :]
    Q = tl.load(basis + place, mask=(vector[:, None] <= K) & (node[None, :] < N), other=0.0)
    owed = tl.zeros([VECTORS, VECTORS], tl.float64)  # [k + 1, j]
    next_grad = tl.zeros([NODES], tl.float64)
    next_residual_grad = tl.zeros([NODES], tl.float64)
    for back in range(K):
        j = K - 1 - back
        gamma, beta = tl.load(diagonal + graph * K + j), tl.load(off_diagonal + graph * K + j)
        gamma_grad, beta_grad = tl.load(diagonal_grad + graph * K + j), tl.load(off_diagonal_grad + graph * K + j)
        before = tl.load(off_diagonal + graph * K + j - 1, mask=j > 0, other=0.0)
        q = tl.sum(tl.where(vector[:, None] == j, Q, 0.0), 0)
        following = tl.sum(tl.where(vector[:, None] == j + 1, Q, 0.0), 0)
        factor = tl.where(beta > 0, 1.0 / tl.where(beta > 0, beta, 1.0), 0.0)
        along = tl.sum(following * next_grad, 0)
        residual_grad = factor * next_grad + (beta_grad - factor * along) * following
        overlap = tl.where(vector <= j, tl.sum(Q * residual_grad[None, :], 1), 0.0)
        residual_grad = residual_grad - tl.sum(Q * overlap[:, None], 0)
        owed = tl.where(vector[:, None] == j + 1, beta * overlap[None, :], owed)
        image_grad = residual_grad + gamma_grad * q
        row = (graph * K + j) * N + node
        tl.store(image_grads + row, image_grad, mask=node < N)
        # Column j of T with the residual's row below it: what S q_j is made of.
        column = tl.where(vector == j, gamma, 0.0) + tl.where(vector == j + 1, beta, 0.0)
        column += tl.where(vector == j - 1, before, 0.0)
        due = tl.sum(tl.where(vector[None, :] == j, owed, 0.0), 1) - gamma_grad * column
        next_grad = tl.load(basis_grad + row, mask=node < N, other=0.0) + tl.sum(S * image_grad[None, :], 1)
        next_grad = next_grad - tl.sum(Q * due[:, None], 0) - gamma * residual_grad - beta * next_residual_grad
        next_residual_grad = residual_grad
    tl.store(start_grad + graph * N + node, next_grad, mask=node < N)


@triton.jit
def three_term_sweep(  # type: ignore[no-untyped-def]
    values, basis, diagonal, off_diagonal, basis_grad, diagonal_grad, off_diagonal_grad, image_grads, start_grad,
    N: tl.constexpr, K: tl.constexpr, NODES: tl.constexpr, VECTORS: tl.constexpr,
):  # fmt: skip
    """`re_orthogonalized_sweep` for the three-term recurrence: z = S q_j - gamma_j q_j - beta_{j-1} q_{j-1}.

    Its vectors lose their orthogonality, so none is assumed: this is the derivative of the steps as they were taken.
    """
    graph = tl.program_id(0).to(tl.int64)
    node = tl.arange(0, NODES)
    S = _matrix(values + graph * N * N, N, NODES)
    vectors = basis + graph * (K + 1) * N + node
    following = tl.load(vectors + K * N, mask=node < N, other=0.0)
    next_grad = tl.zeros([NODES], tl.float64)
    next_residual_grad = tl.zeros([NODES], tl.float64)
    for back in range(K):
        j = K - 1 - back
        at = graph * K + j
        gamma, beta = tl.load(diagonal + at), tl.load(off_diagonal + at)
        q = tl.load(vectors + j * N, mask=node < N, other=0.0)
        factor = tl.where(beta > 0, 1.0 / tl.where(beta > 0, beta, 1.0), 0.0)
        # beta_j is a result, divides z, and multiplies q_j in the next step.
        beta_grad = tl.load(off_diagonal_grad + at) - factor * tl.sum(following * next_grad, 0)
        beta_grad -= tl.sum(next_residual_grad * q, 0)
        residual_grad = factor * next_grad + beta_grad * following
        gamma_grad = tl.load(diagonal_grad + at) - tl.sum(residual_grad * q, 0)
        image_grad = residual_grad + gamma_grad * q
        tl.store(image_grads + at * N + node, image_grad, mask=node < N)
        next_grad = tl.load(basis_grad + at * N + node, mask=node < N, other=0.0) + tl.sum(S * image_grad[:, None], 0)
        next_grad += gamma_grad * tl.sum(S * q[None, :], 1) - gamma * residual_grad - beta * next_residual_grad
        following, next_residual_grad = q, residual_grad
    tl.store(start_grad + graph * N + node, next_grad, mask=node < N)


@triton.jit
def _matrix(values, N: tl.constexpr, NODES: tl.constexpr):  # type: ignore[no-untyped-def]
    i, j = tl.arange(0, NODES)[:, None], tl.arange(0, NODES)[None, :]
    return tl.load(values + i * N + j, mask=(i < N) & (j < N), other=0.0)
