"""Cross entropy over a large vocabulary, loss and gradient in one kernel.

A row of logits is too long for one tile, so the kernel walks over it twice. The first walk keeps a running maximum and
a running sum of exponentials (scaled down whenever the maximum grows); the second writes the gradient,
softmax(x) - onehot(label). Scalars carried through the loop are ordinary variables.

Rows whose label is `IGNORE` contribute nothing: a dynamic `if` with an early return.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

import weft
import weft.language as tl
from common import Array, Work, main, normal


@weft.jit
def cross_entropy_kernel(logits_ptr, labels_ptr, loss_ptr, grad_ptr, n_cols, IGNORE: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    label = tl.load(labels_ptr + row)
    logits_ptr += row.to(tl.int64) * n_cols
    grad_ptr += row.to(tl.int64) * n_cols
    columns = tl.arange(0, BLOCK)
    if label == IGNORE:
        tl.store(loss_ptr + row, 0.0)
        for start in range(0, n_cols, BLOCK):
            tl.store(grad_ptr + start + columns, 0.0, mask=start + columns < n_cols)
        return

    top = float("-inf")
    total = 0.0
    for start in range(0, n_cols, BLOCK):
        x = tl.load(logits_ptr + start + columns, mask=start + columns < n_cols, other=float("-inf"))
        new_top = tl.maximum(top, tl.max(x, axis=0))
        total = total * tl.exp(top - new_top) + tl.sum(tl.exp(x - new_top), axis=0)
        top = new_top
    log_sum = top + tl.log(total)
    tl.store(loss_ptr + row, log_sum - tl.load(logits_ptr + label))

    for start in range(0, n_cols, BLOCK):
        mask = start + columns < n_cols
        x = tl.load(logits_ptr + start + columns, mask=mask, other=float("-inf"))
        gradient = tl.exp(x - log_sum) - tl.where(start + columns == label, 1.0, 0.0)
        tl.store(grad_ptr + start + columns, gradient, mask=mask)


def cross_entropy(logits: Array, labels: Array, loss: Array, grad: Array) -> None:
    """loss[i] = logsumexp(logits[i]) - logits[i, labels[i]], and its gradient"""
    rows, columns = logits.shape
    cross_entropy_kernel[(rows,)](logits, labels, loss, grad, columns, IGNORE=-100, BLOCK=4096)


def plain_cross_entropy(logits: Array, labels: Array) -> Array:
    """The same in NumPy: a row's loss, then its gradient."""
    rows = np.arange(len(labels))
    top = logits.max(1, keepdims=True)
    log_sum = top + np.log(np.exp(logits - top).sum(1, keepdims=True))
    grad = np.exp(logits - log_sum)
    ignored = labels == -100
    safe = np.where(ignored, 0, labels)
    grad[rows, safe] -= 1
    result = np.hstack([log_sum - logits[rows, safe][:, None], grad])
    result[ignored] = 0
    return result


def works() -> Iterator[Work]:
    """A vocabulary of 32,000."""
    rows, columns = 512, 32000
    logits, labels = normal(rows, columns), np.random.default_rng(0).integers(0, columns, rows)
    labels[::7] = -100
    loss, grad = np.zeros(rows, np.float32), np.zeros_like(logits)

    def torch_work(torch):
        x, y = torch.from_numpy(logits).requires_grad_(), torch.from_numpy(labels)

        def step():
            x.grad = None
            torch.nn.functional.cross_entropy(x, y, reduction="sum").backward()

        return step

    yield Work(
        f"{rows}x{columns} fp32",
        lambda: cross_entropy(logits, labels, loss, grad),
        lambda: np.hstack([loss[:, None], grad]),
        lambda: plain_cross_entropy(logits.astype(np.float64), labels),
        numpy=lambda: plain_cross_entropy(logits, labels),
        torch=torch_work,
        bytes=12 * logits.size,
    )


if __name__ == "__main__":
    main(__file__, works)
