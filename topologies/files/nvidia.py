"""Networks as NVIDIA's own tools print them: `nvidia-smi topo -m`, and NCCL's topology XML.

Both name the links of one machine. Rates come from the generation of the links (`nvidia.toml`);
what the output leaves open is warned of. NCCL_TOPO_DUMP_FILE writes the XML. A chip hangs on the
network cards nearest to it; machines alike are joined by theirs (`equal_machines`).
"""

import re
import tomllib
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any
from xml.parsers import expat

import networkx as nx

from topologies.fabric import fabric
from topologies.fabric.fabric import Fabric
from topologies.fabric.limits import TopologyError, quote, suggest
from topologies.fabric.soundness import check

XML = re.compile(r"\s*(<\?xml[^>]*>\s*)?(<!--.*?-->\s*)?<", re.DOTALL)
ESCAPE = re.compile(r"\x1b\[[\d;]*m")
DEVICE = re.compile(r"(GPU|NIC)\d+|[a-z]\w*_\w+|hfi\d.*")
CELL = re.compile(r"X|NV\d+|PIX|PXB|PHB|NODE|SYS")
CARD = re.compile(r"X|PIX|PXB|PHB|NODE|SYS")
LINK_ORDER = ("PIX", "PXB", "PHB", "NODE", "SYS")  # the nearer the earlier
NETWORK = "network"
NVSWITCH = "0x0680"
_TABLE = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
DEFAULTS: Mapping[str, float] = _TABLE["usual"]
Pair = tuple[int, int]


def machine_fabric(text: str, where: str, name: str) -> Fabric:
    """The fabric of one machine; raises TopologyError, with line and column, for half a file."""
    return _of_xml(text, where, name) if XML.match(text) else _of_matrix(text, where, name)


def _of_matrix(text: str, where: str, name: str) -> Fabric:
    lines = [ESCAPE.sub("", line) for line in text.splitlines()]
    heads = (i for i, x in enumerate(map(str.split, lines)) if x[:1] == ["GPU0"] and "X" not in x)
    first = next(heads, None)
    if first is None:
        fault = (
            "line 1, column 1: a line of columns from GPU0 on was expected, as nvidia-smi topo -m"
        )
        raise TopologyError(where, f"{fault} prints it, or NCCL's topology XML")
    names = [word for word in lines[first].split("CPU")[0].split() if DEVICE.fullmatch(word)]
    chips = [word for word in names if word.startswith("GPU")]
    faults, rows = [], {}
    for number, line in enumerate(lines[first + 1 :], first + 2):
        cells = list(re.finditer(r"\S+", line))
        label = cells[0].group() if cells else ""
        if label not in names:
            if (
                re.fullmatch(r"GPU\w*", label)
                and len(cells) > 1
                and CELL.fullmatch(cells[1].group())
            ):
                faults.append(f"line {number}, column 1: {quote(label)} has a row and no column")
            continue
        cells = cells[1 : 1 + len(names)]
        if len(cells) < len(names):
            place = f"line {number}, column {len(line) + 1}"
            faults.append(f"{place}: {label} has {len(cells)} of {len(names)} entries")
        for target, cell in zip(names, cells, strict=False):
            fits = CELL if target in chips else CARD
            wrong = (cell.group() == "X") != (target == label)
            wrong |= not fits.fullmatch(cell.group())
            if wrong:
                place = f"line {number}, column {cell.start() + 1}: {label} to {target}"
                allowed = "X, NV#, PIX, PXB, PHB, NODE or SYS, and X to itself alone"
                faults.append(f"{place} is {quote(cell.group())}; expected {allowed}")
        rows[label] = (number, [cell.group() for cell in cells])
    last = f"line {len(lines)}, column 1"
    faults += [f"{last}: the row of {x} is missing; it was cut off" for x in chips if x not in rows]
    for a, b in combinations(chips, 2) if not faults else ():
        there, back = rows[a][1][names.index(b)], rows[b][1][names.index(a)]
        if there != back:
            place = f"line {rows[b][0]}, column 1"
            faults.append(f"{place}: {b} to {a} is {back}, but {a} to {b} is {there}")
    if faults:
        raise TopologyError(where, faults)
    paths = {
        (i, j): rows[chips[i]][1][names.index(chips[j])]
        for i, j in combinations(range(len(chips)), 2)
    }
    joined = {pair: int(word[2:]) for pair, word in paths.items() if word.startswith("NV")}
    sm = next((sm for sm, words in _TABLE["chips"].items() if re.search(words, text)), None)
    G = _machine(name, len(chips))
    if joined and sm is None:
        _open(where, "NVLinks are taken as 25 GB/s one way, those of V100 to H200; a line with the "
                     "name of the chip (B200, A6000) says otherwise")  # fmt: skip
    if not _nvlinks(G, joined, _TABLE["nvlink"][sm or "90"]):
        _open(where, "PCI Express is taken as 4.0 with sixteen lanes, 31.5 GB/s one way")
        _hosts(G, paths)
    _printed_cards(G, rows, names, where)
    return check(G)


def _printed_cards(
    G: Fabric, rows: Mapping[str, tuple[int, list[str]]], names: Sequence[str], where: str
) -> None:
    cards = [x for x in names if not x.startswith("GPU")]
    near = [
        [LINK_ORDER.index(rows[chip][1][names.index(x)]) for x in cards]
        for chip in names if chip not in cards
    ]  # fmt: skip
    if _cards(G, near, dict.fromkeys(cards, DEFAULTS["card"])):
        words = f"{len(cards)} network cards are taken as 400 Gbit/s: this output has no rate"
        _open(where, words)


def _cards(G: Fabric, near: Sequence[Sequence[int]], rates: Mapping[str, float]) -> bool:
    """Hang cards of these rates [byte/s] on chips, each on its nearest; whether there are any.

    `near` counts, by chip and card, how far the two are apart, as places in `LINK_ORDER`.
    """
    for card, rate in rates.items():
        G.add_node(card, kind=fabric.NIC, forward=False)  # a lone machine has nobody behind it
        G.add_node(NETWORK, kind=fabric.SWITCH, forward=True)
        fabric.link(
            G, card, NETWORK, bandwidth=rate, latency=DEFAULTS["out"], tier=fabric.SCALE_OUT
        )
    for i, apart in enumerate(near):
        for card, far in zip(rates, apart, strict=True):
            if far == min(apart):
                rate = (
                    DEFAULTS["sockets"]
                    if LINK_ORDER[far] == "SYS"
                    else max(DEFAULTS["pcie"], rates[card])
                )
                _link(G, f"gpu{i}", card, rate, tier=fabric.SCALE_OUT)
    return bool(rates)


def equal_machines(G: Fabric, count: int) -> Fabric:
    """Fabric of `count` copies of a machine that NVIDIA's tools printed, cards on one network.

    Chips relay for those of their machine that share a card, or have none near. Raises
    TopologyError where the output names no cards.
    """
    if NETWORK not in G:
        raise TopologyError(str(G.graph["name"]), "it names no network cards that join machines")
    several: Fabric = nx.DiGraph(**G.graph)
    for k in range(count):
        names = {node: node if node == NETWORK else f"{k} {node}" for node in G}
        several.update(nx.relabel_nodes(G, names))
        for node, kind in G.nodes(data="kind"):
            several.nodes[names[node]]["forward"] = True
            if kind == fabric.ACCELERATOR:
                several.nodes[names[node]]["domain"] = k
    return check(several)


def _machine(name: str, chips: int) -> Fabric:
    G = fabric.fabric(name, source="printed by NVIDIA's tools on the machine itself")
    for i in range(chips):
        G.add_node(f"gpu{i}", kind=fabric.ACCELERATOR, forward=False, domain=0)
    return G


def _open(where: str, words: str) -> None:
    warnings.warn(f"{where}: {words}", stacklevel=2)


def _nvlinks(G: Fabric, joined: Mapping[Pair, int], rate: float) -> bool:
    """Join chips by NVLink; whether all are. `joined` counts links by pair, `rate` is of one."""
    chips = sum(kind == fabric.ACCELERATOR for _, kind in G.nodes(data="kind"))
    lists = [[n for pair, n in joined.items() if i in pair] for i in range(chips)]
    if max(map(sum, lists)) > _TABLE["most"]["links"]:
        # More than a chip has: every pair shows the same links, which lead into switches.
        _switched(G, [max(counts, default=0) for counts in lists], rate)
    else:
        for (i, j), count in joined.items():
            _link(G, f"gpu{i}", f"gpu{j}", rate, count)
    return len(joined) == chips * (chips - 1) // 2


def _switched(G: Fabric, counts: Sequence[int], rate: float) -> None:
    G.add_node("nvswitch", kind=fabric.SWITCH, forward=True)
    for i, count in enumerate(counts):
        if count:
            _link(G, f"gpu{i}", "nvswitch", rate, count)


def _link(
    G: Fabric, a: str, b: str, rate: float, count: int = 1, tier: str = fabric.SCALE_UP
) -> None:
    if not G.has_edge(a, b):
        fabric.link(G, a, b, bandwidth=rate, latency=DEFAULTS["latency"], count=count, tier=tier)


def _hosts(G: Fabric, paths: Mapping[Pair, str]) -> None:
    """The tree of PCI Express: chips on bridges, bridges on sockets, sockets joined."""
    chips = [node for node, kind in G.nodes(data="kind") if kind == fabric.ACCELERATOR]
    bridges = _parts(chips, paths, ("PIX", "PXB"))
    sockets = _parts(chips, paths, ("PIX", "PXB", "PHB", "NODE"))
    for i, socket in enumerate(sockets):
        G.add_node(f"cpu{i}", kind=fabric.HOST, forward=True)
        for k, part in enumerate(bridges):
            if not part <= socket:
                continue
            above = f"cpu{i}"
            if len(part) > 1:
                above = f"pcie{k}"
                G.add_node(above, kind=fabric.SWITCH, forward=True)
                _link(G, above, f"cpu{i}", DEFAULTS["pcie"])
            for chip in sorted(part):
                _link(G, chip, above, DEFAULTS["pcie"])
    _join_sockets(G, len(sockets))


def _join_sockets(G: Fabric, count: int) -> None:
    for i, j in combinations(range(count), 2):
        _link(G, f"cpu{i}", f"cpu{j}", DEFAULTS["sockets"])


def _parts(chips: Sequence[str], paths: Mapping[Pair, str], near: Iterable[str]) -> list[set[str]]:
    H: nx.Graph[str] = nx.Graph()
    H.add_nodes_from(chips)
    H.add_edges_from((chips[i], chips[j]) for (i, j), word in paths.items() if word in near)
    return [set(part) for part in nx.connected_components(H)]


@dataclass(frozen=True, eq=False)
class _Element:
    """An element of the XML, its place and what encloses it."""

    tag: str
    values: Mapping[str, str]
    at: str
    parent: Any


def _elements(text: str, where: str) -> list[_Element]:
    """All elements in their order; entities and broken XML are refused with their place."""
    parser = expat.ParserCreate()
    elements: list[_Element] = []
    around: list[_Element | None] = [None]

    def at() -> str:
        return f"line {parser.CurrentLineNumber}, column {parser.CurrentColumnNumber + 1}"

    def start(tag: str, values: dict[str, str]) -> None:
        elements.append(_Element(tag, values, at(), around[-1]))
        around.append(elements[-1])

    def doctype(*_: object) -> None:
        raise TopologyError(where, f"{at()}: a document type is not read")

    parser.StartElementHandler, parser.EndElementHandler = start, lambda _: around.pop()
    parser.StartDoctypeDeclHandler = doctype
    try:
        parser.Parse(text, True)
    except expat.ExpatError as error:
        words = expat.errors.messages[error.code]
        place = f"line {error.lineno}, column {error.offset + 1}"
        raise TopologyError(where, f"{place}: {words}; the XML is broken or cut off") from None
    return elements


def _of_xml(text: str, where: str, name: str) -> Fabric:
    elements = _elements(text, where)
    gpus = [element for element in elements if element.tag == "gpu"]
    if elements[0].tag != "system" or not gpus:
        fault = (
            f"{elements[0].at}: <system> with a <gpu> was expected, as NCCL_TOPO_DUMP_FILE writes"
        )
        raise TopologyError(where, fault)
    G, faults = _machine(name, len(gpus)), []
    buses = {str(gpu.parent.values.get("busid")): i for i, gpu in enumerate(gpus)}
    joined: dict[Pair, int] = {}
    switched = [0] * len(gpus)
    for i, gpu in enumerate(gpus):
        if gpu.values.get("sm") not in _TABLE["nvlink"]:
            listed = ", ".join(_TABLE["nvlink"])
            faults.append(f"{gpu.at}: sm {quote(gpu.values.get('sm'))}: known are {listed}")
        for item in elements:
            if item.tag != "nvlink" or item.parent is not gpu:
                continue
            target, count = str(item.values.get("target")), item.values.get("count", "")
            if not count.isdecimal() or not 0 < int(count) <= _TABLE["most"]["links"]:
                faults.append(f"{item.at}: count is {quote(count)}; expected 1 to 18 links")
            elif buses.get(target, i) != i:
                pair = (min(i, buses[target]), max(i, buses[target]))
                if joined.setdefault(pair, int(count)) != int(count):
                    faults.append(f"{item.at}: count is {count}, the way back has {joined[pair]}")
            elif str(item.values.get("tclass")).startswith(NVSWITCH):
                switched[i] += int(count)
            else:
                hint = suggest(target, list(buses))
                faults.append(f"{item.at}: target {quote(target)} is no other GPU; {hint}")
        if any(switched) and i == len(gpus) - 1 and not all(switched):
            lost = ", ".join(f"gpu{k}" for k, count in enumerate(switched) if not count)
            faults.append(f"{gpu.at}: {lost} has no links to the switches that the others have")
    if faults:
        raise TopologyError(where, faults)
    rate = _TABLE["nvlink"][gpus[0].values["sm"]]
    whole = _nvlinks(G, joined, rate)
    if all(switched):
        _switched(G, switched, rate)
    elif not whole:
        _pci_tree(G, gpus, where)
    nets = [item for item in elements if item.tag == "net"]
    _cards(G, [[_apart(gpu, net) for net in nets] for gpu in gpus], _speeds(nets, where))
    return check(G)


def _speeds(nets: Sequence[_Element], where: str) -> dict[str, float]:
    """Cards by name with their rates [byte/s]; the file has Mbit/s."""
    rates = {}
    for i, net in enumerate(nets):
        name, speed = net.values.get("name") or f"nic{i}", net.values.get("speed", "")
        if not speed.isdecimal() or not int(speed):
            _open(where, f"{name} names no speed: taken as 400 Gbit/s")
        else:
            rates[name] = int(speed) / 8 * 1e6
        rates.setdefault(name, DEFAULTS["card"])
    return rates


def _apart(gpu: _Element, net: _Element) -> int:
    around = {id(element) for element in _above(gpu)}
    common = next(element for element in _above(net) if id(element) in around)
    return LINK_ORDER.index({"pci": "PXB", "cpu": "NODE"}.get(common.tag, "SYS"))


def _above(element: _Element) -> Iterator[_Element]:
    while element.parent is not None:
        yield (element := element.parent)


def _pci_tree(G: Fabric, gpus: Sequence[_Element], where: str) -> None:
    """Add the PCI tree of the XML to a fabric: chips in bridges, bridges in sockets."""
    sockets: dict[int, str] = {}
    for i, gpu in enumerate(gpus):
        below, node = f"gpu{i}", gpu.parent
        while node is not None and node.tag == "pci":
            outer = node.parent
            inside = isinstance(outer, _Element) and outer.tag == "pci"
            above = f"pcie {outer.values.get('busid')}" if inside else _socket(sockets, outer)
            G.add_node(above, kind=fabric.SWITCH if inside else fabric.HOST, forward=True)
            _link(G, below, above, _lanes(node, where))
            below, node = above, outer
    _join_sockets(G, len(sockets))


def _socket(sockets: dict[int, str], cpu: _Element | None) -> str:
    return sockets.setdefault(id(cpu), f"cpu{len(sockets)}")


def _lanes(pci: _Element, where: str) -> float:
    """The rate of a device of PCI Express, by its transfers and lanes [byte/s]."""
    speed = re.match(r"[\d.]+", pci.values.get("link_speed", ""))
    lane = _TABLE["lane"].get(f"{float(speed.group()):.1f}") if speed else None
    width = pci.values.get("link_width", "")
    if lane is None or not width.isdecimal() or not int(width):
        _open(where, f"{pci.values.get('busid')} names no link speed: taken as 31.5 GB/s one way")
        return DEFAULTS["pcie"]
    return float(lane) * int(width)
