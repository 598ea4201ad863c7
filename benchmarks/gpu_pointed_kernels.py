"""A product by pointers as Triton's tutorial has it, for `gpu_pointed.py`: `sides.jit` and `sides.tl` are Weft's or
Triton's."""

# mypy: ignore-errors
from sides import jit, tl


@jit
def matmul(a, b, c, M, N, K, sam, sak, sbk, sbn, scm, scn,
           BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr, ASKED: tl.constexpr):  # fmt: skip
    """c = a @ b, blocks in groups of rows; rows and columns begin again past the end, K is masked."""
    pid = tl.program_id(0)
    blocks_m, blocks_n = tl.cdiv(M, BM), tl.cdiv(N, BN)
    in_group = GROUP * blocks_n
    first = pid // in_group * GROUP
    rows_left = min(blocks_m - first, GROUP)
    pid_m = first + ((pid % in_group) % rows_left)
    pid_n = (pid % in_group) // rows_left
    rows = (pid_m * BM + tl.arange(0, BM)) % M
    columns = (pid_n * BN + tl.arange(0, BN)) % N
    inner = tl.arange(0, BK)
    a_ptrs = a + (rows[:, None] * sam + inner[None, :] * sak)
    b_ptrs = b + (inner[:, None] * sbk + columns[None, :] * sbn)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in tl.range(0, tl.cdiv(K, BK), warp_specialize=ASKED):
        x = tl.load(a_ptrs, mask=inner[None, :] < K - k * BK, other=0.0)
        y = tl.load(b_ptrs, mask=inner[:, None] < K - k * BK, other=0.0)
        acc = tl.dot(x, y, acc)
        a_ptrs += BK * sak
        b_ptrs += BK * sbk
    rows, columns = pid_m * BM + tl.arange(0, BM), pid_n * BN + tl.arange(0, BN)
    out = c + scm * rows[:, None] + scn * columns[None, :]
    tl.store(out, acc.to(c.dtype.element_ty), mask=(rows[:, None] < M) & (columns[None, :] < N))


@jit
def unmasked(a, b, c, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, ASKED: tl.constexpr):
    """The same of whole blocks, without a mask: the sizes of tensor maps are then more than any index."""
    blocks_n = tl.cdiv(N, BN)
    rows = tl.program_id(0) // blocks_n * BM + tl.arange(0, BM)
    columns = tl.program_id(0) % blocks_n * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in tl.range(0, K, BK, warp_specialize=ASKED):
        inner = k + tl.arange(0, BK)
        x = tl.load(a + rows[:, None] * K + inner[None, :])
        acc = tl.dot(x, tl.load(b + inner[:, None] * N + columns[None, :]), acc)
    tl.store(c + rows[:, None] * N + columns[None, :], acc.to(c.dtype.element_ty))


@jit
def place(tile, in_group, blocks_m, GROUP: tl.constexpr):
    """Row and column of a tile, in groups of rows."""
    first = tile // in_group * GROUP
    size = min(blocks_m - first, GROUP)
    return first + tile % in_group % size, tile % in_group // size


@jit
def one_tile(a, b, c, M, N, K,
             BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr, PROGRAMS: tl.constexpr,
             ASKED: tl.constexpr):  # fmt: skip
    """c = a @ b by descriptors, a program a tile."""
    i, j = place(tl.program_id(0), GROUP * tl.cdiv(N, BN), tl.cdiv(M, BM), GROUP)
    acc = tl.zeros((BM, BN), tl.float32)
    for at in tl.range(0, K, BK, warp_specialize=ASKED):
        acc = tl.dot(a.load([i * BM, at]), b.load([at, j * BN]), acc)
    c.store([i * BM, j * BN], acc.to(c.dtype))


@jit
def shared_sums(a, b, c, sums, counts, M, N, K,
                BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr, PARTS: tl.constexpr,
                ASKED: tl.constexpr):  # fmt: skip
    """The same, `PARTS` programs a tile, each for a part of K: the one that ends last adds what all left in `sums`,
    in the order of K. `counts` has a zero for each tile, and has them again afterwards."""
    tile, part = tl.program_id(0) // PARTS, tl.program_id(0) % PARTS
    i, j = place(tile, GROUP * tl.cdiv(N, BN), tl.cdiv(M, BM), GROUP)
    each = tl.cdiv(tl.cdiv(K, BK), PARTS) * BK
    acc = tl.zeros((BM, BN), tl.float32)
    for at in tl.range(part * each, min((part + 1) * each, K), BK, warp_specialize=ASKED):
        acc = tl.dot(a.load([i * BM, at]), b.load([at, j * BN]), acc)
    within = tl.arange(0, BM)[:, None] * BN + tl.arange(0, BN)[None, :]
    tl.store(sums + (tile * PARTS + part) * BM * BN + within, acc)
    if tl.atomic_add(counts + tile, 1) == PARTS - 1:
        total = tl.load(sums + tile * PARTS * BM * BN + within)
        for other in range(1, PARTS):
            total += tl.load(sums + (tile * PARTS + other) * BM * BN + within)
        c.store([i * BM, j * BN], total.to(c.dtype))
        tl.store(counts + tile, 0)


@jit
def over_tiles(a, b, c, M, N, K,
               BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr, PROGRAMS: tl.constexpr,
               ASKED: tl.constexpr):  # fmt: skip
    """The same, a program for each multiprocessor."""
    blocks_m, blocks_n = tl.cdiv(M, BM), tl.cdiv(N, BN)
    for tile in tl.range(tl.program_id(0), blocks_m * blocks_n, PROGRAMS, flatten=True, warp_specialize=ASKED):
        i, j = place(tile, GROUP * blocks_n, blocks_m, GROUP)
        acc = tl.zeros((BM, BN), tl.float32)
        for at in range(0, K, BK):
            acc = tl.dot(a.load([i * BM, at]), b.load([at, j * BN]), acc)
        c.store([i * BM, j * BN], acc.to(c.dtype))


@jit
def in_halves(a, b, c, M, N, K,
              BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr, PROGRAMS: tl.constexpr,
              ASKED: tl.constexpr):  # fmt: skip
    """The same, and each tile is stored in two halves, by a descriptor of blocks of BM x BN / 2."""
    blocks_m, blocks_n = tl.cdiv(M, BM), tl.cdiv(N, BN)
    for tile in tl.range(tl.program_id(0), blocks_m * blocks_n, PROGRAMS, flatten=True, warp_specialize=ASKED):
        i, j = place(tile, GROUP * blocks_n, blocks_m, GROUP)
        acc = tl.zeros((BM, BN), tl.float32)
        for at in range(0, K, BK):
            acc = tl.dot(a.load([i * BM, at]), b.load([at, j * BN]), acc)
        left, right = tl.split(tl.permute(tl.reshape(acc, (BM, 2, BN // 2)), (0, 2, 1)))
        c.store([i * BM, j * BN], left.to(c.dtype))
        c.store([i * BM, j * BN + BN // 2], right.to(c.dtype))


@jit
def side_by_side(a, b, b2, b3, b4, c, c2, c3, c4, M, N, K,
                 BM: tl.constexpr, N1: tl.constexpr, N2: tl.constexpr, N3: tl.constexpr, N4: tl.constexpr,
                 BK: tl.constexpr, GROUP: tl.constexpr, PROGRAMS: tl.constexpr, ASKED: tl.constexpr):  # fmt: skip
    """The same of tiles whose columns are no power of two: sums of N1, N2, N3 and N4 columns (0: there is none) side by
    side, each with descriptors of blocks of its own."""
    BN: tl.constexpr = N1 + N2 + N3 + N4
    blocks_m, blocks_n = tl.cdiv(M, BM), tl.cdiv(N, BN)
    for tile in tl.range(tl.program_id(0), blocks_m * blocks_n, PROGRAMS, flatten=True, warp_specialize=ASKED):
        i, j = place(tile, GROUP * blocks_n, blocks_m, GROUP)
        row, column = i * BM, j * BN
        acc = tl.zeros((BM, N1), tl.float32)
        acc2 = tl.zeros((BM, max(N2, 1)), tl.float32)
        acc3 = tl.zeros((BM, max(N3, 1)), tl.float32)
        acc4 = tl.zeros((BM, max(N4, 1)), tl.float32)
        for at in range(0, K, BK):
            x = a.load([row, at])
            acc = tl.dot(x, b.load([at, column]), acc)
            if N2:
                acc2 = tl.dot(x, b2.load([at, column + N1]), acc2)
            if N3:
                acc3 = tl.dot(x, b3.load([at, column + N1 + N2]), acc3)
            if N4:
                acc4 = tl.dot(x, b4.load([at, column + N1 + N2 + N3]), acc4)
        c.store([row, column], acc.to(c.dtype))
        if N2:
            c2.store([row, column + N1], acc2.to(c.dtype))
        if N3:
            c3.store([row, column + N1 + N2], acc3.to(c.dtype))
        if N4:
            c4.store([row, column + N1 + N2 + N3], acc4.to(c.dtype))


@jit
def one_below_another(a, a2, a3, a4, b, c, c2, c3, c4, M, N, K,
                      BN: tl.constexpr, M1: tl.constexpr, M2: tl.constexpr, M3: tl.constexpr, M4: tl.constexpr,
                      BK: tl.constexpr, GROUP: tl.constexpr, PROGRAMS: tl.constexpr, ASKED: tl.constexpr):  # fmt: skip
    """The same of tiles whose rows are no power of two, as rows of c^T = b^T a^T: a multiple of 8 of them can be the
    columns of an instruction. Each sum is stored in two halves, by descriptors of blocks of BN / 2 columns."""
    BM: tl.constexpr = M1 + M2 + M3 + M4
    blocks_m, blocks_n = tl.cdiv(M, BM), tl.cdiv(N, BN)
    for tile in tl.range(tl.program_id(0), blocks_m * blocks_n, PROGRAMS, flatten=True, warp_specialize=ASKED):
        j, i = place(tile, GROUP * blocks_m, blocks_n, GROUP)
        row, column = i * BM, j * BN
        acc = tl.zeros((BN, M1), tl.float32)
        acc2 = tl.zeros((BN, max(M2, 1)), tl.float32)
        acc3 = tl.zeros((BN, max(M3, 1)), tl.float32)
        acc4 = tl.zeros((BN, max(M4, 1)), tl.float32)
        for at in range(0, K, BK):
            x = b.load([at, column]).T
            acc = tl.dot(x, a.load([row, at]).T, acc)
            if M2:
                acc2 = tl.dot(x, a2.load([row + M1, at]).T, acc2)
            if M3:
                acc3 = tl.dot(x, a3.load([row + M1 + M2, at]).T, acc3)
            if M4:
                acc4 = tl.dot(x, a4.load([row + M1 + M2 + M3, at]).T, acc4)
        store_in_halves(c, row, column, acc)
        if M2:
            store_in_halves(c2, row + M1, column, acc2)
        if M3:
            store_in_halves(c3, row + M1 + M2, column, acc3)
        if M4:
            store_in_halves(c4, row + M1 + M2 + M3, column, acc4)


@jit
def below_and_beside(a, a2, a3, a4, b, b2, c, c2, c3, c4, d, d2, d3, d4, M, N, K,
                     N1: tl.constexpr, N2: tl.constexpr,
                     M1: tl.constexpr, M2: tl.constexpr, M3: tl.constexpr, M4: tl.constexpr,
                     BK: tl.constexpr, GROUP: tl.constexpr, PROGRAMS: tl.constexpr, ASKED: tl.constexpr):  # fmt: skip
    """The same for tiles with neither a power of two of rows nor of columns. It computes c^T = b^T a^T, so the N1 + N2
    columns of a tile are the rows of two products. `d` are descriptors of c with blocks of N2 columns."""
    BM: tl.constexpr = M1 + M2 + M3 + M4
    BN: tl.constexpr = N1 + N2
    blocks_m, blocks_n = tl.cdiv(M, BM), tl.cdiv(N, BN)
    for tile in tl.range(tl.program_id(0), blocks_m * blocks_n, PROGRAMS, flatten=True, warp_specialize=ASKED):
        j, i = place(tile, GROUP * blocks_m, blocks_n, GROUP)
        row, column = i * BM, j * BN
        acc, low = tl.zeros((N1, M1), tl.float32), tl.zeros((N2, M1), tl.float32)
        acc2, low2 = tl.zeros((N1, max(M2, 1)), tl.float32), tl.zeros((N2, max(M2, 1)), tl.float32)
        acc3, low3 = tl.zeros((N1, max(M3, 1)), tl.float32), tl.zeros((N2, max(M3, 1)), tl.float32)
        acc4, low4 = tl.zeros((N1, max(M4, 1)), tl.float32), tl.zeros((N2, max(M4, 1)), tl.float32)
        for at in range(0, K, BK):
            x, x2 = b.load([at, column]).T, b2.load([at, column + N1]).T
            y = a.load([row, at]).T
            y2 = a2.load([row + M1, at]).T if M2 else y
            y3 = a3.load([row + M1 + M2, at]).T if M3 else y
            y4 = a4.load([row + M1 + M2 + M3, at]).T if M4 else y
            acc = tl.dot(x, y, acc)
            if M2:
                acc2 = tl.dot(x, y2, acc2)
            if M3:
                acc3 = tl.dot(x, y3, acc3)
            if M4:
                acc4 = tl.dot(x, y4, acc4)
            low = tl.dot(x2, y, low)
            if M2:
                low2 = tl.dot(x2, y2, low2)
            if M3:
                low3 = tl.dot(x2, y3, low3)
            if M4:
                low4 = tl.dot(x2, y4, low4)
        c.store([row, column], acc.to(c.dtype).T)
        d.store([row, column + N1], low.to(c.dtype).T)
        if M2:
            c2.store([row + M1, column], acc2.to(c.dtype).T)
            d2.store([row + M1, column + N1], low2.to(c.dtype).T)
        if M3:
            c3.store([row + M1 + M2, column], acc3.to(c.dtype).T)
            d3.store([row + M1 + M2, column + N1], low3.to(c.dtype).T)
        if M4:
            c4.store([row + M1 + M2 + M3, column], acc4.to(c.dtype).T)
            d4.store([row + M1 + M2 + M3, column + N1], low4.to(c.dtype).T)


@jit
def store_in_halves(c, row, column, total):
    """Stores what is the transposed of `total`."""
    half: tl.constexpr = total.shape[0] // 2
    left, right = tl.split(tl.permute(tl.reshape(total.to(c.dtype), (2, half, total.shape[1])), (2, 1, 0)))
    c.store([row, column], left)
    c.store([row, column + half], right)


@jit
def crossed(a, a2, b, b2, c11, c12, c21, c22, M, N, K,
            M1: tl.constexpr, M2: tl.constexpr, N1: tl.constexpr, N2: tl.constexpr, BK: tl.constexpr,
            GROUP: tl.constexpr, PROGRAMS: tl.constexpr, ASKED: tl.constexpr):  # fmt: skip
    """The same of tiles neither whose rows nor whose columns are a power of two: M1 + M2 by N1 + N2."""
    BM: tl.constexpr = M1 + M2
    BN: tl.constexpr = N1 + N2
    blocks_m, blocks_n = tl.cdiv(M, BM), tl.cdiv(N, BN)
    for tile in tl.range(tl.program_id(0), blocks_m * blocks_n, PROGRAMS, flatten=True, warp_specialize=ASKED):
        i, j = place(tile, GROUP * blocks_n, blocks_m, GROUP)
        row, column = i * BM, j * BN
        acc11, acc12 = tl.zeros((M1, N1), tl.float32), tl.zeros((M1, N2), tl.float32)
        acc21, acc22 = tl.zeros((M2, N1), tl.float32), tl.zeros((M2, N2), tl.float32)
        for at in range(0, K, BK):
            x, x2 = a.load([row, at]), a2.load([row + M1, at])
            y, y2 = b.load([at, column]), b2.load([at, column + N1])
            acc11, acc12 = tl.dot(x, y, acc11), tl.dot(x, y2, acc12)
            acc21, acc22 = tl.dot(x2, y, acc21), tl.dot(x2, y2, acc22)
        c11.store([row, column], acc11.to(c11.dtype))
        c12.store([row, column + N1], acc12.to(c11.dtype))
        c21.store([row + M1, column], acc21.to(c11.dtype))
        c22.store([row + M1, column + N1], acc22.to(c11.dtype))


@jit
def parts_of_tiles(a, b, c, M, N, K, begin, end,
                   BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr, PROGRAMS: tl.constexpr,
                   DOWN: tl.constexpr, ACROSS: tl.constexpr, ASKED: tl.constexpr):  # fmt: skip
    """Of tiles that fall into DOWN x ACROSS parts of BM x BN each, the parts from `begin` to `end`; each is stored in
    two halves."""
    blocks_m, blocks_n = tl.cdiv(M, BM * DOWN), tl.cdiv(N, BN * ACROSS)
    for part in tl.range(begin + tl.program_id(0), end, PROGRAMS, flatten=True, warp_specialize=ASKED):
        i, j = place(part // (DOWN * ACROSS), GROUP * blocks_n, blocks_m, GROUP)
        within = part % (DOWN * ACROSS)
        row, column = (i * DOWN + within // ACROSS) * BM, (j * ACROSS + within % ACROSS) * BN
        acc = tl.zeros((BM, BN), tl.float32)
        for at in range(0, K, BK):
            acc = tl.dot(a.load([row, at]), b.load([at, column]), acc)
        left, right = tl.split(tl.permute(tl.reshape(acc, (BM, 2, BN // 2)), (0, 2, 1)))
        c.store([row, column], left.to(c.dtype))
        c.store([row, column + BN // 2], right.to(c.dtype))
