"""Functions at random whose tiles have reason to lie in different ways: loads and stores along rows and columns,
transpositions, sums and scans along either dimension, products, in loops, branches and loops with a condition."""

from __future__ import annotations

from random import Random


def head_of(size: int) -> str:
    """The beginning of a function on tiles of size times size elements: pointers to them along rows and columns."""
    return f"""
  tt.func public @k(%p: !tt.ptr<f32> {{tt.divisibility = 16 : i32}}, %n: i32) {{
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c6 = arith.constant 6 : i32
    %is = arith.cmpi sgt, %n, %c0 : i32
    %i = tt.make_range {{end = {size} : i32, start = 0 : i32}} : tensor<{size}xi32>
    %size = arith.constant dense<{size}> : tensor<{size}x{size}xi32>
    %column = tt.expand_dims %i {{axis = 1 : i32}} : tensor<{size}xi32> -> tensor<{size}x1xi32>
    %row = tt.expand_dims %i {{axis = 0 : i32}} : tensor<{size}xi32> -> tensor<1x{size}xi32>
    %a = tt.broadcast %column : tensor<{size}x1xi32> -> tensor<{size}x{size}xi32>
    %b = tt.broadcast %row : tensor<1x{size}xi32> -> tensor<{size}x{size}xi32>
    %down = arith.muli %a, %size : tensor<{size}x{size}xi32>
    %right = arith.muli %b, %size : tensor<{size}x{size}xi32>
    %at_rows = arith.addi %down, %b : tensor<{size}x{size}xi32>
    %at_columns = arith.addi %right, %a : tensor<{size}x{size}xi32>
    %all = tt.splat %p : !tt.ptr<f32> -> tensor<{size}x{size}x!tt.ptr<f32>>
    %rows = tt.addptr %all, %at_rows : tensor<{size}x{size}x!tt.ptr<f32>>, tensor<{size}x{size}xi32>
    %columns = tt.addptr %all, %at_columns : tensor<{size}x{size}x!tt.ptr<f32>>, tensor<{size}x{size}xi32>
"""


class RandomFunction:
    """The text of a function of so many statements, on tiles of f32."""

    def __init__(self, random: Random, statements: int, size: int = 32) -> None:
        self.random, self.count, self.lines = random, 0, [head_of(size)]
        self.size, self.tile, self.row = size, f"tensor<{size}x{size}xf32>", f"tensor<{size}xf32>"
        tiles = [self.load()]
        self.statements(tiles, statements, depth=0)
        self.store(tiles[-1])
        self.text = "module {" + "\n".join([*self.lines, "tt.return", "}", "}"])

    def name(self) -> str:
        self.count += 1
        return f"%v{self.count}"

    def say(self, line: str) -> str:
        """Add a line that makes a value; its name."""
        name = self.name()
        self.lines.append(f"{name} = {line}")
        return name

    def pointers(self) -> str:
        return self.random.choice(("%rows", "%columns"))

    def load(self) -> str:
        return self.say(f"tt.load {self.pointers()} : tensor<{self.size}x{self.size}x!tt.ptr<f32>>")

    def store(self, tile: str) -> None:
        self.lines.append(f"tt.store {self.pointers()}, {tile} : tensor<{self.size}x{self.size}x!tt.ptr<f32>>")

    def combine(self, what: str, tile: str, axis: int, result: str) -> str:
        x, y, z = self.name(), self.name(), self.name()
        reverse = ", reverse = false" if what == "scan" else ""
        return self.say(
            f'"tt.{what}"({tile}) <{{axis = {axis} : i32{reverse}}}> ({{\n^bb0({x}: f32, {y}: f32):\n'
            f"{z} = arith.addf {x}, {y} : f32\ntt.{what}.return {z} : f32\n}}) : ({self.tile}) -> {result}"
        )

    def statements(self, tiles: list[str], count: int, depth: int) -> None:
        """Statements that add to the tiles that are known."""
        for _ in range(count):
            kinds = ["load", "add", "add", "exp", "trans", "sum", "sum", "scan", "store", "dot"]
            kind = self.random.choice(kinds + ["for", "for", "if", "while"] * (depth < 2))
            tile = self.random.choice(tiles[-3:])
            if kind == "store":
                self.store(tile)
            else:
                tiles.append(getattr(self, f"make_{kind}")(tile, tiles, depth))

    def make_load(self, tile: str, tiles: list[str], depth: int) -> str:
        return self.say(f"arith.addf {tile}, {self.load()} : {self.tile}")

    def make_add(self, tile: str, tiles: list[str], depth: int) -> str:
        return self.say(f"arith.addf {tile}, {self.random.choice(tiles)} : {self.tile}")

    def make_exp(self, tile: str, tiles: list[str], depth: int) -> str:
        return self.say(f"math.exp {tile} : {self.tile}")

    def make_trans(self, tile: str, tiles: list[str], depth: int) -> str:
        return self.say(f"tt.trans {tile} {{order = array<i32: 1, 0>}} : {self.tile} -> {self.tile}")

    def make_scan(self, tile: str, tiles: list[str], depth: int) -> str:
        return self.combine("scan", tile, self.random.randrange(2), self.tile)

    def make_sum(self, tile: str, tiles: list[str], depth: int) -> str:
        axis = self.random.randrange(2)
        spread = f"tensor<{self.size}x1xf32>" if axis else f"tensor<1x{self.size}xf32>"
        row = self.combine("reduce", tile, axis, self.row)
        if self.random.random() < 0.5:
            row = self.say(f"math.exp {row} : {self.row}")
        row = self.say(f"tt.expand_dims {row} {{axis = {axis} : i32}} : {self.row} -> {spread}")
        row = self.say(f"tt.broadcast {row} : {spread} -> {self.tile}")
        return self.say(f"arith.mulf {tile}, {row} : {self.tile}")

    def make_dot(self, tile: str, tiles: list[str], depth: int) -> str:
        zero = self.say(f"arith.constant dense<0.0> : {self.tile}")
        other = self.random.choice(tiles)
        return self.say(
            f"tt.dot {tile}, {other}, {zero}, inputPrecision = tf32 : {self.tile} * {self.tile} -> {self.tile}"
        )

    def body(self, tiles: list[str], depth: int) -> str:
        """Statements of a region, and the tile that it hands on."""
        inner = [*tiles]
        self.statements(inner, self.random.randint(1, 3), depth + 1)
        return inner[-1]

    def make_for(self, tile: str, tiles: list[str], depth: int) -> str:
        name, argument = self.name(), self.name()
        counted = f"{self.name()} = %c0 to %c6 step %c1"
        self.lines.append(f"{name} = scf.for {counted} iter_args({argument} = {tile}) -> ({self.tile}) : i32 {{")
        last = self.body([*tiles, argument], depth)
        self.lines += [f"scf.yield {last} : {self.tile}", "}"]
        return name

    def make_if(self, tile: str, tiles: list[str], depth: int) -> str:
        name = self.name()
        self.lines.append(f"{name} = scf.if %is -> ({self.tile}) {{")
        self.lines += [
            f"scf.yield {self.body(tiles, depth)} : {self.tile}",
            "} else {",
            f"scf.yield {tile} : {self.tile}",
            "}",
        ]
        return name

    def make_while(self, tile: str, tiles: list[str], depth: int) -> str:
        name, first, count, argument, counted = (self.name() for _ in range(5))
        kind = f"({self.tile}, i32)"
        self.lines += [
            f"{name}:2 = scf.while ({first} = {tile}, {count} = %c0) : {kind} -> {kind} {{",
            f"%go{count[1:]} = arith.cmpi slt, {count}, %n : i32",
            f"scf.condition(%go{count[1:]}) {first}, {count} : {self.tile}, i32", "} do {",
            f"^bb0({argument}: {self.tile}, {counted}: i32):",
        ]  # fmt: skip
        last = self.body([*tiles, argument], depth)
        more = self.say(f"arith.addi {counted}, %c1 : i32")
        self.lines += [f"scf.yield {last}, {more} : {self.tile}, i32", "}"]
        return f"{name}#0"
