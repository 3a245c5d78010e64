"""Write the generated parts of the documentation: docs/methods.md with a page and a picture for each method in
docs/methods/, docs/recipes.md, and the layers in docs/architecture.md.

python -m docs.generate            write them
python -m docs.generate --check    say which of them are not what the files and the result lines give, and fail
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
from partly import methods
from partly.co_training import TwoNetworks
from partly.comparison import groups, results
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

A method decides how unknown entries are used in training. On features the default, [`auto`](methods/auto.md), chooses for you.

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
Race = tuple[str, Group, Row]  # the page of results, the race, and the row of the method in it


def pages(root: Path = ROOT) -> dict[str, bytes]:
    """Path below docs/ -> what is to be there."""
    races = _races(root)
    watched = {line["method"]: line for line in json.loads((root / "evidence/results/watched.json").read_text("utf-8"))}
    if new := methods.discover().keys() - watched.keys():
        sys.exit(f"Not watched yet: {', '.join(sorted(new))}. Run python -m evidence.watched {' '.join(sorted(new))}")
    made = {"recipes.md": recipes().encode()}
    rows = []
    for name, info in methods.discover().items():
        ours = _of(name, races)
        made[f"methods/{name}.md"] = page(info, ours).encode()
        made[f"methods/{name}.svg"] = method_picture.picture(name, watched[name], watched["assume-negative"])
        rows.append(f"| [`{name}`](methods/{name}.md) | {info.summary} | {_above(ours)} | {_time(ours)} |\n")
    made["methods.md"] = (INDEX + "".join(rows)).encode()
    made["architecture.md"] = architecture(root).encode()
    return made


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


def _races(root: Path) -> list[tuple[str, Group]]:
    """The races of the result lines whose baseline is at its best, each with the name of its page."""
    found = []
    for path in sorted((root / "evidence/results").glob("*.jsonl")):
        ours, asks = results.read(path), read_experiment(root / f"evidence/experiments/{path.stem}.toml").queries
        if ours and ours[0]["protocol"] == PROTOCOL and not asks:
            found += [(path.stem, block) for block in groups.gather(ours) if not block.reason_withheld]
    return found


def _of(name: str, races: list[tuple[str, Group]]) -> list[Race]:
    """The races of a method, at its defaults; of tuned scikit-learn, the yardstick, for `per-label`."""
    wanted = {name, *(text for text in gap_map.REFERENCES if text.startswith(f"{name}["))}
    return [
        (page, block, row)
        for page, block in races
        for row in block.rows
        if row.name in wanted and row.kind != "full" and row.mean()
    ]


def _naive(block: Group) -> Row | None:
    """Who takes unknown for no, else who ignores it."""
    return block.naive or next((row for row in block.rows if row.kind == "naive"), None)


def _above(races: list[Race]) -> str:
    pairs = [(row.mean(), naive.mean()) for _, block, row in races if (naive := _naive(block)) and naive is not row]
    points = [100 * (own.value - other.value) for own, other in pairs if own and other]
    return f"{median(points):+.1f} ({len(points)})" if points else ""


def _time(races: list[Race]) -> str:
    ratios = [row.seconds / naive.seconds for _, block, row in races if (naive := _naive(block))]
    return f"{median(ratios):.1f} x" if ratios else ""


# ---------------------------------------------------------------- the page of a method


def page(info: MethodInfo, races: list[Race]) -> str:
    words = [_section(heading, text) for heading, text in sections(info.text).items()]
    after = 1 + list(sections(info.text)).index("Formula")
    parts = [f"# {info.name}", info.summary, *words[:after]]
    parts += [f"![What it learns from an entry, or plans, and hidden yes found over the epochs]({info.name}.svg)"]
    parts += [f"```\npartly train features.csv --labels labels.csv --method {info.name} --run runs/mine\n```"]
    parts += [*words[after:], "## Cost", _cost(info, races), *_settings(info), "## Evidence", _evidence(races)]
    parts += ["## The picture", method_picture.words(info.name), "All methods: [methods](../methods.md)."]
    return "\n\n".join(parts) + "\n"


def _section(heading: str, text: str) -> str:
    """Return a section of a docstring as Markdown: prose as it is, formulas and tables as a code block."""
    if heading in PROSE:
        return f"**{heading}:** {text}"
    return f"**{heading}:**\n\n{textwrap.indent(text, '    ')}"


def _cost(info: MethodInfo, races: list[Race]) -> str:
    networks = "Two networks. " if issubclass(info.kind, TwoNetworks) else ""
    kept, _ = info.kind.memory(Task(as_items([[0.0]]), 1), info.defaults())  # one item, one label
    memory = f"{kept} bytes for every entry of the training items." if kept else "Nothing is kept for single entries."
    time = f" {_time(races)[:-2]} times as long as the naive row of its races (median)." if _time(races) else ""
    unknown = " It also learns from items without any known entry." if info.about.learns_from_unknown else ""
    return f"{networks}{memory}{time}{unknown}"


def _settings(info: MethodInfo) -> list[str]:
    if not info.settings:
        return []
    rows = [
        f"| `{p.name}` | {inspect.formatannotation(p.annotation).replace('|', 'or')} | `{p.default}` |"
        for p in info.settings.values()
    ]
    return ["## Settings", "\n".join(["| setting | type | default |", "|---|---|---|", *rows])]


def _evidence(races: list[Race]) -> str:
    if not races:
        return "No race of it whose baseline is at its best is among the [results](../results.md) yet."
    head = ["| race | mAP | naive | all labels | gap closed | seeds |", "|---|---:|---:|---:|---:|---:|"]
    return "\n".join([*head, *(_line(*race) for race in races)])


def _line(page: str, block: Group, row: Row) -> str:
    naive, gap = _naive(block), "" if row.gap is None else f"{100 * row.gap:.0f} %"
    plain = f"{_map(naive)} (`{naive.name}`)" if naive else ""
    race = f"[{block.title}, {block.scenario}](../results/{page}.md)"
    return f"| {race} | {_map(row)} | {plain} | {_map(block.full)} | {gap} | {len(row.scores())} |"


def _map(row: Row | None) -> str:
    found = row.mean() if row else None
    return f"{found.value:.3f}" if found else ""


# ---------------------------------------------------------------- recipes


def recipes() -> str:
    parts = [
        "# Recipes of the papers",
        "",
        "Generated by `make docs` from the files in `src/partly/engine/presets/`.",
        "",
    ]
    parts += [
        '`Classifier(recipe="durand2019")` and `partly train --recipe durand2019` set the options that you leave open;'
    ]
    parts += ["see [training options](training-options.md#recipes-of-the-papers).", ""]
    for name, preset in presets.discover().items():
        parts += [f"## {name}", "", preset.paper, "", "| option | value | place in the paper |", "|---|---|---|"]
        for key, source in preset.sources.items():
            outer, _, inner = key.partition(".")
            value = preset.values[outer][inner] if inner else preset.values[outer]
            parts += [f"| `{key}` | `{value}` | {source} |"]
        parts += ["", "Stated in the paper without an option here:", ""]
        parts += [f"- {key.replace('_', ' ')}: {words}" for key, words in preset.beside.items()]
        parts += [""]
    return "\n".join(parts)


def main(root: Path = ROOT, check: bool = False) -> int:
    made, docs = pages(root), root / "docs"
    there = {f"methods/{path.name}" for path in (docs / "methods").glob("*")}
    old = [name for name, text in made.items() if not (docs / name).exists() or (docs / name).read_bytes() != text]
    old += sorted(there - made.keys())
    if check:
        print("\n".join(f"docs/{name} is stale; `make docs` writes it." for name in old), file=sys.stderr)
        return int(bool(old))
    (docs / "methods").mkdir(exist_ok=True)
    for name in old:
        if name in made:
            (docs / name).write_bytes(made[name])
        else:
            (docs / name).unlink()
    return 0


if __name__ == "__main__":
    sys.exit(main(check="--check" in sys.argv[1:]))
