// The script of all pages. Data is inserted as text, never as markup; nothing is loaded from other servers.
"use strict";

const token = document.querySelector("meta[name=partly-page]").content;
const find = (selector, root = document) => root.querySelector(selector);

async function call(path, body) {
  const headers = { "content-type": "application/json", "x-partly-page": token };
  const response = await fetch(path, { method: "POST", headers, body: typeof body === "string" ? body : JSON.stringify(body) });
  if (response.status === 401 && path !== "/api/log-in") { location.assign("/log-in"); }
  const result = await response.json().catch(() => ({}));
  if (!response.ok) { throw Object.assign(new Error(result.error || `The server answered with status ${response.status}.`), { status: response.status }); }
  return result;
}

function element(name, attributes = {}, ...children) {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key === "text") { node.textContent = value; } else if (value !== undefined) { node.setAttribute(key, value); }
  }
  node.append(...children);
  return node;
}

// ---------------------------------------------------------------- forms: sign in, join, invite, import

function onSubmit(form, action) {
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const message = find(".error", form);
    message.textContent = "";
    try { await action(Object.fromEntries(new FormData(form))); } catch (error) { message.textContent = error.message; }
  });
}

for (const form of document.querySelectorAll("form[data-call]")) {
  onSubmit(form, async (values) => { await call(form.dataset.call, values); location.assign(form.dataset.next); });
}
function showLink(path) {
  const field = find("#invitation");
  field.value = location.origin + path;
  field.focus();
  field.select();
}
const invite = find("#invite");
if (invite) {
  onSubmit(invite, async (values) => { showLink((await call("/api/invite", values)).path); });
}
for (const button of document.querySelectorAll("button[data-act]")) {
  button.addEventListener("click", async () => {
    const message = find("#acted");
    try {
      const { path } = await call(button.dataset.act, { person: Number(button.dataset.person) });
      if (!path) { location.reload(); return; }
      showLink(path);
      message.textContent = "The link is below. Send it to that person only.";
    } catch (error) { message.textContent = error.message; }
  });
}
for (const form of document.querySelectorAll("form[data-assign]")) {
  onSubmit(form, async (values) => {
    const labels = values.labels.split("\n").map((line) => line.trim()).filter(Boolean);
    await call("/api/assign", { person: Number(form.dataset.assign), labels });
    location.reload();
  });
}
for (const button of document.querySelectorAll("button[data-link]")) {
  button.addEventListener("click", async () => {
    try { await call("/api/revoke", { link: button.dataset.link }); location.reload(); } catch (error) { find("#revoked").textContent = error.message; }
  });
}
const importForm = find("#import");
if (importForm) {
  onSubmit(importForm, async (values) => {
    const again = find("#import-again");
    const result = await call(values.force ? "/api/import?force=true" : "/api/import", await values.file.text());
    again.hidden = !result.imported_before;
    find("input", again).checked = false;
    find(".error", importForm).textContent = result.imported_before ? `This file was imported before (batch ${result.imported_before}). Nothing changed.` : `Imported answers: ${result.statements}.`;
  });
}
find("#sign-out")?.addEventListener("click", async () => { await call("/api/log-out", {}); location.assign("/log-in"); });
if (find("#go-on")) { location.replace(find("#go-on").href); }

// ---------------------------------------------------------------- the overview refreshes itself

const overview = find("#overview");
if (overview) {
  setInterval(async () => {
    if (document.hidden || overview.contains(document.activeElement)) { return; }
    const response = await fetch("/overview").catch(() => null);
    if (!response?.ok) { return; }
    const fresh = new DOMParser().parseFromString(await response.text(), "text/html").querySelector("#overview");
    const old = overview.querySelectorAll(":scope > section"), now = fresh.querySelectorAll(":scope > section");
    if (old.length !== now.length) { location.reload(); return; }
    now.forEach((section, i) => { if (!find("form", section) && section.textContent !== old[i].textContent) { old[i].replaceWith(section); } });
  }, 10000);
}

// ---------------------------------------------------------------- questions

function crisp(image) { // show the pixels of small images
  image.addEventListener("load", () => image.classList.toggle("tiny", Math.max(image.naturalWidth, image.naturalHeight) <= 64));
}

function renderItem(question) { // an image, a text or a row of features
  const item = question.seen, figure = element("figure", { class: "seen" });
  if (item.kind === "picture") {
    const image = element("img", { src: item.source, alt: `Item ${question.name}` });
    crisp(image);
    const button = element("button", { type: "button", class: "zoom", "aria-label": `Zoom: ${question.name}`, title: "Zoom (z)" }, image);
    button.addEventListener("click", () => zoom(question));
    figure.append(button);
  } else if (item.kind === "text") {
    figure.append(element("p", { class: "text", text: item.text, tabindex: "0", role: "region", "aria-label": `Text of ${question.name}` }));
  } else {
    const rows = item.numbers.map(([name, value]) => element("tr", {}, element("th", { scope: "row", text: name }), element("td", { class: "number", text: value })));
    figure.append(element("table", {}, element("tbody", {}, ...rows)));
  }
  figure.append(element("figcaption", {}, element("bdi", { text: question.name })));
  return figure;
}

function guideline(question) { // the meaning of the label, if there is a guideline
  const { guideline: text } = question;
  if (!text) { return []; }
  const examples = (title, list) => (list.length ? [element("p", {}, element("strong", { text: title }), ...list.flatMap((example) => ["\u00a0· ", element("bdi", { text: example })]))] : []);
  return [element("div", { class: "guideline", role: "note", "aria-label": `Guideline: ${question.label}` }, ...(text.text ? [element("p", { text: text.text })] : []), ...examples("Yes", text.yes), ...examples("No", text.no))];
}

// ---------------------------------------------------------------- dialogs: zoom and confirmation

const ZOOM_FACTORS = [1, 1.5, 2, 3, 4, 6, 8];

function zoom(question) {
  if (question.seen.kind !== "picture") { return; }
  const image = element("img", { src: `${question.seen.source}/large`, alt: `Item ${question.name}` });
  crisp(image);
  const frame = element("div", { class: "frame", tabindex: "0", role: "region", "aria-label": "Enlarged image" }, image);
  const size = element("output", {});
  let step = 0;
  const scale = (by) => {
    const [x, y] = [(frame.scrollLeft + frame.clientWidth / 2) / frame.scrollWidth, (frame.scrollTop + frame.clientHeight / 2) / frame.scrollHeight];
    step = Math.max(0, Math.min(step + by, ZOOM_FACTORS.length - 1));
    image.style.width = image.style.height = `${100 * ZOOM_FACTORS[step]}%`;
    frame.scrollTo(x * frame.scrollWidth - frame.clientWidth / 2, y * frame.scrollHeight - frame.clientHeight / 2);
    size.textContent = `${100 * ZOOM_FACTORS[step]} %`;
  };
  const button = (text, action) => { const node = element("button", { type: "button", text }); node.addEventListener("click", action); return node; };
  const box = element("dialog", { class: "zoomed", "aria-label": `Item ${question.name}` });
  box.append(element("p", { class: "bar" }, button("Zoom in", () => scale(1)), button("Zoom out", () => scale(-1)), size, button("Close", () => box.close())), frame);
  frame.addEventListener("wheel", (event) => { event.preventDefault(); scale(event.deltaY < 0 ? 1 : -1); }, { passive: false });
  frame.addEventListener("pointerdown", (event) => { if (event.pointerType === "mouse") { event.preventDefault(); frame.setPointerCapture(event.pointerId); } });
  frame.addEventListener("pointermove", (event) => { if (frame.hasPointerCapture(event.pointerId)) { frame.scrollBy({ left: -event.movementX, top: -event.movementY, behavior: "instant" }); } });
  box.addEventListener("keydown", (event) => {
    if (event.key === "+" || event.key === "=") { scale(1); } else if (event.key === "-") { scale(-1); } else if (event.key === "z") { box.close(); }
    event.stopPropagation();
  });
  openDialog(box, frame);
  scale(0);
}

function openDialog(box, focused) { // removed when it is closed
  document.body.append(box);
  box.addEventListener("close", () => box.remove());
  box.showModal();
  focused.focus();
}

function confirmDialog(question, text) { // a promise of true or false
  return new Promise((decide) => {
    const yes = element("button", { type: "submit", value: "yes", class: "main", text }), no = element("button", { type: "submit", value: "", text: "Cancel" });
    const box = element("dialog", { class: "card", "aria-label": question }, element("form", { method: "dialog" }, element("p", { text: question }), element("p", { class: "bar" }, yes, no)));
    box.addEventListener("close", () => decide(box.returnValue === "yes"));
    box.addEventListener("keydown", (event) => event.stopPropagation());
    openDialog(box, no);
  });
}

const CHOICES = [["yes", "Yes", "y"], ["no", "No", "n"], ["cannot tell", "Cannot tell", "?"]];
const page = find("#questions");
if (page) { questions(page.dataset.view, Number(page.dataset.count)); }

function questions(view, count) {
  const [title, standing, whole, list, status, next] = ["#asked", "#standing", "#whole", "#cards", "#said", "#next"].map((id) => find(id));
  const suggest = find("#suggest");
  const KEYS = { y: "yes", n: "no", "?": "cannot tell", "/": "cannot tell", c: "cannot tell" };
  let cards = []; // {question, box, note, value}
  let current = 0, since = performance.now(), chain = Promise.resolve(), timer = null, busy = false;
  let last = 0; // ledger batch of this person's last answer

  suggest.checked = localStorage.getItem("partly-suggest") === "yes";
  suggest.addEventListener("change", () => { localStorage.setItem("partly-suggest", suggest.checked ? "yes" : "no"); load(); });

  const say = (text, isError = false) => { status.textContent = text; status.className = isError ? "error" : ""; };
  const showStanding = (result) => { if (result.open !== undefined) { last = result.last; standing.textContent = `Your answers: ${result.answered} · Questions left: ${result.open} · Round ${result.round}`; } };
  const percent = (p) => `${Math.round(100 * p)} %`;

  async function load() {
    clearTimeout(timer);
    busy = true;
    try {
      const result = await call("/api/questions", { view, count, suggest: suggest.checked });
      showStanding(result);
      show(result.questions);
      if (!result.questions.length) { wait(); }
    } catch (error) { say(error.message, true); timer = setTimeout(load, 3000); } finally { busy = false; }
  }

  async function wait() { // for new questions, without a reload
    title.textContent = "No questions right now";
    const result = await fetch("/api/standing").then((response) => (response.ok ? response.json() : null)).catch(() => null);
    if (result) { showStanding(result); say(result.training || "New questions appear when a model has been trained."); }
    timer = setTimeout(load, 2000);
  }

  function show(leased) {
    cards = [];
    list.replaceChildren();
    whole.replaceChildren();
    next.hidden = true;
    if (leased.length) {
      say("");
      title.replaceChildren(view === "label" ? element("bdi", { text: leased[0].label }) : "Which labels apply?", view === "label" ? "?" : "");
      whole.append(...(view === "item" ? [renderItem(leased[0])] : guideline(leased[0])));
      cards = leased.map(makeCard);
      list.append(...cards.map((card) => card.box));
      since = performance.now();
      go(0, false);
    }
  }

  function makeCard(question) {
    const note = element("p", { class: "note" });
    const choices = element("div", { class: "choices" });
    const box = element("li", { class: "question", tabindex: "-1" });
    const card = { question, box, note, value: null };
    for (const [value, text, key] of [...CHOICES, ["skipped", "Skip", "s"]]) {
      const button = element("button", { type: "button", "data-say": value, "aria-label": `${text}: ${view === "label" ? question.name : question.label}` }, `${text} `, element("kbd", { text: key, "aria-hidden": "true" }));
      if (value !== "skipped") { button.setAttribute("aria-pressed", "false"); }
      button.addEventListener("click", () => { go(cards.indexOf(card), false); if (value === "skipped") { skip(card); } else { answer(card, value); } });
      choices.append(button);
    }
    box.append(...(view === "label" ? [renderItem(question)] : [element("h2", {}, element("bdi", { text: question.label })), ...guideline(question)]), note, choices);
    if (question.probability !== undefined && question.probability !== null) { note.textContent = `Model: ${percent(question.probability)} yes`; }
    box.addEventListener("focusin", () => { if (cards[current] !== card) { go(cards.indexOf(card), false, false); } });
    return card;
  }

  function go(place, scroll = true, focus = true) {
    if (!cards.length) { return; }
    current = Math.max(0, Math.min(place, cards.length - 1));
    cards.forEach((card, i) => { if (i === current) { card.box.setAttribute("aria-current", "true"); } else { card.box.removeAttribute("aria-current"); } });
    if (focus) { cards[current].box.focus({ preventScroll: true }); }
    if (scroll) { cards[current].box.scrollIntoView({ block: "nearest" }); }
  }

  function mark(card, value) {
    card.value = value;
    if (value === null) { delete card.box.dataset.value; } else { card.box.dataset.value = value; }
    for (const button of card.box.querySelectorAll("button[aria-pressed]")) { button.setAttribute("aria-pressed", String(button.dataset.say === value)); }
    const done = cards.every((other) => other.value !== null);
    next.hidden = !done;
    if (done) { next.focus(); }
  }

  function selectNext() {
    const order = [...cards.keys()].map((i) => (current + 1 + i) % cards.length);
    const open = order.find((i) => cards[i].value === null);
    if (open !== undefined) { go(open); }
  }

  function answer(card, value, seconds = (performance.now() - since) / 1000) {
    if (card.value !== null) { say("Already answered. Undo first (u).", true); return; }
    since = performance.now();
    mark(card, value);
    card.note.textContent = "…";
    selectNext();
    chain = chain.then(() => send(card, value, seconds));
  }

  async function callWithRetry(path, body) { // until the server answers; all of these calls are idempotent
    for (;;) {
      try { return await call(path, body); } catch (error) {
        if (error.status && error.status < 500) { throw error; }
        say("Not saved yet: the server does not respond. Retrying.", true);
        await new Promise((wake) => { setTimeout(wake, 1000); });
      }
    }
  }

  async function send(card, value, seconds) {
    try {
      const result = await callWithRetry("/api/answer", { question: card.question.id, value, seconds, view });
      showStanding(result);
      showSaved(card, result);
    } catch (error) {
      mark(card, null);
      next.hidden = true;
      card.note.textContent = error.message;
      say(error.message, true);
      if (error.status === 409) { card.box.dataset.refused = "yes"; }
    }
  }

  function showSaved(card, result) {
    const implied = Object.entries(result.implied).map(([label, value]) => `${label}: ${value}`);
    const model = result.probability === null ? "" : ` Model: ${percent(result.probability)} yes.`;
    card.note.textContent = `Saved: ${result.value}.${model}${implied.length ? ` Also saved: ${implied.join(", ")}.` : ""}`;
    card.box.dataset.saved = "yes";
    say(implied.length ? `Also saved: ${implied.join(", ")}. Undo removes these too.` : "");
    for (const other of cards) { // settled by this answer
      if (other.value === null && other.question.name === card.question.name && result.implied[other.question.label]) {
        other.settled = card.question.id;
        other.note.textContent = `${result.implied[other.question.label]}, because ${card.question.label} is ${result.value}.`;
        mark(other, result.implied[other.question.label]);
      }
    }
  }

  function skip(card) {
    if (card.value !== null) { return; }
    since = performance.now();
    say("");
    mark(card, "skipped");
    card.note.textContent = "Skipped";
    selectNext();
    chain = chain.then(() => callWithRetry("/api/skip", { question: card.question.id }).then(() => say("")).catch((error) => say(error.message, true)));
  }

  function undo() {
    chain = chain.then(async () => {
      try {
        const result = await callWithRetry("/api/undo", { answer: last });
        showStanding(result);
        const card = cards.find((other) => other.question.id === result.question.id);
        if (!card) { show([result.question]); say("Your last answer was undone."); return; }
        for (const other of cards.filter((candidate) => candidate.settled === card.question.id)) { delete other.settled; other.note.textContent = ""; mark(other, null); }
        card.note.textContent = "";
        delete card.box.dataset.saved;
        mark(card, null);
        go(cards.indexOf(card));
        say("Undone.");
        since = performance.now();
      } catch (error) { say(error.message, true); }
    });
  }

  async function all(value) {
    const left = cards.filter((card) => card.value === null);
    const each = (performance.now() - since) / 1000 / Math.max(1, left.length);
    if (value === "yes" && left.length > 1 && !(await confirmDialog(`Answer yes to all ${left.length} remaining questions?`, `Yes to all ${left.length}`))) { return; }
    for (const card of left) { if (card.value === null) { answer(card, value, each); } }
  }

  const cardsPerRow = () => {
    const top = cards[0].box.offsetTop;
    return Math.max(1, cards.findIndex((card) => card.box.offsetTop !== top));
  };

  async function nextPage() { if (!busy && !next.hidden) { await chain; load(); } }
  next.addEventListener("click", nextPage);
  find("#undo").addEventListener("click", undo);
  find("#all-no").addEventListener("click", () => all("no"));
  find("#all-yes").addEventListener("click", () => all("yes"));
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.matches("input, select, textarea, summary")) { return; }
    const moves = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: cards.length ? -cardsPerRow() : 0, ArrowDown: cards.length ? cardsPerRow() : 0 };
    if (event.key in moves) { go(current + moves[event.key]); } else if (event.key === "Enter" && !event.target.matches("button, a")) { nextPage(); } else if (event.key === "u") { undo(); } else if (event.key === "Y") { all("yes"); } else if (event.key === "N") { all("no"); } else if (!cards.length) { return; } else if (event.key === "s") { skip(cards[current]); } else if (event.key === "z") { zoom(cards[current].question); } else if (event.key in KEYS) { answer(cards[current], KEYS[event.key]); } else { return; }
    event.preventDefault();
  });
  load();
}

// ---------------------------------------------------------------- disagreements

if (find("#disagreements")) { disagreements(); }

function disagreements() {
  const [list, left, status, undo] = ["#cards", "#left", "#said", "#undo"].map((id) => find(id));
  const decisions = []; // ledger batches
  const say = (text, isError = false) => { status.textContent = text; status.className = isError ? "error" : ""; };
  const count = (number) => { left.textContent = number ? `Disagreements left: ${number}` : "No disagreements"; };

  async function load() {
    const result = await call("/api/disagreements", {}).catch((error) => say(error.message, true));
    if (!result) { return; }
    count(result.left);
    list.replaceChildren(...result.disagreements.map(makeCard));
  }

  function makeCard(entry) {
    const votes = entry.votes.map(([name, value]) => element("li", {}, element("bdi", { text: name }), element("strong", { text: value })));
    const model = entry.probability === null ? [] : [element("p", { class: "note", text: `Model: ${Math.round(100 * entry.probability)} % yes` })];
    const choices = element("div", { class: "choices" }), box = element("li", { class: "question" });
    for (const [value, text] of CHOICES) {
      const button = element("button", { type: "button", "data-say": value, "aria-label": `${text}: ${entry.label}, ${entry.name}`, text });
      button.addEventListener("click", () => decide(entry, value, box));
      choices.append(button);
    }
    box.append(element("h2", {}, element("bdi", { text: entry.label })), ...guideline(entry), renderItem(entry), element("ul", { class: "votes", "aria-label": "Votes" }, ...votes), ...model, choices);
    return box;
  }

  async function decide(entry, value, box) {
    try {
      const result = await call("/api/decide", { question: entry.question, value });
      decisions.push(result.batch);
      undo.hidden = false;
      box.remove();
      count(result.left);
      say(`Decided: ${entry.label} is ${value} for ${entry.name}.`);
      if (result.left && !list.children.length) { load(); }
    } catch (error) { say(error.message, true); }
  }

  undo.addEventListener("click", async () => {
    try {
      await call("/api/undo-decision", { answer: decisions.at(-1) });
      decisions.pop();
      undo.hidden = !decisions.length;
      say("Decision undone.");
      load();
    } catch (error) { say(error.message, true); }
  });
  load();
}
