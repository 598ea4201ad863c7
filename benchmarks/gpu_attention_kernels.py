"""Attention through tensor descriptors for `gpu_attention.py`: `sides` gives jit and tl of either compiler."""

# mypy: ignore-errors
from sides import jit, tl


@jit
def _blocks(
    acc, total, most, q, keys, values, first, begin, end, scale, rows,
    MASKED: tl.constexpr, BN: tl.constexpr, SPECIALIZE: tl.constexpr,
):  # fmt: skip
    """What some blocks of keys add to the sums of a block of queries."""
    for start in tl.range(begin, end, BN, warp_specialize=SPECIALIZE):
        k = keys.load([first + start, 0])
        scores = tl.dot(q, k.T)
        if MASKED:
            columns = start + tl.arange(0, BN)
            scores = scores * scale + tl.where(rows[:, None] >= columns[None, :], 0, -1.0e6)
            now = tl.maximum(most, tl.max(scores, 1))
            p = tl.exp2(scores - now[:, None])
        else:
            now = tl.maximum(most, tl.max(scores, 1) * scale)
            p = tl.exp2(scores * scale - now[:, None])
        shrink = tl.exp2(most - now)
        total = total * shrink + tl.sum(p, 1)
        acc = acc * shrink[:, None]
        v = values.load([first + start, 0])
        acc = tl.dot(p.to(v.dtype), v, acc)
        most = now
    return acc, total, most


@jit
def forward(
    queries, keys, values, out, scale, length,
    HEAD: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, CAUSAL: tl.constexpr, TOGETHER: tl.constexpr,
    SPECIALIZE: tl.constexpr,
):  # fmt: skip
    """softmax(q k^T) v for a block of queries of one head; `scale` is log2(e) / sqrt(HEAD) and more.

    Of causal attention the blocks with the most keys come first, of as many heads `TOGETHER` as have their keys and
    values in the cache: programs that begin last are short then.
    """
    if CAUSAL:
        blocks = tl.num_programs(0)
        place = tl.program_id(0) + tl.program_id(1) % TOGETHER * blocks
        block = blocks - 1 - place // TOGETHER
        first = (tl.program_id(1) // TOGETHER * TOGETHER + place % TOGETHER) * length
    else:
        block = tl.program_id(0)
        first = tl.program_id(1) * length
    rows = block * BM + tl.arange(0, BM)
    most = tl.full([BM], float("-inf"), tl.float32)
    total = tl.zeros([BM], tl.float32)
    acc = tl.zeros([BM, HEAD], tl.float32)
    q = queries.load([first + block * BM, 0])
    if CAUSAL:
        diagonal = block * BM // BN * BN  # where the first block of keys begins that has some after a query's own
        acc, total, most = _blocks(
            acc, total, most, q, keys, values, first, 0, diagonal, scale, rows, False, BN, SPECIALIZE
        )
        acc, total, most = _blocks(
            acc, total, most, q, keys, values, first, diagonal, (block + 1) * BM, scale, rows, True, BN, SPECIALIZE
        )
    else:
        acc, total, most = _blocks(
            acc, total, most, q, keys, values, first, 0, length, scale, rows, False, BN, SPECIALIZE
        )
    out.store([first + block * BM, 0], (acc / total[:, None]).to(tl.bfloat16))


@jit
def over_tiles(
    queries, keys, values, out, scale, length, tiles,
    HEAD: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, CAUSAL: tl.constexpr, TOGETHER: tl.constexpr,
    SPECIALIZE: tl.constexpr,
):  # fmt: skip
    """The same for all blocks of queries by as many programs as there are multiprocessors.

    Of causal attention the blocks of `TOGETHER` heads come from the longest to the shortest, those of the next heads
    the other way about, and so on, so that every program has as much to do; the last are the shortest.
    """
    blocks = length // BM
    in_group = TOGETHER * blocks
    for tile in tl.range(tl.program_id(0), tiles, tl.num_programs(0), warp_specialize=SPECIALIZE):
        if CAUSAL:
            group, place = tile // in_group, tile % in_group
            head, block = group * TOGETHER + place % TOGETHER, place // TOGETHER
            if (tiles // in_group - group) % 2 == 1:
                block = blocks - 1 - block
            end = (block + 1) * BM
        else:
            head, block, end = tile // blocks, tile % blocks, length
        first, at = head * length, (head * blocks + block) * BM
        rows = block * BM + tl.arange(0, BM)
        most = tl.full([BM], float("-inf"), tl.float32)
        total = tl.zeros([BM], tl.float32)
        acc = tl.zeros([BM, HEAD], tl.float32)
        q = queries.load([at, 0])
        for start in range(0, end, BN):
            k = keys.load([first + start, 0])
            scores = tl.dot(q, k.T)
            if CAUSAL:
                columns = start + tl.arange(0, BN)
                scores = tl.where(rows[:, None] >= columns[None, :], scores, -1.0e6)
            now = tl.maximum(most, tl.max(scores, 1) * scale)
            p = tl.exp2(scores * scale - now[:, None])
            shrink = tl.exp2(most - now)
            total = total * shrink + tl.sum(p, 1)
            acc = acc * shrink[:, None]
            v = values.load([first + start, 0])
            acc = tl.dot(p.to(v.dtype), v, acc)
            most = now
        out.store([at, 0], (acc / total[:, None]).to(tl.bfloat16))
