"""The compiled solver for mass on a square grid: min-cost flow on its 4-neighbor arcs, in integers.

Cells are padded to a (side + 2)**2 frame, so no arc leaves the array: frame cells count as settled
and take part in nothing. `potential` falls by at most 1 along an arc and by exactly 1 along an arc
that carries flow, at all times (complementary slackness), so a flow without excess left is optimal.

A ground node may hold a surplus that must reach cells in want, at no cost (`emd_norm`); for
balanced mass it has nothing and is never touched.
"""

from __future__ import annotations

import numpy as np

from sfumato._compiled import inner, njit

FAR = 2**30
# Columns of the records of a cell, kept together so that a visit touches few cache lines. PLACE is
# the order of settlement: -1 before it, FAR on the frame. REACH is -1 on the frame, so that no
# search enters it. GIVEN is what the ground gave, -1 in cells that it does not serve.
POTENTIAL, PLACE, REACH, HOPS = 0, 1, 2, 3
EXCESS, EAST, NORTH, GIVEN = 0, 1, 2, 3


@inner
def _flow(mass, k, s, width):
    """What flows out of cell k in direction s: 0 east, 1 west, 2 north, 3 south."""
    if s == 0:
        return mass[k, EAST]
    if s == 1:
        return -mass[k - 1, EAST]
    if s == 2:
        return mass[k, NORTH]
    return -mass[k - width, NORTH]


@inner
def _push(mass, k, s, width, amount):
    if s == 0:
        mass[k, EAST] += amount
    elif s == 1:
        mass[k - 1, EAST] -= amount
    elif s == 2:
        mass[k, NORTH] += amount
    else:
        mass[k - width, NORTH] -= amount


@njit
def solve(z, start, ground_start, surplus, east, north, given):
    """Potentials and flows of an optimal transport of integer excess z to want.

    Starts from feasible potentials and from flows on tight arcs (zeros do): east, north and from
    the ground. Returns (potential, ground potential, flow east, flow north, flow from the ground).
    `z` sums to -surplus.
    """
    side = z.shape[0]
    width = side + 2
    size = width * width
    step = (1, -1, width, -width)
    cell = np.full((size, 4), FAR, np.int32)
    cell[:, POTENTIAL] = 0
    cell[:, REACH] = -1
    mass = np.zeros((size, 4), np.int64)
    order = np.empty(size + 1, np.int32)
    wanting = np.empty(side * side, np.int32)
    now = np.empty(4 * size + 8, np.int32)
    soon = np.empty(4 * size + 8, np.int32)
    later = np.empty(4 * size + 8, np.int32)
    waiting = np.zeros(size, np.bool_)
    served = np.empty(side * side if surplus > 0 else 0, np.int32)  # cells the ground may serve
    n_served = 0
    n_wanting = 0
    n_excess = 0
    ground_excess = np.int64(surplus)
    for i in range(side):
        for j in range(side):
            k = (i + 1) * width + j + 1
            cell[k, POTENTIAL] = start[i, j]
            cell[k, PLACE] = -1
            cell[k, REACH] = FAR
            mass[k, GIVEN] = -1
            if surplus > 0 and z[i, j] < 0:
                served[n_served] = k
                n_served += 1
                mass[k, GIVEN] = given[i, j]
                ground_excess -= given[i, j]
            if j < side - 1:
                mass[k, EAST] = east[i, j]
            if i < side - 1:
                mass[k, NORTH] = north[i, j]
            e = (
                z[i, j]
                + given[i, j]
                - mass[k, EAST]
                + mass[k - 1, EAST]
                - mass[k, NORTH]
                + mass[k - width, NORTH]
            )
            mass[k, EXCESS] = e
            if e < 0:
                wanting[n_wanting] = k
                n_wanting += 1
            elif e > 0:
                n_excess += 1
    ground = size
    ground_potential = np.int32(ground_start)

    while n_excess > 0 or ground_excess > 0:
        # (a) Distances from the cells in want under reduced costs 0, 1, 2, by buckets; stops when
        # all excess is settled.
        n_now = 0
        kept = 0
        for t in range(n_wanting):
            k = wanting[t]
            if mass[k, EXCESS] < 0:
                wanting[kept] = k
                kept += 1
                cell[k, REACH] = 0
                cell[k, HOPS] = 0
                now[n_now] = k
                n_now += 1
        n_wanting = kept
        n_soon = 0
        n_later = 0
        d = np.int32(0)
        settled = 0
        left = n_excess
        ground_reach = np.int32(FAR)
        ground_hops = np.int32(FAR)
        ground_place = -1
        if ground_excess > 0:
            left += 1
        while left > 0:
            head = 0
            while True:
                while head < n_now:
                    j = now[head]
                    head += 1
                    if cell[j, REACH] != d:
                        continue
                    cell[j, PLACE] = settled
                    order[settled] = j
                    settled += 1
                    if mass[j, EXCESS] > 0:
                        left -= 1
                        if left == 0:
                            break
                    u = cell[j, POTENTIAL]
                    h = cell[j, HOPS] + np.int32(1)
                    if surplus > 0 and ground_place < 0 and mass[j, GIVEN] >= 0:
                        through = d + u - ground_potential
                        if through < ground_reach:
                            ground_reach = through
                            ground_hops = h
                    for s in range(4):
                        i = j + step[s]
                        if cell[i, REACH] <= d:
                            continue
                        rise = u - cell[i, POTENTIAL]
                        cost = np.int32(1 + rise)
                        if rise == 1 and _flow(mass, j, s, width) > 0:
                            cost = np.int32(0)
                        if d + cost < cell[i, REACH]:
                            cell[i, REACH] = d + cost
                            cell[i, HOPS] = h
                            if cost == 0:
                                now[n_now] = i
                                n_now += 1
                            elif cost == 1:
                                soon[n_soon] = i
                                n_soon += 1
                            else:
                                later[n_later] = i
                                n_later += 1
                if left == 0 or surplus == 0 or ground_place >= 0 or ground_reach > d:
                    break
                ground_place = settled
                order[settled] = ground
                settled += 1
                if ground_excess > 0:
                    left -= 1
                    if left == 0:
                        break
                for t in range(n_served):  # what it has given can be taken back
                    k = served[t]
                    if mass[k, GIVEN] > 0 and cell[k, REACH] > d:
                        cell[k, REACH] = d
                        cell[k, HOPS] = ground_hops + 1
                        now[n_now] = k
                        n_now += 1
            if left == 0:
                for t in range(head, n_now):
                    if cell[now[t], PLACE] < 0:
                        cell[now[t], REACH] = FAR
                for t in range(n_soon):
                    if cell[soon[t], PLACE] < 0:
                        cell[soon[t], REACH] = FAR
                for t in range(n_later):
                    if cell[later[t], PLACE] < 0:
                        cell[later[t], REACH] = FAR
                break
            now, soon, later = soon, later, now
            n_now, n_soon, n_later = n_soon, n_later, 0
            d += np.int32(1)
            if n_now == 0 and n_soon == 0 and ground_place < 0 and ground_reach > d and surplus > 0:
                d = ground_reach
        if d > 0:
            for t in range(settled):
                k = order[t]
                if k == ground:
                    ground_potential += ground_reach - d
                else:
                    cell[k, POTENTIAL] += cell[k, REACH] - d

        # (b) One wave: in reverse order of settlement every node passes its whole excess on along
        # tight arcs.
        n_waiting = 0
        for t in range(settled - 1, -1, -1):
            i = order[t]
            if i == ground:
                if ground_excess > 0:
                    ground_excess = _ground_gives(
                        served[:n_served],
                        cell,
                        mass,
                        t,
                        ground_potential,
                        ground_excess,
                    )
                continue
            e = mass[i, EXCESS]
            if e <= 0:
                continue
            u = cell[i, POTENTIAL]
            if surplus > 0 and 0 <= ground_place < t and mass[i, GIVEN] > 0:
                back = min(e, mass[i, GIVEN])
                mass[i, GIVEN] -= back
                ground_excess += back
                e -= back
            tight = 0
            for s in range(4):  # undo opposite flow first: those arcs have an end to what they take
                j = i + step[s]
                if cell[j, PLACE] >= t or cell[j, PLACE] < 0:
                    continue
                fall = u - cell[j, POTENTIAL]
                if fall == 1:
                    tight += 1
                elif fall == -1 and e > 0:
                    back = -_flow(mass, i, s, width)
                    if back > 0:
                        back = min(e, back)
                        _push(mass, i, s, width, back)
                        e -= back
                        mass[j, EXCESS] += back
            if e > 0 and tight > 0:
                for s in range(4):
                    j = i + step[s]
                    if cell[j, PLACE] >= t or cell[j, PLACE] < 0 or u - cell[j, POTENTIAL] != 1:
                        continue
                    part = e // tight
                    tight -= 1
                    e -= part
                    mass[j, EXCESS] += part
                    _push(mass, i, s, width, part)
            mass[i, EXCESS] = e
            if e > 0:
                now[n_waiting] = i
                waiting[i] = True
                n_waiting += 1

        # (c) Local pushes on tight arcs towards fewer hops, with bounded work, before distances are
        # computed anew.
        capacity = now.size
        head = 0
        tail = n_waiting
        work = settled // 2
        while n_waiting > 0 and work > 0:
            i = now[head]
            head += 1
            if head == capacity:
                head = 0
            n_waiting -= 1
            waiting[i] = False
            e = mass[i, EXCESS]
            u = cell[i, POTENTIAL]
            if mass[i, GIVEN] > 0 and ground_place >= 0 and ground_hops < cell[i, HOPS]:
                back = min(
                    e, mass[i, GIVEN]
                )  # the ground serves another cell with it, in the next wave
                mass[i, GIVEN] -= back
                ground_excess += back
                e -= back
            while e > 0 and work > 0:
                work -= 1
                best = np.int32(FAR)
                way = -1
                limit = np.int64(0)
                for s in range(4):
                    j = i + step[s]
                    if cell[j, HOPS] >= best or cell[j, PLACE] < 0:
                        continue
                    fall = u - cell[j, POTENTIAL]
                    if fall == 1:
                        best = cell[j, HOPS]
                        way = s
                        limit = e
                    elif fall == -1:
                        back = -_flow(mass, i, s, width)
                        if back > 0:
                            best = cell[j, HOPS]
                            way = s
                            limit = min(e, back)
                if way < 0:
                    break
                if best >= cell[i, HOPS]:
                    cell[i, HOPS] = best + 1
                j = i + step[way]
                _push(mass, i, way, width, limit)
                e -= limit
                mass[j, EXCESS] += limit
                if mass[j, EXCESS] > 0 and not waiting[j]:
                    waiting[j] = True
                    now[tail] = j
                    tail += 1
                    if tail == capacity:
                        tail = 0
                    n_waiting += 1
            mass[i, EXCESS] = e
        for _ in range(n_waiting):
            waiting[now[head]] = False
            head += 1
            if head == capacity:
                head = 0

        n_excess = 0
        for t in range(settled):
            k = order[t]
            if k == ground:
                continue
            if mass[k, EXCESS] > 0:
                n_excess += 1
            cell[k, PLACE] = -1
            cell[k, REACH] = FAR
            cell[k, HOPS] = FAR

    return (
        cell[:, POTENTIAL].copy().reshape(width, width)[1:-1, 1:-1].copy(),
        ground_potential,
        mass[:, EAST].copy().reshape(width, width)[1:-1, 1:-2].copy(),
        mass[:, NORTH].copy().reshape(width, width)[1:-2, 1:-1].copy(),
        np.maximum(mass[:, GIVEN], 0).reshape(width, width)[1:-1, 1:-1].copy(),
    )


@inner
def _ground_gives(served, cell, mass, at, ground_potential, amount):
    """The ground serves the cells in want on tight arcs, then spreads the rest over all tight ones."""
    tight = 0
    for t in range(served.size):
        k = served[t]
        if cell[k, PLACE] < 0 or cell[k, PLACE] >= at or cell[k, POTENTIAL] != ground_potential:
            continue
        tight += 1
        if mass[k, EXCESS] < 0 and amount > 0:
            part = min(amount, -mass[k, EXCESS])
            mass[k, EXCESS] += part
            mass[k, GIVEN] += part
            amount -= part
    if amount > 0 and tight > 0:
        for t in range(served.size):
            k = served[t]
            if cell[k, PLACE] < 0 or cell[k, PLACE] >= at or cell[k, POTENTIAL] != ground_potential:
                continue
            part = amount // tight
            tight -= 1
            mass[k, EXCESS] += part
            mass[k, GIVEN] += part
            amount -= part
    return amount
