"""Generate docs/methods.md, a page and a figure for each method in docs/methods/, docs/recipes.md, and the layers in
docs/architecture.md.

python -m docs.generate            write them
python -m docs.generate --check    name stale ones, and fail
"""

from __future__ import annotations

import ast
import inspect
import json
import sys
import textwrap
from pathlib import Path
from statistics import median

from evidence import gap_map, method_picture
from evidence.claims.cells import read_lines
from partly import methods
from partly.co_training import TwoNetworks
from partly.comparison import groups
from partly.comparison.groups import Group, Row
from partly.comparison.plan import read_experiment
from partly.comparison.protocol import PROTOCOL
from partly.engine import presets
from partly.items import as_items
from partly.method import Task
from partly.methods import MethodInfo
from partly.registry import sections

ROOT = Path(__file__).resolve().parent.parent
INDEX = """\
# Methods

For users who choose a method. It decides how unknown entries are used in training. On features the default, [`auto`](methods/auto.md), chooses for you.

| what is known | start with | then compare with |
|---|---|---|
| yes and no, missing at random | [`auto`](methods/auto.md) | [`bce`](methods/bce.md), [`per-label`](methods/per-label.md), [`curriculum`](methods/curriculum.md) |
| only yes: tags, one label per item | [`auto`](methods/auto.md) | [`label-smoothing`](methods/label-smoothing.md), [`em`](methods/em.md), [`role`](methods/role.md) |
| only yes, and a network trained end to end on images | [`em`](methods/em.md) | [`large-loss`](methods/large-loss.md), [`splc`](methods/splc.md), [`cls`](methods/cls.md) |
| coarse labels, and a few complete items | [`refine`](methods/refine.md) | [`auto`](methods/auto.md), [`one-class`](methods/one-class.md), [`leml`](methods/leml.md) |
| the expected number of yes per item | [`epr`](methods/epr.md) | [`role`](methods/role.md) |

To find the best method for *your* data, [compare](compare.md) them:

```
partly compare features.csv --labels labels.csv --methods auto,bce,per-label --seeds 5
```

In formulas, x is the logit of an entry, p = 1 / (1 + exp(-x)) its probability, and CE(p, t) = -t log p - (1 - t) log(1 - p). The loss is the mean over the entries of a batch.

**mAP**: difference in points of mAP from the naive method (`assume-negative`, else `bce`), median over the comparisons in [results](results.md), with their number in
brackets. **time**: relative to the naive method. A method without numbers has no comparison with a tuned baseline.

| method | what it does | mAP | time |
|---|---|---:|---:|
"""  # noqa: E501

PROSE = ("When to use", "Reference", "Known negatives", "Differences from the paper", "Defaults")
Entry = tuple[str, Group, Row]  # name of a results page, a comparison on it, and the method's row in it


def pages(root: Path = ROOT) -> dict[str, bytes]:
    """Return the generated content for each path below docs/."""
    comparisons = _read_comparisons(root)
    watched = {line["method"]: line for line in json.loads((root / "evidence/results/watched.json").read_text("utf-8"))}
    if new := methods.discover().keys() - watched.keys():
        sys.exit(f"Not watched yet: {', '.join(sorted(new))}. Run python -m evidence.watched {' '.join(sorted(new))}")
    contents = {"recipes.md": recipes().encode()}
    rows = []
    for name, info in methods.discover().items():
        ours = _select_rows(name, comparisons)
        contents[f"methods/{name}.md"] = page(info, ours).encode()
        contents[f"methods/{name}.svg"] = method_picture.picture(name, watched[name], watched["assume-negative"])
        rows.append(
            f"| [`{name}`](methods/{name}.md) | {info.summary} | {_gain_over_naive(ours)} | {_relative_time(ours)} |\n"
        )
    contents["methods.md"] = (INDEX + "".join(rows)).encode()
    contents["architecture.md"] = architecture(root).encode()
    return contents


def architecture(root: Path) -> str:
    """Return docs/architecture.md with the layers that tests/test_imports.py enforces, the highest first."""
    tree = ast.parse((root / "tests/test_imports.py").read_text("utf-8"))
    (layers,) = (
        ast.literal_eval(node.value)
        for node in tree.body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "LAYERS"
    )
    diagram = "\n".join("   ".join(sorted(layer)) for layer in reversed(layers) if layer != {"__main__"})
    begin, end = "from tests/test_imports.py -->\n", "<!-- end of layers -->"
    before, _, rest = (root / "docs/architecture.md").read_text("utf-8").partition(begin)
    return f"{before}{begin}```text\n{diagram}\n```\n{end}{rest.partition(end)[2]}"


def _read_comparisons(root: Path) -> list[tuple[str, Group]]:
    """Return the comparisons whose baseline is as good as a tuned one, each with the name of its results page."""
    comparisons = []
    for path in sorted((root / "evidence/results").glob("*.jsonl")):
        ours, asks = read_lines(path), read_experiment(root / f"evidence/experiments/{path.stem}.toml").queries
        if ours and ours[0]["protocol"] == PROTOCOL and not asks:
            comparisons += [(path.stem, block) for block in groups.gather(ours) if not block.reason_withheld]
    return comparisons


def _select_rows(name: str, comparisons: list[tuple[str, Group]]) -> list[Entry]:
    """Return the comparisons of a method at its defaults; for `per-label`, also those of tuned scikit-learn."""
    wanted = {name, *(text for text in gap_map.REFERENCES if text.startswith(f"{name}["))}
    return [
        (page, block, row)
        for page, block in comparisons
        for row in block.rows
        if row.name in wanted and row.kind != "full" and row.mean()
    ]


def _naive(block: Group) -> Row | None:
    """Return the row that treats unknown as no, else the one that ignores it."""
    return block.naive or next((row for row in block.rows if row.kind == "naive"), None)


def _gain_over_naive(comparisons: list[Entry]) -> str:
    pairs = [
        (row.mean(), naive.mean()) for _, block, row in comparisons if (naive := _naive(block)) and naive is not row
    ]
    points = [100 * (own.value - other.value) for own, other in pairs if own and other]
    return f"{median(points):+.1f} ({len(points)})" if points else ""


def _relative_time(comparisons: list[Entry]) -> str:
    ratios = [row.seconds / naive.seconds for _, block, row in comparisons if (naive := _naive(block))]
    return f"{median(ratios):.1f} x" if ratios else ""


# ---------------------------------------------------------------- the page of a method


def page(info: MethodInfo, comparisons: list[Entry]) -> str:
    words = [_section(heading, text) for heading, text in sections(info.text).items()]
    after = 1 + list(sections(info.text)).index("Formula")
    parts = [f"# {info.name}", info.summary, *words[:after]]
    parts += [f"```\npartly train features.csv --labels labels.csv --method {info.name} --run runs/mine\n```"]
    parts += [*words[after:], "## Cost", _cost(info, comparisons), *_settings(info)]
    parts += ["## On digits", f"![Training signal or schedule, and hidden yes found by epoch]({info.name}.svg)"]
    parts += [
        method_picture.words(info.name),
        "## Results",
        _evidence(comparisons),
        "All methods: [methods](../methods.md).",
    ]
    return "\n\n".join(parts) + "\n"


def _section(heading: str, text: str) -> str:
    """Return a section of a docstring as Markdown: prose as it is, formulas and tables as a code block."""
    if heading in PROSE:
        return f"**{heading}:** {text}"
    return f"**{heading}:**\n\n{textwrap.indent(text, '    ')}"


def _cost(info: MethodInfo, comparisons: list[Entry]) -> str:
    networks = "Two networks. " if issubclass(info.kind, TwoNetworks) else ""
    kept, _ = info.kind.memory(Task(as_items([[0.0]]), 1), info.defaults())  # one item, one label
    memory = f"{kept} bytes of memory per entry of the training items." if kept else "No memory per entry."
    time = (
        f" Training time: {ratio[:-2]} times that of the naive method (median)."
        if (ratio := _relative_time(comparisons))
        else ""
    )
    unknown = " The method also learns from items without any known entry." if info.about.learns_from_unknown else ""
    return f"{networks}{memory}{time}{unknown}"


def _settings(info: MethodInfo) -> list[str]:
    if not info.settings:
        return []
    rows = [
        f"| `{p.name}` | {inspect.formatannotation(p.annotation).replace('|', 'or')} | `{p.default}` |"
        for p in info.settings.values()
    ]
    return ["## Settings", "\n".join(["| setting | type | default |", "|---|---|---|", *rows])]


def _evidence(comparisons: list[Entry]) -> str:
    if not comparisons:
        return "The [results](../results.md) hold no comparison of this method with a tuned baseline yet."
    head = [
        "Test mAP, mean over seeds. Naive: the method that treats unknown as no, else the one that ignores it.",
        "",
        "| comparison | mAP | naive | all labels | gap closed | seeds |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    return "\n".join([*head, *(_line(*entry) for entry in comparisons)])


def _line(page: str, block: Group, row: Row) -> str:
    naive, gap = _naive(block), "" if row.gap is None else f"{100 * row.gap:.0f} %"
    plain = f"{_map(naive)} (`{naive.name}`)" if naive else ""
    title = f"[{block.title}, {block.scenario}](../results/{page}.md)"
    return f"| {title} | {_map(row)} | {plain} | {_map(block.full)} | {gap} | {len(row.scores())} |"


def _map(row: Row | None) -> str:
    score = row.mean() if row else None
    return f"{score.value:.3f}" if score else ""


# ---------------------------------------------------------------- recipes


def recipes() -> str:
    parts = [
        "# Recipes of the papers",
        "",
        "For researchers who repeat a paper. `Classifier(recipe=...)` and `partly train --recipe durand2019` set the",
        "options that you leave open as the paper does ([options](training-options.md#recipes-of-the-papers)).",
        "Generated by `make docs` from the files in `src/partly/engine/presets/`.",
        "",
    ]
    for name, preset in presets.discover().items():
        parts += [f"## {name}", "", preset.paper, "", "| option | value | place in the paper |", "|---|---|---|"]
        for key, source in preset.sources.items():
            outer, _, inner = key.partition(".")
            value = preset.values[outer][inner] if inner else preset.values[outer]
            parts += [f"| `{key}` | `{value}` | {source} |"]
        parts += ["", "Stated in the paper, without an option in partly:", ""]
        parts += [f"- {key.replace('_', ' ')}: {words}" for key, words in preset.beside.items()]
        parts += [""]
    return "\n".join(parts)


def main(root: Path = ROOT, check: bool = False) -> int:
    contents, docs = pages(root), root / "docs"
    there = {f"methods/{path.name}" for path in (docs / "methods").glob("*")}
    old = [name for name, text in contents.items() if not (docs / name).exists() or (docs / name).read_bytes() != text]
    old += sorted(there - contents.keys())
    if check:
        print("\n".join(f"docs/{name} is stale; `make docs` writes it." for name in old), file=sys.stderr)
        return int(bool(old))
    (docs / "methods").mkdir(exist_ok=True)
    for name in old:
        if name in contents:
            (docs / name).write_bytes(contents[name])
        else:
            (docs / name).unlink()
    return 0


if __name__ == "__main__":
    sys.exit(main(check="--check" in sys.argv[1:]))
