"""Nodes that one compiler keeps whole and the other decomposes: parts, and why the rest is left over."""

from __future__ import annotations

from app.diff import Status, compare
from app.diff.lineage import parts
from compiler.report import Group, GroupKind, Node, NodeKind, Provenance, Region, Report, SourceLine, TensorInfo
from tests.fake_reports import transformer_report

HERE = Provenance([SourceLine("m.py", 3, "forward", "return gelu(x) + 1")])
BELOW = Provenance([SourceLine("m.py", 4, "forward", "return x.sin().exp()")])
SIZE = [TensorInfo([8, 8], "float32", [8, 1], "cuda:0", 256)]


def call(name: str, op: str, *inputs: str, origin: str = "", place: Provenance = HERE) -> Node:
    return Node(name, NodeKind.CALL, op, list(inputs), ", ".join(inputs), SIZE, place, origin=origin)


def placeholder() -> Node:
    return Node("x", NodeKind.PLACEHOLDER, "input", outputs=SIZE)


def group(name: str, order: int, *nodes: str) -> Group:
    return Group(name, GroupKind.POINTWISE, list(nodes), "k", "because", order=order)


def whole() -> Region:
    nodes = [placeholder(), call("gelu", "aten.gelu.default", "x"), call("add", "aten.add.Tensor", "gelu")]
    return Region("inference", "inference", nodes, [group("g0", 0, "gelu", "add")])


def decomposed(*groups: Group) -> Region:
    origin = "aten.gelu.default"
    nodes = [
        placeholder(),
        call("mul", "aten.mul.Tensor", "x", origin=origin),
        call("erf", "aten.erf.default", "mul", origin=origin),
        call("mul_1", "aten.mul.Tensor", "erf", "x", origin=origin),
        call("add", "aten.add.Tensor", "mul_1"),
        call("sin", "aten.sin.default", "add", place=BELOW),
        call("exp", "aten.exp.default", "add", origin="aten.softplus.default", place=BELOW),
    ]
    return Region("inference", "inference", nodes, list(groups))


def report(region: Region) -> Report:
    base = transformer_report()
    return Report("fusescope", "m", base.target, regions=[region])


def test_parts_lead_to_the_node_of_their_op() -> None:
    a, b = whole(), decomposed()
    assert parts(b, a, {"mul_1": "gelu", "add": "add"}) == {"mul": "gelu", "erf": "gelu"}
    assert parts(a, b, {}) == {}
    assert parts(b, a, {"add": "add"}) == {}  # nothing of the same origin is matched with a node of that op


def test_what_is_left_has_its_reason() -> None:
    b = decomposed(group("g0", 0, "mul", "erf", "mul_1", "add"), group("g1", 1, "sin", "exp"))
    (found,) = compare(report(whole()), report(b)).regions
    assert found.parts_b == {"mul": "gelu", "erf": "gelu"}
    assert found.only_b == ["sin", "exp"]
    assert found.reasons_b == {
        "sin": "the other has no aten.sin.default",
        "exp": "decomposed from aten.softplus.default, of which the other has no node",
    }
    assert [g.status for g in found.groups] == [Status.SAME, Status.ADDED]


def test_a_part_in_another_group_is_a_split() -> None:
    b = decomposed(group("g0", 0, "mul"), group("g1", 1, "erf", "mul_1", "add"))
    (found,) = compare(report(whole()), report(b)).regions
    assert [g.status for g in found.groups] == [Status.SPLIT]


def test_a_report_and_itself_have_no_parts() -> None:
    assert compare(report(decomposed()), report(decomposed())).is_empty
