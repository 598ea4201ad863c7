"""The results and operands of AMD's matrix instructions: MFMA and WMMA."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from weft.base import LayoutError

from ..linear import LinearLayout
from . import checks
from .base import DistributedLayout
from .cga import check_cga, combine
from .parts import copies, dim_names, fragment, identity, identity_nd, matrix_order, operand_order

__all__ = ["AMDMFMALayout", "AMDWMMALayout"]

WMMA_DEPTHS = {1: (16,), 2: (16, 32), 3: (4, 32, 64, 128)}
WMMA_K_WIDTHS = {1: (8, 16), 2: (4, 8, 16), 3: (2, 8, 16)}
MFMA_SHAPES = ((32, 32), (16, 16), (64, 4), (4, 64))


def _tiles_per_warp(owner: str, value: Any, rank: int) -> tuple[int, ...]:
    return (1,) * rank if value is None else checks.sizes(owner, "tiles_per_warp", value, rank, "warps_per_cta")


def _lists(value: Any) -> bool:
    """Is this a list of lists, which bases are and numbers of warps are not?"""
    return isinstance(value, (list, tuple)) and all(isinstance(basis, (list, tuple)) for basis in value)


def _warps(owner: str, value: Any) -> tuple[int, ...]:
    warps = checks.sizes(owner, "warps_per_cta", value)
    if len(warps) not in (2, 3):
        raise LayoutError(f"{owner}: warps_per_cta must have 2 entries, or 3 for a batch, got {list(warps)}")
    return warps


def _result(tile: list[LinearLayout], layout: AMDMFMALayout | AMDWMMALayout, shape: tuple[int, ...]) -> LinearLayout:
    """The instruction's tile repeated over the tensor: along N all of it first, then along M, then the batch."""
    rank, tiles, warps = layout.rank, layout.tiles_per_warp or (), layout.warps_per_cta
    m, n = rank - 2, rank - 1
    tile_n = (layout.instr_shape or ())[1] * warps[n] * tiles[n]
    pieces = [
        identity(tiles[n], "register", f"dim{n}"),
        identity(warps[n], "warp", f"dim{n}"),
        identity(max(1, shape[n] // tile_n), "register", f"dim{n}"),
        identity(tiles[m], "register", f"dim{m}"),
        identity(warps[m], "warp", f"dim{m}"),
    ]
    if rank == 3:
        pieces.append(identity(warps[0], "warp", "dim0"))
    return combine(fragment(matrix_order(rank), *tile, *pieces), layout.cga_layout, shape)


def _operand(
    tile: list[LinearLayout], repeat: int, index: int, layout: AMDMFMALayout | AMDWMMALayout, shape: tuple[int, ...]
) -> LinearLayout:
    """A tile repeated over the tensor: `repeat` times along K, then for the tiles of a warp, then as far as it goes.

    As in Triton 3.6.0 the blocks of a cluster split an operand as they split the result, along K too.
    """
    order = operand_order(index, layout.rank)
    k, other = order[:2]
    pieces = [
        identity(max(1, repeat), "register", f"dim{k}"),
        identity((layout.tiles_per_warp or ())[other], "register", f"dim{other}"),
        identity_nd("warp", layout.warps_per_cta, matrix_order(layout.rank), zero=k),
    ]
    return combine(fragment(order, *tile, *pieces), layout.cga_layout, shape)


@dataclass(frozen=True, repr=False)
class AMDMFMALayout(DistributedLayout):
    """The result of an MFMA instruction on 64 lanes.

    `version` is 1 to 4 for gfx908, gfx90a, gfx942 and gfx950; `instr_shape` is [M, N, K] with M x N one of 32x32,
    16x16, 64x4, 4x64. A lane holds 4 consecutive elements of a column (1 if `element_bitwidth` is 64), of a row if
    `transposed`. `tiles_per_warp` instructions side by side belong to one warp. Tiles are counted along N over the
    whole of the tensor first, then along M.

    >>> AMDMFMALayout(3, [16, 16, 16], True, [1, 1]).to_linear([16, 16]).bases["register"]
    ((0, 1), (0, 2))
    """

    warp_threads: ClassVar[int] = 64
    version: int
    instr_shape: Sequence[int]
    transposed: bool
    warps_per_cta: Sequence[int]
    element_bitwidth: int | None = None
    tiles_per_warp: Sequence[int] | None = None
    cga_layout: Sequence[Sequence[int]] = ()

    def __post_init__(self) -> None:
        name = self._name
        shape = checks.sizes(name, "instr_shape", self.instr_shape, 3, "[M, N, K]")
        if shape[:2] not in MFMA_SHAPES:
            legal = ", ".join(f"{m}x{n}" for m, n in MFMA_SHAPES)
            raise LayoutError(f"{name}: instr_shape starts with M x N, one of {legal}, got {list(shape)}")
        transposed = checks.flag(name, "transposed", self.transposed)
        if shape[:2] == (64, 4) and not transposed:
            raise LayoutError(f"{name}: the result of a 64x4 instruction is always transposed, got transposed=False")
        warps = _warps(name, self.warps_per_cta)
        bits = 32 if self.element_bitwidth is None else self.element_bitwidth
        self._set(
            version=checks.integer(name, "version", self.version, 1, 4),
            instr_shape=shape,
            transposed=transposed,
            warps_per_cta=warps,
            element_bitwidth=checks.one_of(name, "element_bitwidth", bits, (32, 64)),
            tiles_per_warp=_tiles_per_warp(name, self.tiles_per_warp, len(warps)),
            cga_layout=check_cga(name, self.cga_layout, len(warps)),
        )

    def _defaults(self) -> dict[str, Any]:
        return {"element_bitwidth": 32, "tiles_per_warp": (1,) * self.rank}

    @property
    def rank(self) -> int:
        return len(self.warps_per_cta)

    def _tile(self) -> list[LinearLayout]:
        """One instruction: registers along a column, lanes along a row and then down, registers for what is left."""
        m, n = self.instr_shape[:2]
        rows, columns = f"dim{self.rank - 2}", f"dim{self.rank - 1}"
        if self.transposed:
            m, n, rows, columns = n, m, columns, rows
        height = 1 if self.element_bitwidth == 64 else 4
        return [
            identity(height, "register", rows),
            identity(n, "lane", columns),
            identity(64 // n, "lane", rows),
            identity(max(1, m * n // (64 * height)), "register", rows),
        ]

    def _linear(self, shape: tuple[int, ...]) -> LinearLayout:
        return _result(self._tile(), self, shape)

    def check_operand(self, index: int, k_width: int) -> None:
        if not k_width:
            raise LayoutError(f"DotOperandLayout: k_width is 0; operands of {self!r} need a power of two")

    def operand(self, index: int, k_width: int, shape: tuple[int, ...]) -> LinearLayout:
        """An operand: lanes along M or N first, then along K; K is repeated before M or N."""
        k, other = operand_order(index, self.rank)[:2]
        size = self.instr_shape[index]
        # The 64 x 64 operand of a 64x4 or 4x64 instruction is read 4 at a time.
        times = 16 if (self.instr_shape[:2], index) in (((64, 4), 0), ((4, 64), 1)) else 1
        tile = [
            identity(k_width, "register", f"dim{k}"),
            identity(size, "lane", f"dim{other}"),
            identity(64 // size, "lane", f"dim{k}"),
            identity(times, "register", f"dim{k}"),
        ]
        return _operand(tile, shape[k] // (64 // size * k_width * times), index, self, shape)


@dataclass(frozen=True, repr=False, init=False)
class AMDWMMALayout(DistributedLayout):
    """The result of a WMMA instruction on 32 lanes, 16 x 16.

    `version` is 1 for RDNA3, 2 for RDNA4, 3 for gfx1250; `instr_shape` is [M, N, K]. A lane holds 8 elements of a
    column (of a row if `transposed`): every other one in version 1, consecutive ones in versions 2 and 3.

    Triton 3.7 places the instructions by bases, `warp_bases` and `reg_bases`, which count in tiles of the result, where
    3.6 has `warps_per_cta` and `tiles_per_warp`; both are taken.

    >>> AMDWMMALayout(2, False, [1, 1]).to_linear([16, 16]).bases["lane"]
    ((0, 1), (0, 2), (0, 4), (0, 8), (8, 0))
    """

    warp_threads: ClassVar[int] = 32
    version: int
    transposed: bool
    warps_per_cta: Sequence[int]
    instr_shape: Sequence[int] | None = None
    tiles_per_warp: Sequence[int] | None = None
    cga_layout: Sequence[Sequence[int]] = ()
    warp_bases: Sequence[Sequence[int]] | None = None
    reg_bases: Sequence[Sequence[int]] | None = None

    def __init__(
        self,
        version: int,
        transposed: bool,
        warps_per_cta: Any = None,
        instr_shape: Any = None,
        tiles_per_warp: Any = None,
        cga_layout: Any = (),
        rank: int | None = None,
        *,
        warp_bases: Any = None,
        reg_bases: Any = None,
    ) -> None:
        name = self._name
        if warp_bases is None and _lists(warps_per_cta):
            warps_per_cta, warp_bases = None, warps_per_cta
            if _lists(instr_shape) or tiles_per_warp is not None:  # by position, as in 3.7: reg_bases, instr_shape
                reg_bases, instr_shape, tiles_per_warp = instr_shape, tiles_per_warp, None
        if warp_bases is None and reg_bases is not None:
            raise LayoutError(f"{name}: reg_bases go with warp_bases, got warps_per_cta {warps_per_cta!r}")
        if warp_bases is not None:
            bases = checks.sequence(name, "warp_bases", warp_bases)
            bases += checks.sequence(name, "reg_bases", reg_bases or ())
            wanted = len(checks.sequence(name, "a basis of warp_bases", bases[0])) if bases and rank is None else rank
            wanted = 2 if wanted is None else checks.integer(name, "rank", wanted, 2, 3)
            warp_bases = checks.bases(name, "warp_bases", warp_bases, wanted)
            reg_bases = checks.bases(name, "reg_bases", reg_bases or (), wanted)
            counted = tuple(1 << sum(1 for basis in warp_bases if basis[dim]) for dim in range(wanted))
            if warps_per_cta is not None and _warps(name, warps_per_cta) != counted:
                raise LayoutError(f"{name}: warps_per_cta {warps_per_cta} and warp_bases {warp_bases} differ")
            warps_per_cta = counted
        shape = checks.sizes(name, "instr_shape", (16, 16, 16) if instr_shape is None else instr_shape, 3, "[M, N, K]")
        number = checks.integer(name, "version", version, 1, 3)
        if shape[:2] != (16, 16) or shape[2] not in WMMA_DEPTHS[number]:
            legal = ", ".join(map(str, WMMA_DEPTHS[number]))
            raise LayoutError(
                f"{name}: instr_shape of version {number} must be [16, 16, K] with K one of {legal}, got {list(shape)}"
            )
        warps = _warps(name, warps_per_cta)
        self._set(
            version=number,
            transposed=checks.flag(name, "transposed", transposed),
            warps_per_cta=warps,
            instr_shape=shape,
            tiles_per_warp=_tiles_per_warp(name, tiles_per_warp, len(warps)),
            cga_layout=check_cga(name, cga_layout, len(warps)),
            warp_bases=warp_bases,
            reg_bases=reg_bases,
        )

    def _defaults(self) -> dict[str, Any]:
        return {"instr_shape": (16, 16, 16), "tiles_per_warp": (1,) * self.rank}

    @property
    def rank(self) -> int:
        return len(self.warps_per_cta)

    def _placed(self, tile: LinearLayout, summed: int | None = None) -> LinearLayout:
        """Tiles where the bases of registers and warps put them, counted in tiles; along `summed` all are in one place.

        A register that would only move along `summed` holds nothing more, and is left out.
        """
        registers, warps = (
            [tuple(0 if dim == summed else at for dim, at in enumerate(basis)) for basis in bases or ()]
            for bases in (self.reg_bases, self.warp_bases)
        )
        bases = {"register": [basis for basis in registers if any(basis)], "warp": warps}
        return tile * LinearLayout.from_bases(bases, dim_names(self.rank)).transpose_outs(list(tile.out_dims))

    def _linear(self, shape: tuple[int, ...]) -> LinearLayout:
        rank = self.rank
        rows, columns = f"dim{rank - 2}", f"dim{rank - 1}"
        if self.transposed:
            rows, columns = columns, rows
        lanes = identity(16, "lane", columns)
        if self.version == 1:
            tile = [lanes, identity(2, "lane", rows), identity(8, "register", rows)]
        else:
            tile = [identity(8, "register", rows), lanes, identity(2, "lane", rows)]
        if self.warp_bases is not None:
            return combine(self._placed(fragment(matrix_order(rank), *tile)), self.cga_layout, shape)
        return _result(tile, self, shape)

    def check_operand(self, index: int, k_width: int) -> None:
        checks.one_of("DotOperandLayout", f"k_width of {self!r}", k_width, WMMA_K_WIDTHS[self.version])

    def operand(self, index: int, k_width: int, shape: tuple[int, ...]) -> LinearLayout:
        """An operand: 16 lanes along M or N; the other 16 hold copies in version 1, what follows along K in others."""
        k, other = operand_order(index, self.rank)[:2]
        lanes = copies("lane", 2, f"dim{k}") if self.version == 1 else identity(2, "lane", f"dim{k}")
        depth = max((self.instr_shape or ())[2], 2 * k_width)
        tile = [
            identity(k_width, "register", f"dim{k}"),
            identity(16, "lane", f"dim{other}"),
            lanes,
            identity(depth // (2 * k_width), "register", f"dim{k}"),
        ]
        if self.warp_bases is not None:
            tile.append(identity(max(1, shape[k] // depth), "register", f"dim{k}"))
            return combine(self._placed(fragment(operand_order(index, self.rank), *tile), k), self.cga_layout, shape)
        # Only so that the tiles of a warp come after all of K; without them K is what is covered first anyway.
        repeat = shape[k] // depth if (self.tiles_per_warp or ())[other] > 1 else 1
        return _operand(tile, repeat, index, self, shape)
