// The script of the pages. What comes from the data is set as text and never as markup; nothing is loaded from elsewhere.
"use strict";

const token = document.querySelector("meta[name=partly-page]").content;
const find = (what, where = document) => where.querySelector(what);

async function call(path, given) {
  const headers = { "content-type": "application/json", "x-partly-page": token };
  const answer = await fetch(path, { method: "POST", headers, body: typeof given === "string" ? given : JSON.stringify(given) });
  if (answer.status === 401 && path !== "/api/log-in") { location.assign("/log-in"); }
  const told = await answer.json().catch(() => ({ error: `The server said ${answer.status}.` }));
  if (!answer.ok) { throw Object.assign(new Error(told.error || `The server said ${answer.status}.`), { status: answer.status }); }
  return told;
}

function element(name, words = {}, ...inside) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(words)) {
    if (key === "text") { made.textContent = value; } else if (value !== undefined) { made.setAttribute(key, value); }
  }
  made.append(...inside);
  return made;
}

// ---------------------------------------------------------------- forms: log in, join, invite, import

function onSubmit(form, job) {
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const error = find(".error", form);
    error.textContent = "";
    try { await job(Object.fromEntries(new FormData(form)), form); } catch (wrong) { error.textContent = wrong.message; }
  });
}

for (const form of document.querySelectorAll("form[data-call]")) {
  onSubmit(form, async (given) => { await call(form.dataset.call, given); location.assign(form.dataset.next); });
}
const invite = find("#invite");
if (invite) {
  onSubmit(invite, async (given) => {
    const field = find("#invitation");
    field.value = location.origin + (await call("/api/invite", given)).path;
    field.select();
  });
}
for (const button of document.querySelectorAll("button[data-act]")) {
  button.addEventListener("click", async () => {
    const told = find("#acted");
    try {
      const { path } = await call(button.dataset.act, { person: Number(button.dataset.person) });
      if (!path) { location.reload(); return; }
      const field = find("#invitation");
      field.value = location.origin + path;
      field.focus();
      field.select();
      told.textContent = "The address is below. Give it to nobody else.";
    } catch (wrong) { told.textContent = wrong.message; }
  });
}
for (const form of document.querySelectorAll("form[data-assign]")) {
  onSubmit(form, async (given) => {
    const labels = given.labels.split("\n").map((line) => line.trim()).filter(Boolean);
    await call("/api/assign", { person: Number(form.dataset.assign), labels });
    location.reload();
  });
}
for (const button of document.querySelectorAll("button[data-link]")) {
  button.addEventListener("click", async () => {
    try { await call("/api/revoke", { link: button.dataset.link }); location.reload(); } catch (wrong) { find("#revoked").textContent = wrong.message; }
  });
}
const taken = find("#import");
if (taken) {
  onSubmit(taken, async (given) => {
    const again = find("#import-again");
    const told = await call(given.force ? "/api/import?force=true" : "/api/import", await given.file.text());
    again.hidden = !told.imported_before;
    find("input", again).checked = false;
    find(".error", taken).textContent = told.imported_before ? `This file was imported before (batch ${told.imported_before}). Nothing changed.` : `Imported answers: ${told.statements}.`;
  });
}
find("#log-out")?.addEventListener("click", async () => { await call("/api/log-out", {}); location.assign("/log-in"); });
if (find("#go-on")) { location.replace(find("#go-on").href); }

// ---------------------------------------------------------------- the overview comes anew by itself

const overview = find("#overview");
if (overview) {
  setInterval(async () => {
    if (document.hidden || overview.contains(document.activeElement)) { return; }
    const answer = await fetch("/overview").catch(() => null);
    if (!answer?.ok) { return; }
    const fresh = new DOMParser().parseFromString(await answer.text(), "text/html").querySelector("#overview");
    const old = overview.querySelectorAll(":scope > section"), now = fresh.querySelectorAll(":scope > section");
    if (old.length !== now.length) { location.reload(); return; }
    now.forEach((section, i) => { if (!find("form", section) && section.textContent !== old[i].textContent) { old[i].replaceWith(section); } });
  }, 10000);
}

// ---------------------------------------------------------------- questions

function crisp(image) { // so that every pixel of a small one is seen
  image.addEventListener("load", () => image.classList.toggle("tiny", Math.max(image.naturalWidth, image.naturalHeight) <= 64));
}

function seen(question) { // an item: a picture, a text or numbers
  const it = question.seen, figure = element("figure", { class: "seen" });
  if (it.kind === "picture") {
    const image = element("img", { src: it.source, alt: `Item ${question.name}` });
    crisp(image);
    const button = element("button", { type: "button", class: "zoom", "aria-label": `Zoom: ${question.name}`, title: "Zoom (z)" }, image);
    button.addEventListener("click", () => zoom(question));
    figure.append(button);
  } else if (it.kind === "text") {
    figure.append(element("p", { class: "text", text: it.text, tabindex: "0", role: "region", "aria-label": `Text of ${question.name}` }));
  } else {
    const rows = it.numbers.map(([name, value]) => element("tr", {}, element("th", { scope: "row", text: name }), element("td", { class: "number", text: value })));
    figure.append(element("table", {}, element("tbody", {}, ...rows)));
  }
  figure.append(element("figcaption", {}, element("bdi", { text: question.name })));
  return figure;
}

function guideline(question) { // what the label means; nothing where nobody has said
  const it = question.guideline;
  if (!it) { return []; }
  const examples = (title, list) => (list.length ? [element("p", {}, element("strong", { text: title }), ...list.flatMap((one) => ["\u00a0· ", element("bdi", { text: one })]))] : []);
  return [element("div", { class: "guideline", role: "note", "aria-label": `Guideline: ${question.label}` }, ...(it.text ? [element("p", { text: it.text })] : []), ...examples("Yes", it.yes), ...examples("No", it.no))];
}

// ---------------------------------------------------------------- zoom, and a question before much is answered at once

const STEPS = [1, 1.5, 2, 3, 4, 6, 8];

function zoom(question) {
  if (question.seen.kind !== "picture") { return; }
  const image = element("img", { src: `${question.seen.source}/large`, alt: `Item ${question.name}` });
  crisp(image);
  const frame = element("div", { class: "frame", tabindex: "0", role: "region", "aria-label": "Enlarged picture" }, image);
  const size = element("output", {});
  let step = 0;
  const scale = (by) => {
    const [x, y] = [(frame.scrollLeft + frame.clientWidth / 2) / frame.scrollWidth, (frame.scrollTop + frame.clientHeight / 2) / frame.scrollHeight];
    step = Math.max(0, Math.min(step + by, STEPS.length - 1));
    image.style.width = image.style.height = `${100 * STEPS[step]}%`;
    frame.scrollTo(x * frame.scrollWidth - frame.clientWidth / 2, y * frame.scrollHeight - frame.clientHeight / 2);
    size.textContent = `${100 * STEPS[step]} %`;
  };
  const button = (words, job) => { const made = element("button", { type: "button", text: words }); made.addEventListener("click", job); return made; };
  const box = element("dialog", { class: "zoomed", "aria-label": `Item ${question.name}` });
  box.append(element("p", { class: "bar" }, button("Zoom in", () => scale(1)), button("Zoom out", () => scale(-1)), size, button("Close", () => box.close())), frame);
  frame.addEventListener("wheel", (event) => { event.preventDefault(); scale(event.deltaY < 0 ? 1 : -1); }, { passive: false });
  frame.addEventListener("pointerdown", (event) => { if (event.pointerType === "mouse") { event.preventDefault(); frame.setPointerCapture(event.pointerId); } });
  frame.addEventListener("pointermove", (event) => { if (frame.hasPointerCapture(event.pointerId)) { frame.scrollBy({ left: -event.movementX, top: -event.movementY, behavior: "instant" }); } });
  box.addEventListener("keydown", (event) => {
    if (event.key === "+" || event.key === "=") { scale(1); } else if (event.key === "-") { scale(-1); } else if (event.key === "z") { box.close(); }
    event.stopPropagation();
  });
  popUp(box, frame);
  scale(0);
}

function popUp(box, focused) { // a dialog that goes away when it is closed
  document.body.append(box);
  box.addEventListener("close", () => box.remove());
  box.showModal();
  focused.focus();
}

function confirmed(question, words) { // whether somebody agrees, as a promise
  return new Promise((decide) => {
    const yes = element("button", { type: "submit", value: "yes", class: "main", text: words }), no = element("button", { type: "submit", value: "", text: "Cancel" });
    const box = element("dialog", { class: "card", "aria-label": question }, element("form", { method: "dialog" }, element("p", { text: question }), element("p", { class: "bar" }, yes, no)));
    box.addEventListener("close", () => decide(box.returnValue === "yes"));
    box.addEventListener("keydown", (event) => event.stopPropagation());
    popUp(box, no);
  });
}

const CHOICES = [["yes", "Yes", "y"], ["no", "No", "n"], ["cannot tell", "Cannot tell", "?"]];
const desk = find("#questions");
if (desk) { questions(desk.dataset.view, Number(desk.dataset.count)); }

function questions(view, count) {
  const [title, standing, whole, list, said, next] = ["#asked", "#standing", "#whole", "#cards", "#said", "#next"].map((id) => find(id));
  const suggest = find("#suggest");
  const KEYS = { y: "yes", n: "no", "?": "cannot tell", "/": "cannot tell", c: "cannot tell" };
  let cards = []; // {question, box, note, value}
  let current = 0, since = performance.now(), chain = Promise.resolve(), timer = null, busy = false;
  let last = 0; // the last answer of this person, by its number in the ledger

  suggest.checked = localStorage.getItem("partly-suggest") === "yes";
  suggest.addEventListener("change", () => { localStorage.setItem("partly-suggest", suggest.checked ? "yes" : "no"); load(); });

  const say = (words, wrong = false) => { said.textContent = words; said.className = wrong ? "error" : ""; };
  const stand = (told) => { if (told.open !== undefined) { last = told.last; standing.textContent = `Your answers: ${told.answered} · Questions left: ${told.open} · Round ${told.round}`; } };
  const percent = (p) => `${Math.round(100 * p)} %`;

  async function load() {
    clearTimeout(timer);
    busy = true;
    try {
      const told = await call("/api/questions", { view, count, suggest: suggest.checked });
      stand(told);
      show(told.questions);
      if (!told.questions.length) { wait(); }
    } catch (wrong) { say(wrong.message, true); timer = setTimeout(load, 3000); } finally { busy = false; }
  }

  async function wait() { // new questions come without a reload
    title.textContent = "Nothing to ask right now";
    const told = await fetch("/api/standing").then((answer) => (answer.ok ? answer.json() : null)).catch(() => null);
    if (told) { stand(told); say(told.training || "New questions come when a model has been trained."); }
    timer = setTimeout(load, 2000);
  }

  function show(asked) {
    cards = [];
    list.replaceChildren();
    whole.replaceChildren();
    next.hidden = true;
    if (asked.length) {
      say("");
      title.replaceChildren(view === "label" ? element("bdi", { text: asked[0].label }) : "Which labels does it have?", view === "label" ? ": yes or no?" : "");
      whole.append(...(view === "item" ? [seen(asked[0])] : guideline(asked[0])));
      cards = asked.map(card);
      list.append(...cards.map((one) => one.box));
      since = performance.now();
      go(0, false);
    }
  }

  function card(question, place) {
    const note = element("p", { class: "note" });
    const choices = element("div", { class: "choices" });
    const box = element("li", { class: "question", tabindex: "-1" });
    const one = { question, box, note, value: null };
    for (const [value, words, key] of [...CHOICES, ["skipped", "Skip", "s"]]) {
      const button = element("button", { type: "button", "data-say": value, "aria-label": `${words}: ${view === "label" ? question.name : question.label}` }, `${words} `, element("kbd", { text: key, "aria-hidden": "true" }));
      if (value !== "skipped") { button.setAttribute("aria-pressed", "false"); }
      button.addEventListener("click", () => { go(cards.indexOf(one), false); if (value === "skipped") { skip(one); } else { answer(one, value); } });
      choices.append(button);
    }
    box.append(...(view === "label" ? [seen(question)] : [element("h2", {}, element("bdi", { text: question.label })), ...guideline(question)]), note, choices);
    if (question.probability !== undefined && question.probability !== null) { note.textContent = `The model: ${percent(question.probability)} yes.`; }
    box.addEventListener("focusin", () => { if (cards[current] !== one) { go(cards.indexOf(one), false, false); } });
    return one;
  }

  function go(place, scroll = true, focus = true) {
    if (!cards.length) { return; }
    current = Math.max(0, Math.min(place, cards.length - 1));
    cards.forEach((one, i) => { if (i === current) { one.box.setAttribute("aria-current", "true"); } else { one.box.removeAttribute("aria-current"); } });
    if (focus) { cards[current].box.focus({ preventScroll: true }); }
    if (scroll) { cards[current].box.scrollIntoView({ block: "nearest" }); }
  }

  function mark(one, value) {
    one.value = value;
    if (value === null) { delete one.box.dataset.value; } else { one.box.dataset.value = value; }
    for (const button of one.box.querySelectorAll("button[aria-pressed]")) { button.setAttribute("aria-pressed", String(button.dataset.say === value)); }
    const done = cards.every((card) => card.value !== null);
    next.hidden = !done;
    if (done) { next.focus(); }
  }

  function onward() {
    const order = [...cards.keys()].map((i) => (current + 1 + i) % cards.length);
    const open = order.find((i) => cards[i].value === null);
    if (open !== undefined) { go(open); }
  }

  function answer(one, value, seconds = (performance.now() - since) / 1000) {
    if (one.value !== null) { say("Answered already. Take it back first: u.", true); return; }
    since = performance.now();
    mark(one, value);
    one.note.textContent = "…";
    onward();
    chain = chain.then(() => send(one, value, seconds));
  }

  async function patiently(path, given) { // until the server answers: everything sent this way may be sent twice
    for (;;) {
      try { return await call(path, given); } catch (wrong) {
        if (wrong.status && wrong.status < 500) { throw wrong; }
        say("Not saved yet: the server does not answer. Trying again.", true);
        await new Promise((wake) => { setTimeout(wake, 1000); });
      }
    }
  }

  async function send(one, value, seconds) {
    try {
      const told = await patiently("/api/answer", { question: one.question.id, value, seconds, view });
      stand(told);
      noted(one, told);
    } catch (wrong) {
      mark(one, null);
      next.hidden = true;
      one.note.textContent = wrong.message;
      say(wrong.message, true);
      if (wrong.status === 409) { one.box.dataset.refused = "yes"; }
    }
  }

  function noted(one, told) {
    const follows = Object.entries(told.implied).map(([label, value]) => `${label}: ${value}`);
    const model = told.probability === null ? "" : ` The model: ${percent(told.probability)} yes.`;
    one.note.textContent = `Saved: ${told.value}.${model}${follows.length ? ` So also ${follows.join(", ")}.` : ""}`;
    one.box.dataset.saved = "yes";
    say(follows.length ? `Saved. So also ${follows.join(", ")}; undo takes that back too.` : "");
    for (const other of cards) { // settled by this answer
      if (other.value === null && other.question.name === one.question.name && told.implied[other.question.label]) {
        other.settled = one.question.id;
        other.note.textContent = `${told.implied[other.question.label]}, since ${one.question.label} is ${told.value}.`;
        mark(other, told.implied[other.question.label]);
      }
    }
  }

  function skip(one) {
    if (one.value !== null) { return; }
    since = performance.now();
    say("");
    mark(one, "skipped");
    one.note.textContent = "Skipped: no answer.";
    onward();
    chain = chain.then(() => patiently("/api/skip", { question: one.question.id }).then(() => say("")).catch((wrong) => say(wrong.message, true)));
  }

  function undo() {
    chain = chain.then(async () => {
      try {
        const told = await patiently("/api/undo", { answer: last });
        stand(told);
        const one = cards.find((card) => card.question.id === told.question.id);
        if (!one) { show([told.question]); say("Your last answer is taken back."); return; }
        for (const other of cards.filter((card) => card.settled === one.question.id)) { delete other.settled; other.note.textContent = ""; mark(other, null); }
        one.note.textContent = "";
        delete one.box.dataset.saved;
        mark(one, null);
        go(cards.indexOf(one));
        say("Taken back.");
        since = performance.now();
      } catch (wrong) { say(wrong.message, true); }
    });
  }

  async function all(value) {
    const left = cards.filter((one) => one.value === null);
    const each = (performance.now() - since) / 1000 / Math.max(1, left.length);
    if (value === "yes" && left.length > 1 && !(await confirmed(`Answer yes to all ${left.length} questions that are left?`, `Yes to all ${left.length}`))) { return; }
    for (const one of left) { if (one.value === null) { answer(one, value, each); } }
  }

  const onScreen = () => { // cards in a row, for the arrows up and down
    const top = cards[0].box.offsetTop;
    return Math.max(1, cards.findIndex((one) => one.box.offsetTop !== top));
  };

  async function onwards() { if (!busy && !next.hidden) { await chain; load(); } }
  next.addEventListener("click", onwards);
  find("#undo").addEventListener("click", undo);
  find("#all-no").addEventListener("click", () => all("no"));
  find("#all-yes").addEventListener("click", () => all("yes"));
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.matches("input, select, textarea, summary")) { return; }
    const moves = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: cards.length ? -onScreen() : 0, ArrowDown: cards.length ? onScreen() : 0 };
    if (event.key in moves) { go(current + moves[event.key]); } else if (event.key === "Enter" && !event.target.matches("button, a")) { onwards(); } else if (event.key === "u") { undo(); } else if (event.key === "Y") { all("yes"); } else if (event.key === "N") { all("no"); } else if (!cards.length) { return; } else if (event.key === "s") { skip(cards[current]); } else if (event.key === "z") { zoom(cards[current].question); } else if (event.key in KEYS) { answer(cards[current], KEYS[event.key]); } else { return; }
    event.preventDefault();
  });
  load();
}

// ---------------------------------------------------------------- disagreements, which an admin decides

if (find("#disagreements")) { disagreements(); }

function disagreements() {
  const [list, left, said, undo] = ["#cards", "#left", "#said", "#undo"].map((id) => find(id));
  const made = []; // batches of the decisions of this page
  const say = (words, wrong = false) => { said.textContent = words; said.className = wrong ? "error" : ""; };
  const count = (number) => { left.textContent = number ? `Disagreements left: ${number}` : "No disagreements. Votes of people agree, or are still to come."; };

  async function load() {
    const told = await call("/api/disagreements", {}).catch((wrong) => say(wrong.message, true));
    if (!told) { return; }
    count(told.left);
    list.replaceChildren(...told.disagreements.map(card));
  }

  function card(one) {
    const votes = one.votes.map(([name, value]) => element("li", {}, element("bdi", { text: name }), element("strong", { text: value })));
    const model = one.probability === null ? [] : [element("p", { class: "note", text: `The model: ${Math.round(100 * one.probability)} % yes.` })];
    const choices = element("div", { class: "choices" }), box = element("li", { class: "question" });
    for (const [value, words] of CHOICES) {
      const button = element("button", { type: "button", "data-say": value, "aria-label": `${words}: ${one.label}, ${one.name}`, text: words });
      button.addEventListener("click", () => decide(one, value, box));
      choices.append(button);
    }
    box.append(element("h2", {}, element("bdi", { text: one.label })), ...guideline(one), seen(one), element("ul", { class: "votes", "aria-label": "Votes" }, ...votes), ...model, choices);
    return box;
  }

  async function decide(one, value, box) {
    try {
      const told = await call("/api/decide", { question: one.question, value });
      made.push(told.batch);
      undo.hidden = false;
      box.remove();
      count(told.left);
      say(`Decided: ${one.label} is ${value} for ${one.name}.`);
      if (told.left && !list.children.length) { load(); }
    } catch (wrong) { say(wrong.message, true); }
  }

  undo.addEventListener("click", async () => {
    try {
      await call("/api/undo-decision", { answer: made.at(-1) });
      made.pop();
      undo.hidden = !made.length;
      say("The last decision is undone.");
      load();
    } catch (wrong) { say(wrong.message, true); }
  });
  load();
}
