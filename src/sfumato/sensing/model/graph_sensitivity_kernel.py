"""The compiled Lanczos process from single edges of a graph, each on the ball of nodes that it reaches."""

from __future__ import annotations

import numpy as np

from sfumato._compiled import njit


@njit
def lanczos(first, heads, links, degrees, begin, end, steps, room, alphas, betas, done):
    """Run up to `steps` steps of Lanczos on the Laplacian from (e_i - e_j) / sqrt 2 for each pair of nodes.

    The Laplacian is degrees minus links, in rows. Writes the Jacobi matrix of pair p to alphas[p],
    betas[p] (the last beta is the norm of what would come next) and its order to done[p]: fewer
    than `steps` where the ball outgrew `room` nodes or the process ended. Returns how many
    multiplications it took. Vectors are made orthogonal to all before them, twice, so that they are
    so to a few units of rounding.
    """
    place = np.full(degrees.size, -1, np.int64)
    nodes = np.empty(room, np.int64)
    basis = np.zeros((steps, room))
    sizes = np.zeros(steps, np.int64)
    w = np.zeros(room)
    scale = degrees.max()
    work = 0
    for p in range(begin.size):
        nodes[0], nodes[1] = begin[p], end[p]
        place[begin[p]], place[end[p]] = 0, 1
        size = 2
        basis[0, 0], basis[0, 1] = np.sqrt(0.5), -np.sqrt(0.5)
        sizes[0] = 2
        done[p] = 0
        for t in range(steps):
            held = sizes[t]
            full = False
            w[:size] = 0.0
            for a in range(held):
                node, mass = nodes[a], basis[t, a]
                w[a] += degrees[node] * mass
                work += first[node + 1] - first[node]
                for arc in range(first[node], first[node + 1]):
                    head = heads[arc]
                    if head == node:
                        continue
                    at = place[head]
                    if at < 0:
                        if size == room:
                            full = True
                            break
                        at = size
                        place[head] = at
                        nodes[at] = head
                        w[at] = 0.0
                        size += 1
                    w[at] -= links[arc] * mass
                if full:
                    break
            if full:
                break
            alpha = 0.0
            for a in range(held):
                alpha += w[a] * basis[t, a]
            for _ in range(2):
                for s in range(t, -1, -1):
                    along = 0.0
                    for a in range(sizes[s]):
                        along += w[a] * basis[s, a]
                    for a in range(sizes[s]):
                        w[a] -= along * basis[s, a]
            work += 2 * (t + 1) * size
            beta = 0.0
            for a in range(size):
                beta += w[a] * w[a]
            beta = np.sqrt(beta)
            alphas[p, t], betas[p, t] = alpha, beta
            done[p] = t + 1
            if beta <= 1e-8 * scale or t + 1 == steps:
                break
            for a in range(size):
                basis[t + 1, a] = w[a] / beta
            sizes[t + 1] = size
        for a in range(size):
            place[nodes[a]] = -1
    return work
