"""Peak memory of reading large label files: a long table and a COCO file of about 200 MB each, in a process of its own.

python benchmarks/formats.py [megabytes]
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

READ = """
import resource, sys, time
import partly.data as data
from partly import Labels
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
start = time.perf_counter()
labels = data.read_labels(sys.argv[1], absent="unknown")
took = time.perf_counter() - start
after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(f"{labels!r}: {took:.0f} s, {(after - before) / 1024:.0f} MB above the {before / 1024:.0f} MB of the imports")
"""


def long_table(path: Path, size: int) -> None:
    draw = random.Random(0)
    with path.open("w") as file:
        file.write("item,label,value\n")
        item = 0
        while file.tell() < size:
            rows = (f"images/{item:09d}.jpg,label {j},{draw.getrandbits(1)}\n" for j in draw.sample(range(500), 20))
            file.write("".join(rows))
            item += 1


def coco_file(path: Path, size: int) -> None:
    """With outlines of objects, as the real one has: they are most of it, and are not kept."""
    draw = random.Random(0)
    categories = [{"id": j, "name": f"label {j}"} for j in range(80)]
    images = size // 5000
    with path.open("w") as file:
        listed = [{"id": i, "file_name": f"{i:012d}.jpg", "width": 640, "height": 480} for i in range(images)]
        file.write(f'{{"info": {{}}, "images": {json.dumps(listed)}, "annotations": [')
        number = 0
        while file.tell() < size:
            outline = [round(draw.uniform(0, 640), 2) for _ in range(60)]
            one = {"id": number, "image_id": draw.randrange(images), "category_id": draw.randrange(80)}
            file.write(("," if number else "") + json.dumps(one | {"segmentation": [outline], "iscrowd": 0}))
            number += 1
        file.write(f'], "categories": {json.dumps(categories)}}}')


def main() -> None:
    size = int(sys.argv[1] if len(sys.argv) > 1 else 200) << 20
    with tempfile.TemporaryDirectory() as folder:
        for name, make in (("long.csv", long_table), ("coco.json", coco_file)):
            path = Path(folder) / name
            make(path, size)
            started = time.strftime("%H:%M")
            told = subprocess.run([sys.executable, "-c", READ, str(path)], check=True, capture_output=True, text=True)
            print(f"{started} {name}, {path.stat().st_size >> 20} MB: {told.stdout.strip()}", flush=True)


if __name__ == "__main__":
    main()
