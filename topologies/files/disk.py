"""Reading and writing fabrics: the format of a file by its suffix; a file is whole or absent.

GraphML is for programs that draw or study graphs; it is written and never read. Its ids are texts
such as `0,1` and `spine`: who wants the fabric back writes JSON.
"""

import os
import re
import tempfile
import warnings
from collections.abc import Hashable
from pathlib import Path

import networkx as nx

from topologies.fabric.fabric import Attributes, Fabric, Node
from topologies.fabric.limits import TopologyError, suggest
from topologies.fabric.soundness import check, suspicions
from topologies.files import astra, description, links, nvidia
from topologies.files.located_yaml import document

# File suffixes of each output format.
SUFFIXES = {"json": (".json",), "graphml": (".graphml",), "astra": (".yml", ".yaml")}
NODE_LINK_PATTERN = re.compile(r'"(?:nodes|links|edges)"\s*:')
DESCRIPTION_PATTERN = re.compile(r'"(?:kind|machine|topology)"\s*:')
MAX_WARN = 5  # unlikely bandwidths that are each warned of
# Maximum size of an input file by suffix [byte].
READ = {".yaml": 2**20, ".yml": 2**20, ".json": 256 * 2**20, ".xml": 2**22, ".txt": 2**20}


def read(path: str | os.PathLike[str]) -> Fabric:
    """The fabric that a file describes, checked.

    `.json` lists nodes and links; `.yaml` and `.yml` say how the fabric is generated (JSON is YAML,
    and may say so too), or are in the format of the analytical network of ASTRA-sim if they hold
    its keys; `.txt` is what `nvidia-smi topo -m` prints, `.xml` NCCL's topology. Bandwidths that
    look like a slip of units are warned of. Raises TopologyError, listing everything that is wrong,
    with its line and column or its record.
    """
    file = Path(path)
    where = str(path)
    text = _text(file, where)
    if file.suffix.lower() == ".json" and (
        NODE_LINK_PATTERN.search(text) or not DESCRIPTION_PATTERN.search(text)
    ):
        G = links.parse_fabric(text, where, file.stem)
    elif file.suffix.lower() in (".xml", ".txt"):
        G = nvidia.machine_fabric(text, where, file.stem)
    else:
        parsed = document(text)
        if parsed.root is None:
            raise TopologyError(
                where, parsed.problems or "line 1, column 1: the file holds nothing"
            )
        form = astra if astra.is_astra(parsed.root) else description
        G = form.parse_fabric(parsed, where, file.stem)
    odd = suspicions(G)
    more = [f"{len(odd) - MAX_WARN} more unlikely bandwidths"] if len(odd) > MAX_WARN else []
    for line in (*odd[:MAX_WARN], *more):
        warnings.warn(f"{where}: {line}", stacklevel=2)
    return G


def write(G: Fabric, path: str | os.PathLike[str], form: str | None = None) -> None:
    """Write a sound fabric to a file, all of it or nothing.

    Raises TopologyError when the fabric is unsound or the form cannot express it, the suffix says
    no form or another one, or the file cannot be written.

    Args:
        form: `json` (which `read` turns into the same fabric), `graphml` (for other programs) or
            `astra` (what ASTRA-sim can express of it); what the suffix of the file says if not
            given.
    """
    file = Path(path)
    where = str(path)
    suffix = file.suffix.lower()
    if form is None:
        form = next((name for name, suffixes in SUFFIXES.items() if suffix in suffixes), None)
    if form is None:
        suffixes = ", ".join(suffix for each in SUFFIXES.values() for suffix in each)
        raise TopologyError(where, f"a file that ends in one of {suffixes} was expected")
    if form not in SUFFIXES:
        raise TopologyError(where, f"unknown form {form!r}; {suggest(form, SUFFIXES)}")
    if suffix not in SUFFIXES[form]:
        ends = " or ".join(SUFFIXES[form])
        raise TopologyError(where, f"a file of the form {form!r} ends in {ends}")
    written = {"json": links.format_fabric, "graphml": format_fabric, "astra": astra.format_fabric}[
        form
    ](check(G))
    _replace(file, where, written)


def _text(file: Path, where: str) -> str:
    suffix = file.suffix.lower()
    try:
        if file.is_dir():
            raise TopologyError(where, "it is a directory; a file was expected")
        if suffix not in READ:
            hint = "; GraphML is written and not read" if suffix == ".graphml" else ""
            fault = f"a file that ends in one of {', '.join(READ)} was expected{hint}"
            raise TopologyError(where, fault)
        if not file.exists():
            raise TopologyError(where, f"no such file{_near(file)}")
        if not file.is_file():
            raise TopologyError(where, "it is no regular file")
        size = file.stat().st_size
        if size > READ[suffix]:
            raise TopologyError(where, f"it has {size} bytes; at most {READ[suffix]} are read")
        data = file.read_bytes()
    except (OSError, ValueError) as error:
        if isinstance(error, TopologyError):
            raise
        raise TopologyError(where, f"it cannot be read: {_reason(error)}") from None
    try:
        text = data.decode("utf-8").removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise TopologyError(
            where, f"line {line}: byte {error.start} (0x{data[error.start]:02x}) is not UTF-8"
        ) from None
    if not text.strip():
        raise TopologyError(where, "the file is empty")
    return text


def _near(file: Path) -> str:
    if not file.parent.is_dir():
        return f"; there is no directory {str(file.parent)!r} either"
    beside = (other for other in file.parent.iterdir() if other.suffix.lower() in READ)
    names = [other.name for other in beside if other.is_file()]
    close = suggest(file.name, names)
    return f"; {close}" if close.startswith("did you mean") else ""


def _replace(file: Path, where: str, text: str) -> None:
    """Write a temporary file and rename it to `file`, so that no reader meets half of it."""
    beside: str | None = None
    try:
        file = file.resolve()  # a link stays a link
        handle, beside = tempfile.mkstemp(dir=file.parent, prefix=f".{file.name[:50]}.")
        with os.fdopen(handle, "w", encoding="utf-8", newline="\n") as out:
            out.write(text)
        os.chmod(beside, _mode(file))
        os.replace(beside, file)
        beside = None
    except (OSError, ValueError) as error:
        raise TopologyError(where, f"it cannot be written: {_reason(error)}") from error
    finally:
        if beside is not None:
            os.unlink(beside)


def _mode(file: Path) -> int:
    if file.exists():
        return file.stat().st_mode & 0o777
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask


def _reason(error: Exception) -> str:
    return (getattr(error, "strerror", None) or str(error)).lower()


def format_fabric(G: Fabric) -> str:
    """`G` as GraphML with typed attributes.

    Raises TopologyError when two ids would be the same text.
    """
    names = {node: _readable(node) for node in G}
    first: dict[str, Hashable] = {}
    faults = [
        f"node {node!r}: its id would be {name!r}, as that of {first[name]!r}"
        for node, name in names.items()
        if first.setdefault(name, node) != node
    ]
    if faults:
        raise TopologyError(f"fabric {G.graph.get('name')!r}", faults)
    H: Fabric = nx.DiGraph(**_plain(G.graph))
    for node, data in G.nodes(data=True):
        H.add_node(names[node], **_plain(data))
    for u, v, data in G.edges(data=True):
        H.add_edge(names[u], names[v], **_plain(data))
    return "\n".join(nx.generate_graphml(H, named_key_ids=True)) + "\n"


def _plain(data: Attributes) -> Attributes:
    return {key: _typed(value) for key, value in data.items() if value is not None}


def _typed(value: object) -> bool | int | float | str:
    plain = links.tuples_to_lists(value)
    return plain if isinstance(plain, bool | int | float) else _readable(value)


def _readable(label: Node) -> str:
    if isinstance(label, tuple):
        return ",".join(
            f"({_readable(part)})" if isinstance(part, tuple) else _readable(part) for part in label
        )
    # XML cannot hold control characters, not even escaped.
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in str(label))
