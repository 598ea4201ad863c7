"""Which variables are read later, by the syntax tree alone; and that the analysis is linear and not recursive."""

from __future__ import annotations

import ast
import textwrap
import time

from weft.frontend.liveness import Liveness


def live(source: str) -> tuple[Liveness, list[ast.stmt]]:
    """The analysis of a body, and its loops and branches from top to bottom."""
    tree = ast.parse(textwrap.dedent(source))
    found = [n for n in ast.walk(tree) if isinstance(n, ast.For | ast.While | ast.If)]
    return Liveness(tree.body), sorted(found, key=lambda n: n.lineno)


def names(source: str) -> list[tuple[str, str]]:
    """For each loop the names that live around it, and for each loop or branch those that live after it."""
    analysis, nodes = live(source)
    known = sorted({n.id for n in ast.walk(ast.parse(textwrap.dedent(source))) if isinstance(n, ast.Name)})
    return [
        (
            "" if isinstance(n, ast.If) else " ".join(k for k in known if analysis.entering(n, k)),  # type: ignore
            " ".join(k for k in known if analysis.after(n, k)),
        )
        for n in nodes
    ]


def test_the_variable_of_an_inner_loop_is_not_carried_by_the_outer_one() -> None:
    source = """
        k = 5
        for i in range(n):
            for k in range(m):
                s += f(k)
        store(s)
    """
    assert names(source) == [("f m range s store", "s store"), ("f m range s store", "f m range s store")]


def test_read_after_the_loop() -> None:
    assert names("for i in n:\n    y = i\nstore(y, i)") == [("i store y", "i store y")]
    assert names("for i in n:\n    y = i\ny = 1\nstore(y)") == [("store", "store")]


def test_a_while_reads_its_condition_in_every_turn() -> None:
    assert names("while a < b:\n    c = a\n    a = c + 1") == [("a b", "")]


def test_set_on_one_path_only() -> None:
    source = """
        for i in n:
            if c:
                y = i
            use(y)
            if c:
                z = i
            else:
                z = 2
            use(z)
    """
    assert names(source) == [("c use y", ""), ("", "c i use y"), ("", "c use y z")]


def test_what_follows_a_return_reads_nothing() -> None:
    assert names("if c:\n    y = 1\nelse:\n    y = 2\nreturn\nuse(y)") == [("", "")]
    assert names("if c:\n    return y\nif d:\n    pass\nuse(z)") == [("", "d use z"), ("", "use z")]


def test_assignments_that_read() -> None:
    assert names("for i in n:\n    a += 1\n    b, c = c, b\n    d[i] = 1\n    (e := i)") == [("a b c d", "")]


def test_loops_that_are_known_to_run() -> None:
    for bounds, before in (("2", ""), ("3, 0, -1", ""), ("0", "y"), ("n", "y"), ("*a", "y"), ("'a'", "y"), ("", "y")):
        source = f"for k in a:\n    for i in f({bounds}):\n        y = i\n    use(y)"
        analysis, (outer, inner) = live(source)
        assert analysis.entering(outer, "y") == bool(before)  # type: ignore
        assert analysis.entering(inner, "y")  # type: ignore


def test_assignments_in_expressions() -> None:
    assert names("for i in n:\n    if (y := f(i)) > 2:\n        use(y)") == [("f use", ""), ("", "f use")]
    assert names("for i in n:\n    if a and (y := f(i)):\n        use(y)") == [("a f use y", ""), ("", "a f use y")]
    assert names("for i in n:\n    z = (y := i) if a else 2\n    use(y, z)") == [("a use y", "")]
    assert names("for i in (y := n):\n    use(y)\nuse(y)") == [("use y", "use y")]


def test_with_sets_its_variable() -> None:
    assert names("for i in n:\n    with f(a) as b:\n        c = b\n    use(c)") == [("a f use", "")]


def test_long_chains_and_deep_nests() -> None:
    """An elif chain is a nest as deep as it is long."""
    node: list[ast.stmt] = [ast.parse("y = 0").body[0]]
    for k in range(5_000):
        test = ast.parse(f"n == {k}", mode="eval").body
        node = [ast.If(test=test, body=ast.parse(f"y = {k}").body, orelse=node)]
    begin = time.process_time()
    analysis = Liveness([*node, *ast.parse("use(y)").body])
    assert time.process_time() - begin < 5
    assert analysis.after(node[0], "y")
    assert not analysis.after(node[0], "n")
