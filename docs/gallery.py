"""Write docs/gallery/*.png, the pictures of docs/gallery.md: every page of `partly` on small simulated data.

python -m docs.gallery    needs playwright and Chromium; takes some minutes
"""

from __future__ import annotations

import csv
import io
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

import partly
from partly.data.formats.digits import to_images

FOLDER = Path(__file__).parent / "gallery"
VIEWPORT = {"width": 1000, "height": 700}
MILLISECONDS = 120_000  # for a page, on a machine that is busy
COLORS = 96  # of a picture, which keeps it small
ITEMS, TRAINING_SHARE = 300, 0.2
NAMES = ("even", "prime", "has a loop")
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
PASSWORD = "a long password"
GUIDELINES = '"has a loop" = "A closed curve, as in 0, 6, 8 and 9."\nprime = "2, 3, 5 or 7."\n'

PAGES = {  # picture -> file that the commands write
    "report": "demo/report.html",
    "demo": "demo/summary.html",
    "comparison": "compared/compare.html",
    "study": "studied/study.html",
    "rounds": "rounds/report.html",
    "completion": "preview.html",
    "evaluation": "evaluation.html",
}
COMMANDS = (
    "demo --out demo --items 300",
    "compare features.csv --labels truth.csv --methods auto,em,label-smoothing --scenarios single-positive"
    " --heads linear --seeds 3 --workers 1 --out compared",
    "study features.csv --labels truth.csv --head linear --seeds 2 --workers 1"
    " --scenarios uniform,noisy --shares 0.3,0.6,1 --out studied",
    "refine features.csv --labels truth.csv --scenario uniform:0.4 --rounds 4 -n 20 --method bce --head linear"
    " --random-control --run rounds",
    "complete features.csv --labels labels.csv --method bce --head linear --dry-run --preview preview.html",
    "evaluate first.csv second.csv --labels labels.csv -o evaluation.html",
)


def main() -> None:
    from playwright.sync_api import sync_playwright

    FOLDER.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as name, sync_playwright() as started:
        folder = Path(name)
        write_data(folder)
        for words in COMMANDS:
            subprocess.run(
                [sys.executable, "-m", "partly", *words.split(), "--quiet"],
                cwd=folder,
                check=True,
                stdout=subprocess.DEVNULL,
            )
        chromium = shutil.which("chromium") or shutil.which("google-chrome")
        browser: Any = started.chromium.launch(executable_path=chromium, args=FLAGS)
        page = browser.new_page(viewport=VIEWPORT)
        for title, path in PAGES.items():
            page.goto((folder / path).as_uri())
            photograph(page, title)
        with served(folder) as link:
            photograph_annotation(browser, link)
        browser.close()


def write_data(folder: Path) -> None:
    """Write digits as features, images, complete and partly known labels, and scores of two models."""
    data = partly.read("digits")
    x = data.items[:ITEMS].take(slice(None)).numpy()
    ids = [f"{number:03}.png" for number in range(ITEMS)]
    columns = [data.labels.names.index(name) for name in NAMES]
    truth = partly.Labels.from_ternary(data.labels.rows(slice(ITEMS))[:, columns], names=NAMES, ids=ids)
    write_table(folder / "features.csv", [f"f{j}" for j in range(x.shape[1])], ids, x)
    partly.write(truth, folder / "truth.csv")
    rng = np.random.default_rng(0)
    known = rng.random(truth.shape) < 0.3
    observed = partly.Labels.from_ternary(np.where(known, truth.ternary(), 0), names=NAMES, ids=ids)
    partly.write(observed, folder / "labels.csv")
    few = np.where(rng.random(truth.shape) < TRAINING_SHARE, truth.ternary(), 0)
    partly.write(partly.Labels.from_ternary(few, names=NAMES, ids=ids), folder / "few.csv")
    for name, gap in (("first", 0.35), ("second", 0.25)):
        scores = np.clip(0.35 + gap * (truth.ternary() > 0) + rng.normal(0, 0.15, truth.shape), 0, 1)
        write_table(folder / f"{name}.csv", list(NAMES), ids, scores)
    (folder / "photos").mkdir()
    for name, pixels in zip(ids, to_images(x, 12), strict=True):
        Image.fromarray(pixels).save(folder / "photos" / name)
    (folder / "guidelines.toml").write_text(GUIDELINES)


def write_table(path: Path, names: list[str], ids: list[str], values: Any) -> None:
    with path.open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["item", *names])
        rows.writerows([name, *row] for name, row in zip(ids, np.round(values, 4), strict=True))


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """Serve the annotation pages; yield the invitation of the first admin."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    words = (
        "annotate features.csv --labels few.csv --ledger labels.db --show photos --guidelines guidelines.toml "
        f"--votes 2 -n 12 --accounts --method bce --port {port}"
    )
    process = subprocess.Popen(
        [sys.executable, "-m", "partly", *words.split()], cwd=folder, stderr=subprocess.PIPE, text=True
    )
    try:
        assert process.stderr is not None
        yield next(found[1] for line in process.stderr if (found := re.search(r"Open (\S+)", line)))
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)


def photograph_annotation(browser: Any, link: str) -> None:
    """Two people join and answer; every page is photographed."""
    from playwright.sync_api import expect

    address = link.partition("/join")[0]
    lead, other = (browser.new_context(viewport=VIEWPORT).new_page() for _ in range(2))
    for person in (lead, other):
        person.set_default_timeout(MILLISECONDS)
    lead.goto(f"{address}/log-in")
    photograph(lead, "sign-in")
    join(lead, link, "anna")
    lead.goto(f"{address}/people")
    lead.get_by_role("button", name="Create link").click()
    expect(lead.locator("#invitation")).to_have_value(re.compile("token="), timeout=MILLISECONDS)
    join(other, lead.locator("#invitation").input_value(), "ben")
    lead.goto(f"{address}/label")
    answer(lead, "yn")
    photograph(lead, "by-label")
    for _ in range(2):  # screens, answered otherwise
        other.reload()
        other.locator(".question").first.wait_for(timeout=MILLISECONDS)
        answer(other, "n" * other.locator(".question").count())
    pages = ("item", "overview", "people", "disagreements", "account")
    for title, path in zip(("by-item", *pages[1:]), pages, strict=True):
        lead.goto(f"{address}/{path}")
        lead.wait_for_load_state("networkidle")
        photograph(lead, title)


def join(page: Any, link: str, name: str) -> None:
    page.goto(link)
    page.fill("input[name=name]", name)
    page.fill("input[name=password]", PASSWORD)
    page.click("main form button")
    page.wait_for_url("**/label")


def answer(page: Any, keys: str) -> None:
    page.locator(".question").first.wait_for(timeout=MILLISECONDS)
    for count, key in enumerate(keys, 1):
        page.keyboard.press(key)
        page.locator(".question[data-saved]").nth(count - 1).wait_for()


def photograph(page: Any, title: str) -> None:
    picture = Image.open(io.BytesIO(page.screenshot())).convert("RGB")
    picture.quantize(COLORS, dither=Image.Dither.NONE).save(FOLDER / f"{title}.png", optimize=True)
    print(title)


if __name__ == "__main__":
    main()
