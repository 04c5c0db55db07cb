"""Kernels of smoke in the plane: semi-Lagrangian advection on a staggered grid, with forces.

Speeds stand on the faces of the cells, along their normal; the smoke stands in the middle of the cells. Places are
counted in cells: the middle of cell (i, j) is (i + 1/2, j + 1/2), its left face (i, j + 1/2), its lower face
(i + 1/2, j). In memory j runs faster; the faces across x come first, then those across y.
"""
# mypy: ignore-errors

import kernelc as kc


@kc.struct
class Grid:
    """Cells along x and y, whether each direction wraps around, rows of the first cell and face, sides of a cell."""

    nx: int
    ny: int
    wrap_x: int
    wrap_y: int
    cell: int
    face: int
    hx: float
    hy: float


@kc.struct
class Grids:
    """The numbers of each grid, its first cell and its first face; sides of cells, two for each grid."""

    numbers: kc.Array[int, 2]
    first_cell: kc.Array[int]
    first_face: kc.Array[int]
    length: kc.Array[float]


@kc.struct
class Gas:
    """The speed across every face, and the smoke in every cell."""

    speed: kc.Array[float]
    density: kc.Array[float]


@kc.struct
class Cells:
    """The grid of each cell, and its place there: i, j, and 1 if there is air."""

    grid: kc.Array[int]
    place: kc.Array[int, 2]


@kc.struct
class Faces:
    """The grid of each face, its place there (i, j, the axis that it lies across, 1 if open), and its two cells."""

    grid: kc.Array[int]
    place: kc.Array[int, 2]
    cells: kc.Array[int, 2]


@kc.func
def grid_of(grids: Grids, g: int) -> Grid:
    return Grid(
        nx=grids.numbers[g, 0],
        ny=grids.numbers[g, 1],
        wrap_x=grids.numbers[g, 2],
        wrap_y=grids.numbers[g, 3],
        cell=grids.first_cell[g],
        face=grids.first_face[g],
        hx=grids.length[2 * g],
        hy=grids.length[2 * g + 1],
    )


@kc.func
def sample(a, first: int, mx: int, my: int, wrap_x: int, wrap_y: int, x: float, y: float) -> float:
    """Bilinear interpolation in an mx × my array that starts at `first`, at (x, y) counted from its first entry.

    Where the grid does not wrap around, what is outside is the nearest entry.
    """
    if wrap_x == 0:
        x = kc.clamp(x, 0.0, float(mx - 1))
    if wrap_y == 0:
        y = kc.clamp(y, 0.0, float(my - 1))
    left, low = kc.floor(x), kc.floor(y)
    s, t = x - left, y - low
    i, j = int(left), int(low)
    i1 = (i + 1) % mx if wrap_x != 0 else min(i + 1, mx - 1)
    j1 = (j + 1) % my if wrap_y != 0 else min(j + 1, my - 1)
    i0 = i % mx if wrap_x != 0 else i
    j0 = j % my if wrap_y != 0 else j
    near = a[first + i0 * my + j0] * (1.0 - t) + a[first + i0 * my + j1] * t
    far = a[first + i1 * my + j0] * (1.0 - t) + a[first + i1 * my + j1] * t
    return near * (1.0 - s) + far * s


@kc.func
def speed_x(speed, g, x: float, y: float) -> float:
    mx = g.nx if g.wrap_x != 0 else g.nx + 1
    return sample(speed, g.face, mx, g.ny, g.wrap_x, g.wrap_y, x, y - 0.5)


@kc.func
def speed_y(speed, g, x: float, y: float) -> float:
    mx = g.nx if g.wrap_x != 0 else g.nx + 1
    my = g.ny if g.wrap_y != 0 else g.ny + 1
    return sample(speed, g.face + mx * g.ny, g.nx, my, g.wrap_x, g.wrap_y, x - 0.5, y)


@kc.func
def source_of(speed, g, x: float, y: float, dt: float):
    """Where what is at (x, y) was one step ago: back along the flow, with the speed half-way there."""
    ax, ay = dt / g.hx, dt / g.hy
    mx = x - 0.5 * ax * speed_x(speed, g, x, y)
    my = y - 0.5 * ay * speed_y(speed, g, x, y)
    return x - ax * speed_x(speed, g, mx, my), y - ay * speed_y(speed, g, mx, my)


@kc.kernel
def advect_smoke(
    gas: Gas,
    source: kc.Array[float],
    decay: kc.Array[float],
    cells: Cells,
    grids: Grids,
    dt: kc.Array[float],
    after: kc.Array[float],
):
    """The smoke of cell c moves with the flow, decays, and is fed. Solid cells stay empty."""
    c = kc.tid()
    value = 0.0
    if cells.place[c, 2] != 0:
        g = grid_of(grids, cells.grid[c])
        x, y = source_of(gas.speed, g, float(cells.place[c, 0]) + 0.5, float(cells.place[c, 1]) + 0.5, dt[0])
        old = sample(gas.density, g.cell, g.nx, g.ny, g.wrap_x, g.wrap_y, x - 0.5, y - 0.5)
        value = old * kc.exp(-decay[cells.grid[c]] * dt[0]) + source[c] * dt[0]
    after[c] = value


@kc.kernel
def push_air(
    gas: Gas,
    force: kc.Array[float],
    buoyancy: kc.Array[float],
    faces: Faces,
    grids: Grids,
    dt: kc.Array[float],
    after: kc.Array[float],
):
    """The speed of face f moves with the flow, and gets the mean acceleration of its two cells. Walls stand still."""
    f = kc.tid()
    value = 0.0
    if faces.place[f, 3] != 0:
        g = grid_of(grids, faces.grid[f])
        i, j, across_x = float(faces.place[f, 0]), float(faces.place[f, 1]), faces.place[f, 2] == 0
        a, b = faces.cells[f, 0], faces.cells[f, 1]
        if across_x:
            x, y = source_of(gas.speed, g, i, j + 0.5, dt[0])
            value = speed_x(gas.speed, g, x, y) + dt[0] * 0.5 * (force[2 * a] + force[2 * b])
        else:
            x, y = source_of(gas.speed, g, i + 0.5, j, dt[0])
            up = force[2 * a + 1] + force[2 * b + 1] + buoyancy[faces.grid[f]] * (gas.density[a] + gas.density[b])
            value = speed_y(gas.speed, g, x, y) + dt[0] * 0.5 * up
    after[f] = value
