"use strict";
/* What a page can do beyond being read: sort its tables, say the values in its pictures, and try other thresholds. All
   that matters is in the page without it. Text from the data is only ever set as text. */
(() => {
  const all = (what, where = document) => [...where.querySelectorAll(what)];

  /* ---- tables: a click on a heading sorts by its column, the next one turns the order round */

  const worth = (row, column, numeric) => {
    const cell = row.cells[column];
    const data = cell.querySelector("data");
    const text = data ? data.value : cell.textContent.trim();
    return numeric ? parseFloat(text.replaceAll(",", "")) : text;
  };

  const sort = (table, head) => {
    const numeric = head.classList.contains("number");
    const down = head.ariaSort ? head.ariaSort === "ascending" : numeric;
    const rows = [...table.tBodies[0].rows].map((row) => [worth(row, head.cellIndex, numeric), row]);
    const order = numeric ? (a, b) => a - b : (a, b) => a.localeCompare(b, undefined, { numeric: true });
    const missing = (value) => numeric ? Number.isNaN(value) : value === "";
    rows.sort(([a], [b]) => missing(a) - missing(b) || (missing(a) ? 0 : down ? order(b, a) : order(a, b)));
    for (const other of table.tHead.rows[0].cells) other.ariaSort = null;
    head.ariaSort = down ? "descending" : "ascending";
    table.tBodies[0].append(...rows.map(([, row]) => row));
  };

  for (const table of all("table.sortable")) {
    for (const head of table.tHead.rows[0].cells) {
      if (head.classList.contains("unsorted")) continue;
      const button = document.createElement("button");
      button.append(...head.childNodes);
      button.addEventListener("click", () => sort(table, head));
      head.append(button);
    }
  }

  for (const part of all(".wide")) {
    if (part.scrollWidth > part.clientWidth) part.tabIndex = 0; /* so that arrow keys scroll it */
  }

  /* ---- pictures: the point next to the pointer says what it is */

  const REACH = 30; /* pixels */
  const bubble = document.body.appendChild(document.createElement("div"));
  bubble.className = "bubble";
  bubble.hidden = true;

  const point = (plot, points, event) => {
    const box = plot.getBoundingClientRect();
    const place = ([x, y]) => [box.left + x * box.width, box.top + y * box.height];
    let nearest = null, least = REACH;
    for (const one of points) {
      const [x, y] = place(one);
      const away = Math.hypot(x - event.clientX, y - event.clientY);
      if (away < least) [nearest, least] = [one, away];
    }
    bubble.hidden = nearest === null;
    if (bubble.hidden) return;
    const [x, y] = place(nearest);
    bubble.textContent = nearest[2];
    const half = bubble.offsetWidth / 2 + 4;
    bubble.style.left = `${Math.min(Math.max(x, half), document.documentElement.clientWidth - half)}px`;
    bubble.style.top = `${y}px`;
  };

  for (const plot of all("[data-points]")) {
    const points = JSON.parse(plot.dataset.points);
    for (const kind of ["pointermove", "pointerdown"]) plot.addEventListener(kind, (event) => point(plot, points, event));
    plot.addEventListener("pointerleave", () => { bubble.hidden = true; });
  }
  addEventListener("scroll", () => { bubble.hidden = true; }, { passive: true });

  /* ---- thresholds: precision and recall from counts of known entries, as partly.metrics has them */

  const ratios = (hits, called, yes, blind = false) => {
    if (!yes) return [NaN, NaN, NaN];
    return blind ? [NaN, hits / yes, NaN] : [hits / Math.max(called, 1), hits / yes, 2 * hits / (called + yes)];
  };
  const mean = (values) => {
    const defined = values.filter((value) => !Number.isNaN(value));
    return defined.length ? defined.reduce((sum, value) => sum + value, 0) / defined.length : NaN;
  };
  const words = (value) => Number.isNaN(value) ? "–" : value.toFixed(3);

  /* counts of one label: thresholds reached, yes, no; and so on */
  const above = (counts, step) => {
    let hits = 0, called = 0, yes = 0;
    for (let i = 0; i < counts.length; i += 3) {
      yes += counts[i + 1];
      if (counts[i] >= step) { hits += counts[i + 1]; called += counts[i + 1] + counts[i + 2]; }
    }
    return [hits, called, yes];
  };

  const scores = (labels) => {
    const each = labels.map((one) => ratios(...one));
    const [precision, recall] = [0, 1].map((place) => mean(each.map((one) => one[place])));
    const pooled = ratios(...[0, 1, 2].map((place) => labels.reduce((sum, one) => sum + one[place], 0)));
    return [...pooled, precision, recall, precision + recall ? 2 * precision * recall / (precision + recall) : 0];
  };

  for (const section of all(".thresholds")) {
    const { steps, first, counts, blind } = JSON.parse(section.querySelector("script").textContent);
    const slider = section.querySelector("input");
    const rule = section.querySelector(".rule");
    const points = JSON.parse(rule.parentElement.dataset.points);
    const fill = (row, values) => all(".live", row).forEach((cell, place) => { cell.textContent = words(values[place]); });
    const show = () => {
      const step = slider.valueAsNumber;
      for (const text of all(".at", section)) text.textContent = (step / steps).toFixed(2);
      rule.style.left = `${100 * (points[0][0] + (points[steps][0] - points[0][0]) * step / steps)}%`;
      const found = counts.map((labels) => labels.map((one, place) => [...above(one, step), blind.includes(place)]));
      all(".runs tbody tr", section).forEach((row, place) => fill(row, scores(found[place])));
      for (const row of all("[data-label]", section)) {
        const one = found[first][row.dataset.label];
        fill(row, ratios(...one));
        row.querySelector(".called").textContent = Math.round(one[1]).toLocaleString("en");
      }
    };
    section.querySelector(".slider").hidden = rule.hidden = false;
    slider.addEventListener("input", show);
    show();
  }
})();
