"""Products of fp8 with scales of blocks, grouped products, and attention in fp8, for `gpu_fp8.py`: `sides` gives jit
and tl of either compiler."""

# mypy: ignore-errors
from sides import jit, tl


@jit
def place(tile, blocks_m, blocks_n, GROUP: tl.constexpr):
    """Row and column of a tile, in groups of rows."""
    in_group = GROUP * blocks_n
    first = tile // in_group * GROUP
    size = min(blocks_m - first, GROUP)
    return first + tile % in_group % size, tile % in_group // size


@jit
def by_pointers(a, b, sa, sb, c, M, N, K, sam, sbn, scm, ssa, ssb,
                BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr, PROGRAMS: tl.constexpr,
                ASKED: tl.constexpr):  # fmt: skip
    """c = a @ b^T of whole blocks, with a scale for BK elements of a row of a, and for BK by BK of b."""
    i, j = place(tl.program_id(0), tl.cdiv(M, BM), tl.cdiv(N, BN), GROUP)
    rows, columns, inner = i * BM + tl.arange(0, BM), j * BN + tl.arange(0, BN), tl.arange(0, BK)
    a_at = a + rows[:, None] * sam + inner[None, :]
    b_at = b + columns[None, :] * sbn + inner[:, None]
    sa_at, sb_at = sa + rows * ssa, sb + columns // BK * ssb
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in tl.range(0, tl.cdiv(K, BK), warp_specialize=ASKED):
        x = tl.load(a_at, mask=inner[None, :] < K - k * BK, other=0.0)
        y = tl.load(b_at, mask=inner[:, None] < K - k * BK, other=0.0)
        x_scale, y_scale = tl.load(sa_at + k), tl.load(sb_at + k)
        acc += tl.dot(x, y) * x_scale[:, None] * y_scale[None, :]
        a_at += BK
        b_at += BK
    out = c + rows[:, None] * scm + columns[None, :]
    tl.store(out, acc.to(c.dtype.element_ty), mask=(rows[:, None] < M) & (columns[None, :] < N))


@jit
def by_descriptors(a, b, sa, sb, c, M, N, K, ssa, ssb,
                   BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr, PROGRAMS: tl.constexpr,
                   ASKED: tl.constexpr):  # fmt: skip
    """The same; a and b through descriptors, scales of a with rows next to each other."""
    i, j = place(tl.program_id(0), tl.cdiv(M, BM), tl.cdiv(N, BN), GROUP)
    rows = i * BM + tl.arange(0, BM)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in tl.range(0, tl.cdiv(K, BK), warp_specialize=ASKED):
        x, y = a.load([i * BM, k * BK]), b.load([j * BN, k * BK])
        x_scale = tl.load(sa + k * ssa + rows)
        if BN == BK:
            y_scale = tl.load(sb + j * ssb + k)
            acc += tl.dot(x, y.T) * (x_scale * y_scale)[:, None]
        else:
            y_scale = tl.load(sb + (j * BN + tl.arange(0, BN)) // BK * ssb + k)
            acc += tl.dot(x, y.T) * x_scale[:, None] * y_scale[None, :]
    c.store([i * BM, j * BN], acc.to(c.dtype))


@jit
def over_tiles(a, b, sa, sb, c, M, N, K, ssa, ssb,
               BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr, PROGRAMS: tl.constexpr,
               ASKED: tl.constexpr):  # fmt: skip
    """The same, a program for each multiprocessor."""
    blocks_m, blocks_n = tl.cdiv(M, BM), tl.cdiv(N, BN)
    for tile in tl.range(tl.program_id(0), blocks_m * blocks_n, PROGRAMS, flatten=True, warp_specialize=ASKED):
        i, j = place(tile, blocks_m, blocks_n, GROUP)
        rows = i * BM + tl.arange(0, BM)
        acc = tl.zeros((BM, BN), dtype=tl.float32)
        for k in range(tl.cdiv(K, BK)):
            x, y = a.load([i * BM, k * BK]), b.load([j * BN, k * BK])
            x_scale = tl.load(sa + k * ssa + rows)
            if BN == BK:
                y_scale = tl.load(sb + j * ssb + k)
                acc += tl.dot(x, y.T) * (x_scale * y_scale)[:, None]
            else:
                y_scale = tl.load(sb + (j * BN + tl.arange(0, BN)) // BK * ssb + k)
                acc += tl.dot(x, y.T) * x_scale[:, None] * y_scale[None, :]
        c.store([i * BM, j * BN], acc.to(c.dtype))


@jit
def attention(queries, keys, values, out, scale, length,
              HEAD: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, ASKED: tl.constexpr):  # fmt: skip
    """softmax(q k^T) v for a block of queries of one head, all of fp8e5 and v transposed (heads * HEAD rows), as in
    Triton's tutorial; `scale` is log2(e) / sqrt(HEAD) and more."""
    head = tl.program_id(1)
    first = head * length
    most = tl.full([BM], float("-inf"), tl.float32)
    total = tl.zeros([BM], tl.float32)
    acc = tl.zeros([BM, HEAD], tl.float32)
    q = queries.load([first + tl.program_id(0) * BM, 0])
    for start in tl.range(0, length, BN, warp_specialize=ASKED):
        scores = tl.dot(q, keys.load([first + start, 0]).T)
        now = tl.maximum(most, tl.max(scores, 1) * scale)
        p = tl.exp2(scores * scale - now[:, None])
        shrink = tl.exp2(most - now)
        total = total * shrink + tl.sum(p, 1)
        acc = acc * shrink[:, None]
        v = values.load([head * HEAD, start]).T
        acc = tl.dot(p.to(v.dtype), v, acc)
        most = now
    out.store([first + tl.program_id(0) * BM, 0], (acc / total[:, None]).to(out.dtype))


@jit
def grouped(a_pointers, b_pointers, c_pointers, sizes, groups,
            BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, PROGRAMS: tl.constexpr):  # fmt: skip
    """c = a @ b^T in fp8 for several matrices each, as in Triton's tutorial: addresses in an array, and m, n and k of
    each; descriptors are made by the kernel."""
    tile, last_end = tl.program_id(0), 0
    for g in range(groups):
        m, n, k = tl.load(sizes + 3 * g), tl.load(sizes + 3 * g + 1), tl.load(sizes + 3 * g + 2)
        blocks_n = tl.cdiv(n, BN)
        tiles = tl.cdiv(m, BM) * blocks_n
        if tile >= last_end and tile < last_end + tiles:
            a = tl.load(a_pointers + g).to(tl.pointer_type(tl.float8e4nv))
            b = tl.load(b_pointers + g).to(tl.pointer_type(tl.float8e4nv))
            c = tl.load(c_pointers + g).to(tl.pointer_type(tl.bfloat16))
            left = tl.make_tensor_descriptor(a, shape=[m, k], strides=[k, 1], block_shape=[BM, BK])
            right = tl.make_tensor_descriptor(b, shape=[n, k], strides=[k, 1], block_shape=[BN, BK])
            out = tl.make_tensor_descriptor(c, shape=[m, n], strides=[n, 1], block_shape=[BM, BN])
            while tile >= last_end and tile < last_end + tiles:
                i, j = (tile - last_end) // blocks_n, (tile - last_end) % blocks_n
                acc = tl.zeros((BM, BN), dtype=tl.float32)
                for at in range(0, k, BK):
                    acc = tl.dot(left.load([i * BM, at]), right.load([j * BN, at]).T, acc)
                out.store([i * BM, j * BN], acc.to(tl.bfloat16))
                tile += PROGRAMS
        last_end += tiles
