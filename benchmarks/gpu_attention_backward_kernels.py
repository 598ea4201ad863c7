"""Gradients of attention for `gpu_attention_backward.py`: `sides` gives jit and tl of either compiler.

With P = exp2(scale q k^T - most) and D = sum of out * dout along a row:

    dv = P^T dout        dp = dout v^T        ds = P (dp - D)        dk = ds^T q        dq = ds k

Rows are those of a tensor of all heads, one behind the other; `most` is log2 of a row's sum of exponentials. dk and dq
are to be multiplied by 1 / sqrt(HEAD), which is log(2) * scale.

NARROW: P and dp - D are rounded to bf16 before they are multiplied, not only their product. That takes one instruction
less for two elements, and P half of the registers; dq and dk have relative errors of 0.004 then, instead of 0.0013.
"""

# mypy: ignore-errors
from sides import jit, tl

LN2: tl.constexpr = tl.constexpr(0.6931471805599453)


@jit
def row_sums(out, dout, sums, HEAD: tl.constexpr, BM: tl.constexpr):
    """D, of a block of rows."""
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    at = rows[:, None] * HEAD + tl.arange(0, HEAD)[None, :]
    products = tl.load(out + at).to(tl.float32) * tl.load(dout + at).to(tl.float32)
    tl.store(sums + rows, tl.sum(products, 1))


@jit
def to_half(wide, narrow, scale, BLOCK: tl.constexpr):
    """What atomics have summed, in bf16."""
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    tl.store(narrow + at, (tl.load(wide + at) * scale).to(tl.bfloat16))


# -- by pointers, as the tutorial of fused attention does it: one program makes dk and dv of a block, and dq of one


@jit
def _add_to_keys(
    dk, dv, queries, douts, most, sums, k, v, scale, n0, begin, end,
    HEAD: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, MASKED: tl.constexpr, SPECIALIZE: tl.constexpr,
):  # fmt: skip
    """What blocks of queries add to dk and dv of a block of keys; pointers are those of a head."""
    columns, inner = n0 + tl.arange(0, BN), tl.arange(0, HEAD)
    at_queries = queries + (begin + tl.arange(0, BM))[None, :] * HEAD + inner[:, None]
    at_douts = douts + (begin + tl.arange(0, BM))[:, None] * HEAD + inner[None, :]
    for m0 in tl.range(begin, end, BM, warp_specialize=SPECIALIZE):
        rows = m0 + tl.arange(0, BM)
        qt = tl.load(at_queries)
        top = tl.load(most + rows)
        p = tl.exp2(tl.dot(k, qt) * scale - top[None, :])
        if MASKED:
            p = tl.where(rows[None, :] >= columns[:, None], p, 0.0)
        do = tl.load(at_douts)
        dv += tl.dot(p.to(tl.bfloat16), do)
        d = tl.load(sums + rows)
        ds = p * (tl.dot(v, tl.trans(do)) - d[None, :])
        dk += tl.dot(ds.to(tl.bfloat16), tl.trans(qt))
        at_queries += BM * HEAD
        at_douts += BM * HEAD
    return dk, dv


@jit
def _add_to_queries(
    dq, keys, values, q, do, top, d, scale, m0, begin, end,
    HEAD: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, MASKED: tl.constexpr, SPECIALIZE: tl.constexpr,
):  # fmt: skip
    """What blocks of keys add to dq of a block of queries; pointers are those of a head."""
    rows, inner = m0 + tl.arange(0, BM), tl.arange(0, HEAD)
    at = (begin + tl.arange(0, BN))[None, :] * HEAD + inner[:, None]
    at_keys, at_values = keys + at, values + at
    for n0 in tl.range(begin, end, BN, warp_specialize=SPECIALIZE):
        kt = tl.load(at_keys)
        vt = tl.load(at_values)
        p = tl.exp2(tl.dot(q, kt) * scale - top[:, None])
        if MASKED:
            p = tl.where(rows[:, None] >= (n0 + tl.arange(0, BN))[None, :], p, 0.0)
        ds = p * (tl.dot(do, vt) - d[:, None])
        dq += tl.dot(ds.to(tl.bfloat16), tl.trans(kt))
        at_keys += BN * HEAD
        at_values += BN * HEAD
    return dq


@jit
def by_pointers(
    queries, keys, values, douts, dq_out, dk_out, dv_out, most, sums, scale, length,
    HEAD: tl.constexpr, BLOCK: tl.constexpr, STEP: tl.constexpr, CAUSAL: tl.constexpr, SPECIALIZE: tl.constexpr,
):  # fmt: skip
    """All three, of block `program_id(0)` of head `program_id(1)`."""
    head = tl.program_id(1).to(tl.int64) * length
    queries += head * HEAD
    keys += head * HEAD
    values += head * HEAD
    douts += head * HEAD
    most += head
    sums += head
    first = tl.program_id(0) * BLOCK
    inner = tl.arange(0, HEAD)
    at = (first + tl.arange(0, BLOCK))[:, None] * HEAD + inner[None, :]

    k, v = tl.load(keys + at), tl.load(values + at)
    dk = tl.zeros([BLOCK, HEAD], tl.float32)
    dv = tl.zeros([BLOCK, HEAD], tl.float32)
    begin = 0
    if CAUSAL:
        begin = first + BLOCK
        dk, dv = _add_to_keys(
            dk, dv, queries, douts, most, sums, k, v, scale, first, first, begin, HEAD, STEP, BLOCK, True, SPECIALIZE
        )
    dk, dv = _add_to_keys(
        dk, dv, queries, douts, most, sums, k, v, scale, first, begin, length, HEAD, STEP, BLOCK, False, SPECIALIZE
    )
    tl.store(dv_out + head * HEAD + at, dv.to(tl.bfloat16))
    tl.store(dk_out + head * HEAD + at, (dk * (scale * LN2)).to(tl.bfloat16))

    q, do = tl.load(queries + at), tl.load(douts + at)
    rows = first + tl.arange(0, BLOCK)
    top, d = tl.load(most + rows), tl.load(sums + rows)
    dq = tl.zeros([BLOCK, HEAD], tl.float32)
    end = length
    if CAUSAL:
        end = first
        dq = _add_to_queries(
            dq, keys, values, q, do, top, d, scale, first, first, first + BLOCK,
            HEAD, BLOCK, STEP, True, SPECIALIZE,
        )  # fmt: skip
    dq = _add_to_queries(dq, keys, values, q, do, top, d, scale, first, 0, end, HEAD, BLOCK, STEP, False, SPECIALIZE)
    tl.store(dq_out + head * HEAD + at, (dq * (scale * LN2)).to(tl.bfloat16))


# -- by descriptors, dk and dv in one kernel and dq in another


@jit
def _product(p, ds, NARROW: tl.constexpr):
    """ds, in bf16, of P and dp - D."""
    if NARROW:
        return p.to(tl.bfloat16) * ds.to(tl.bfloat16)
    return (p * ds).to(tl.bfloat16)


@jit
def _keys_of_blocks(
    dk, dv, queries, douts, most, sums, k, v, scale, head, n0, begin, end,
    BM: tl.constexpr, BN: tl.constexpr, MASKED: tl.constexpr, SPECIALIZE: tl.constexpr, NARROW: tl.constexpr,
):  # fmt: skip
    columns = n0 + tl.arange(0, BN)
    for m0 in tl.range(begin, end, BM, warp_specialize=SPECIALIZE):
        rows = m0 + tl.arange(0, BM)
        top = tl.load(most + head + rows)
        d = tl.load(sums + head + rows)
        q = queries.load([head + m0, 0])
        do = douts.load([head + m0, 0])
        p = tl.exp2(tl.dot(k, q.T) * scale - top[None, :])
        if MASKED:
            p = tl.where(rows[None, :] >= columns[:, None], p, 0.0)
        dp = tl.dot(v, do.T)
        dv = tl.dot(p.to(tl.bfloat16), do, dv)
        ds = _product(p, dp - d[None, :], NARROW)
        dk = tl.dot(ds, q, dk)
    return dk, dv


@jit
def keys_and_values(
    queries, keys, values, douts, dk_out, dv_out, most, sums, scale, length,
    HEAD: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, CAUSAL: tl.constexpr, SPECIALIZE: tl.constexpr,
    NARROW: tl.constexpr,
):  # fmt: skip
    """dk and dv of a block of keys."""
    head = tl.program_id(1) * length
    n0 = tl.program_id(0) * BN
    k = keys.load([head + n0, 0])
    v = values.load([head + n0, 0])
    dk = tl.zeros([BN, HEAD], tl.float32)
    dv = tl.zeros([BN, HEAD], tl.float32)
    begin = 0
    if CAUSAL:
        first = n0 // BM * BM  # queries that are in front of the keys are masked
        begin = first + (BM if BM > BN else BN)
        dk, dv = _keys_of_blocks(
            dk, dv, queries, douts, most, sums, k, v, scale, head, n0, first, begin, BM, BN, True, SPECIALIZE, NARROW
        )
    dk, dv = _keys_of_blocks(
        dk, dv, queries, douts, most, sums, k, v, scale, head, n0, begin, length, BM, BN, False, SPECIALIZE, NARROW
    )
    dv_out.store([head + n0, 0], dv.to(tl.bfloat16))
    dk_out.store([head + n0, 0], (dk * (scale * LN2)).to(tl.bfloat16))


@jit
def _queries_of_blocks(
    dq, keys, values, q, do, top, d, scale, head, rows, begin, end,
    BN: tl.constexpr, MASKED: tl.constexpr, SPECIALIZE: tl.constexpr, NARROW: tl.constexpr,
):  # fmt: skip
    for n0 in tl.range(begin, end, BN, warp_specialize=SPECIALIZE):
        k = keys.load([head + n0, 0])
        v = values.load([head + n0, 0])
        p = tl.exp2(tl.dot(q, k.T) * scale - top[:, None])
        if MASKED:
            p = tl.where(rows[:, None] >= (n0 + tl.arange(0, BN))[None, :], p, 0.0)
        ds = _product(p, tl.dot(do, v.T) - d[:, None], NARROW)
        dq = tl.dot(ds, k, dq)
    return dq


@jit
def of_queries(
    queries, keys, values, douts, dq_out, most, sums, scale, length,
    HEAD: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, CAUSAL: tl.constexpr, SPECIALIZE: tl.constexpr,
    NARROW: tl.constexpr,
):  # fmt: skip
    """dq of a block of queries."""
    head = tl.program_id(1) * length
    m0 = (tl.num_programs(0) - 1 - tl.program_id(0)) * BM  # of causal attention the longest come first
    rows = m0 + tl.arange(0, BM)
    q = queries.load([head + m0, 0])
    do = douts.load([head + m0, 0])
    top, d = tl.load(most + head + rows), tl.load(sums + head + rows)
    dq = tl.zeros([BM, HEAD], tl.float32)
    if CAUSAL:
        dq = _queries_of_blocks(
            dq, keys, values, q, do, top, d, scale, head, rows, 0, m0, BN, False, SPECIALIZE, NARROW
        )
        dq = _queries_of_blocks(
            dq, keys, values, q, do, top, d, scale, head, rows, m0, m0 + BM, BN, True, SPECIALIZE, NARROW
        )
    else:
        dq = _queries_of_blocks(
            dq, keys, values, q, do, top, d, scale, head, rows, 0, length, BN, False, SPECIALIZE, NARROW
        )
    dq_out.store([head + m0, 0], (dq * (scale * LN2)).to(tl.bfloat16))


# -- by descriptors, all in one loop, dq by atomics


@jit
def _all_of_blocks(
    dk, dv, queries, douts, dq_sums, most, sums, k, v, scale, head, n0, begin, end,
    HEAD: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, MASKED: tl.constexpr, SPECIALIZE: tl.constexpr,
    NARROW: tl.constexpr,
):  # fmt: skip
    columns, inner = n0 + tl.arange(0, BN), tl.arange(0, HEAD)
    for m0 in tl.range(begin, end, BM, warp_specialize=SPECIALIZE):
        rows = m0 + tl.arange(0, BM)
        top = tl.load(most + head + rows)
        d = tl.load(sums + head + rows)
        q = queries.load([head + m0, 0])
        do = douts.load([head + m0, 0])
        p = tl.exp2(tl.dot(k, q.T) * scale - top[None, :])
        if MASKED:
            p = tl.where(rows[None, :] >= columns[:, None], p, 0.0)
        dp = tl.dot(v, do.T)
        dv = tl.dot(p.to(tl.bfloat16), do, dv)
        ds = _product(p, dp - d[None, :], NARROW)
        dk = tl.dot(ds, q, dk)
        dq = tl.dot(ds.T, k)
        at = dq_sums + (head + rows).to(tl.int64)[:, None] * HEAD + inner[None, :]
        tl.atomic_add(at, dq, sem="relaxed")
    return dk, dv


@jit
def all_at_once(
    queries, keys, values, douts, dq_sums, dk_out, dv_out, most, sums, scale, length,
    HEAD: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, CAUSAL: tl.constexpr, SPECIALIZE: tl.constexpr,
    NARROW: tl.constexpr,
):  # fmt: skip
    """dk and dv of a block of keys, and what it adds to dq, which begins as zeros."""
    head = tl.program_id(1) * length
    n0 = tl.program_id(0) * BN
    k = keys.load([head + n0, 0])
    v = values.load([head + n0, 0])
    dk = tl.zeros([BN, HEAD], tl.float32)
    dv = tl.zeros([BN, HEAD], tl.float32)
    begin = 0
    if CAUSAL:
        first = n0 // BM * BM
        begin = first + (BM if BM > BN else BN)
        dk, dv = _all_of_blocks(
            dk, dv, queries, douts, dq_sums, most, sums, k, v, scale, head, n0, first, begin,
            HEAD, BM, BN, True, SPECIALIZE, NARROW,
        )  # fmt: skip
    dk, dv = _all_of_blocks(
        dk, dv, queries, douts, dq_sums, most, sums, k, v, scale, head, n0, begin, length,
        HEAD, BM, BN, False, SPECIALIZE, NARROW,
    )  # fmt: skip
    dv_out.store([head + n0, 0], dv.to(tl.bfloat16))
    dk_out.store([head + n0, 0], (dk * (scale * LN2)).to(tl.bfloat16))
