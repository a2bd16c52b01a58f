(() => {
"use strict";
const PER_PAGE = 25;
const MOST_CHOICES = 10;
const MOST_CONCEPTS = 1000;
const SHOW = ["all", "right", "wrong", "tied", "lost", "gained"];
const section = document.getElementById("items");
const index = JSON.parse(document.getElementById("items-index").textContent);
const form = section.querySelector("form");
const fields = form.elements;
const problem = section.querySelector("[role=alert]");
const status = section.querySelector("[role=status]");
const list = section.querySelector(".list");
const format = (number) => number.toLocaleString("en");

// Texts of data become text nodes and attributes, never markup.
function make(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...children.filter((child) => child !== null && child !== ""));
  return node;
}

// ---- data: packed texts, in the page or in files beside it, each unpacked once

const arriving = new Map();
window.probelightItems = (number, text) => arriving.get(number)(text);

function packed(number) {
  if (!index.folder) return document.getElementById(`items-part-${number}`).textContent;
  return new Promise((resolve, reject) => {
    arriving.set(number, resolve);
    const script = make("script", { src: `${index.folder}/${number}.js` });
    script.onerror = () => {
      script.remove();
      reject(new Error(`The file ${index.folder}/${number}.js is not beside this page.`));
    };
    document.head.append(script);
  });
}

const parts = new Map();

function part(number) {
  if (!parts.has(number)) {
    const unpacking = unpacked(number);
    unpacking.catch(() => parts.delete(number));
    parts.set(number, unpacking);
  }
  return parts.get(number);
}

async function unpacked(number) {
  if (!window.DecompressionStream) {
    throw new Error("This browser is too old to unpack the items (Chrome 80, Firefox 113 and "
      + "Safari 16.4 can); predictions.jsonl of each run holds them as text.");
  }
  const binary = atob(await packed(number));
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < binary.length; i += 1) bytes[i] = binary.charCodeAt(i);
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Response(stream).json();
}

const items = new Map();

async function itemsOf(probe) {
  const columns = await part(probe.part);
  if (!items.has(probe)) items.set(probe, columns);
  return columns;
}

// Upper and lower case are alike.
const pattern = (text) => new RegExp(text.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&"), "iu");

// A sheet with, of each of its rows, the place of the item, what it counts and how many share the
// best score; null where nothing is right or wrong, as behind a context without expected words.
async function sheetOf(probe, model, told) {
  const [columns, sheets] = await Promise.all([itemsOf(probe), part(model.part)]);
  const sheet = sheets[model.sheets.indexOf(told)];
  if (sheet.counted) return sheet;
  const { row, places } = sheet.items;
  sheet.places = places || Array.from({ length: row[1] }, (_, i) => row[0] + i);
  sheet.rows = new Map(sheet.places.map((place, i) => [place, i]));
  const { said, words, counts = [] } = sheet.answers;
  sheet.tied = new Map();
  if (words) {
    sheet.counted = sheet.places.map((place, i) => {
      const expected = columns.expected?.[place] || [];
      return expected.length ? Number(expected.includes(words[i][0])) : null;
    });
  } else {
    sheet.counted = sheet.places.map((place, i) => Number(said[i] === columns.answer[place]));
    for (const [i, tied, count] of counts) {
      sheet.counted[i] = count;
      sheet.tied.set(i, tied);
    }
  }
  return sheet;
}

// ---- the address: what is shown is what it says

function asked() {
  const hash = window.location.hash;
  if (hash !== "#items" && !hash.startsWith("#items?")) return null;
  return new URLSearchParams(hash.slice("#items?".length));
}

function address(view, changes = {}) {
  const given = {
    probe: view.probe.name, model: view.model.name, run: view.run.name,
    against: view.against ? view.against.told.name : "none",
    show: view.show, cluster: view.cluster, hops: view.hops, q: view.q, item: view.item,
    page: "", ...changes,
  };
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(given)) {
    if (value !== "" && value !== "all") query.set(name, value);
  }
  return `#items?${query}`;
}

// The one of a list that is asked for by name; the one to begin with where none is, or none is so
// called, which is then said.
function one(all, name, first, noun, problems) {
  const found = all.find((each) => each.name === name);
  if (!found && name) problems.push(`There is no ${noun} “${name}” here.`);
  return found || first;
}

// A run's folder alone means the first of its sets.
function sheetNamed(model, name) {
  return model.sheets.find((sheet) => sheet.name === name)
    || model.sheets.find((sheet) => sheet.run === name);
}

function viewOf(query) {
  const get = (name) => query.get(name) || "";
  const problems = [];
  const probe = one(index.probes, get("probe"), index.probes[0], "probe", problems);
  const model = one(probe.models, get("model"), probe.models[0], `model of ${probe.name}`, problems);
  const shown = model.shown.map((place) => model.sheets[place]);
  const run = sheetNamed(model, get("run")) || shown[0];
  if (get("run") && ![run.name, run.run].includes(get("run"))) {
    problems.push(`There are no answers “${get("run")}” of ${model.name} here.`);
  }
  let against = shown[1] && shown[1] !== run ? { model, told: shown[1] } : null;
  if (get("against")) {
    const wanted = probe.models.map((each) => ({ model: each, told: sheetNamed(each, get("against")) }));
    against = wanted.find((each) => each.told && each.model === model)
      || wanted.find((each) => each.told) || null;
    if (!against && get("against") !== "none") {
      problems.push(`There are no answers “${get("against")}” to put beside them.`);
    }
  }
  let show = get("show") || "all";
  if (!SHOW.includes(show)) {
    problems.push(`“${show}” is none of ${SHOW.join(", ")}.`);
    show = "all";
  }
  if (!against && (show === "lost" || show === "gained")) {
    problems.push(`Nothing is ${show} where no other answers stand beside.`);
    show = "all";
  }
  return {
    probe, model, run, against, show, problems, cluster: get("cluster"), hops: get("hops"),
    q: get("q"), item: get("item"), page: Math.max(1, Math.floor(Number(get("page"))) || 1),
  };
}

// ---- what of it is shown

// Each row: [place of the item, its row in the sheet, its row in the other one or undefined].
function pairs(view) {
  const other = view.other ? view.other.rows : new Map();
  return view.sheet.places.map((place, i) => [place, i, other.get(place)]);
}

const kinds = {
  all: () => true,
  right: (view, i) => view.sheet.counted[i] === 1,
  wrong: (view, i) => view.sheet.counted[i] === 0,
  tied: (view, i) => (view.sheet.tied.get(i) || 0) > 1,
  lost: (view, i, was) => was !== undefined && view.sheet.counted[i] < view.other.counted[was],
  gained: (view, i, was) => was !== undefined && view.sheet.counted[i] > view.other.counted[was],
};

const itemName = (columns, place) => `${columns.id?.[place] || ""}@${columns.position[place]}`;

// Who links to an item need not know which run answered it.
async function findItem(view, columns) {
  for (const told of [view.run, ...view.model.sheets]) {
    const sheet = await sheetOf(view.probe, view.model, told);
    if (sheet.places.some((place) => itemName(columns, place) === view.item)) {
      view.run = told;
      if (view.against?.told === told) view.against = null;
      return;
    }
  }
}

function chosen(view, columns, all) {
  if (view.item) return all.filter(([place]) => itemName(columns, place) === view.item);
  const text = view.q && pattern(view.q);
  const isIn = (place) => text.test(columns.question?.[place] || "")
    || (columns.choices?.[place] || []).some((choice) => text.test(choice));
  const group = columns.group || [];
  const cluster = view.cluster && pattern(view.cluster);
  const whole = group.includes(view.cluster);
  const inCluster = (name) => (whole ? name === view.cluster : name !== null && cluster.test(name));
  return all.filter(([place, i, was]) =>
    kinds[view.show](view, i, was)
    && (!text || isIn(place))
    && (!cluster || inCluster(group[place] ?? null))
    && (!view.hops || String(columns.hops?.[place]) === view.hops));
}

// ---- showing it

function options(select, pairsOfNames, value) {
  select.replaceChildren(...pairsOfNames.map(([name, text]) => make("option", { value: name }, text)));
  select.value = value;
}

const sheetOptions = (model) => model.sheets.map((sheet) => [sheet.name, sheet.label]);

function fillForm(view, columns, all) {
  options(fields.probe, index.probes.map(({ name }) => [name, name]), view.probe.name);
  options(fields.model, view.probe.models.map(({ name }) => [name, name]), view.model.name);
  options(fields.run, sheetOptions(view.model), view.run.name);
  options(fields.against, [["none", "nothing"]], "none");
  for (const model of view.probe.models) {
    const group = make("optgroup", { label: model.name });
    group.append(...sheetOptions(model).map(([name, text]) => make("option", { value: name }, text)));
    fields.against.append(group);
  }
  if (view.against) fields.against.value = view.against.told.name;
  const possible = SHOW.filter((kind) => view.against || (kind !== "lost" && kind !== "gained"));
  options(fields.show, possible.map((kind) => {
    const num = all.filter(([, i, was]) => kinds[kind](view, i, was)).length;
    return [kind, `${kind} (${format(num)})`];
  }), view.show);
  const hops = [...new Set(columns.hops || [])].filter((each) => each !== null).sort((a, b) => a - b);
  options(fields.hops, [["", "all"], ...hops.map((each) => [String(each), String(each)])], view.hops);
  fields.hops.parentNode.hidden = !hops.length;
  const clusters = [...new Set(columns.group || [])].filter((each) => each !== null).sort();
  fields.cluster.parentNode.hidden = !clusters.length;
  document.getElementById("items-clusters").replaceChildren(
    ...clusters.slice(0, MOST_CONCEPTS).map((name) => make("option", { value: name })));
  for (const name of ["cluster", "q"]) {
    if (document.activeElement !== fields[name]) fields[name].value = view[name];
  }
  form.hidden = false;
}

// The answers, or others beside them; models that differ are named.
function called(view, other) {
  const { model, told } = other || { model: view.model, told: view.run };
  return view.against && view.against.model !== view.model ? `${model.name}, ${told.label}` : told.label;
}

const runLink = ({ run, label }) => make("a", { href: `#run-${run}` }, label);

// Softmax over the scores; a null is the lowest score there is.
function shares(scores) {
  const numbers = scores.map((score) => (score === null ? -Infinity : score));
  const top = Math.max(...numbers);
  if (top === -Infinity) return numbers.map(() => 0);
  const powers = numbers.map((number) => Math.exp(number - top));
  const sum = powers.reduce((total, power) => total + power, 0);
  return powers.map((power) => power / sum);
}

function scoreCell(answered, choice, className) {
  if (!answered) return null;
  if (answered.i === undefined) return make("td", { class: className }, "not asked");
  const { scores, said } = answered.sheet.answers;
  const score = scores[answered.i][choice];
  if (score === undefined) return make("td", { class: className }, "–");
  const tied = answered.sheet.tied.get(answered.i) || 1;
  const isSaid = said[answered.i] === choice;
  const mark = isSaid ? (tied > 1 ? ` answer, one of ${tied} alike` : " answer") : "";
  const text = score === null ? (said[answered.i] === null ? "not a number" : "−∞") : String(score).replace("-", "−");
  const filled = (100 * shares(scores[answered.i])[choice]).toFixed(1);
  return make("td", { class: className }, text, make("small", {}, mark),
    make("span", { class: "bar", "aria-hidden": "true" }, make("span", { style: `width:${filled}%` })));
}

function choicesTable(view, columns, place, now, was) {
  const choices = [...(columns.choices[place] || [])];
  const num = Math.max(choices.length, now.sheet.answers.scores[now.i].length);
  while (choices.length < num) choices.push("");
  const scores = now.sheet.answers.scores[now.i];
  const gold = columns.answer[place];
  // Of very many choices the right one, the answers and the best ones are shown first.
  const first = new Set([gold, now.sheet.answers.said[now.i], was?.i === undefined ? gold : was.sheet.answers.said[was.i]]);
  const best = choices.map((_, i) => i).sort((a, b) => (scores[b] ?? -Infinity) - (scores[a] ?? -Infinity));
  for (const i of best) if (first.size < MOST_CHOICES) first.add(i);
  const rows = choices.map((text, i) => {
    const name = make("th", { scope: "row", class: i === gold ? "gold" : "" },
      i === gold ? "✓ " : "", text || "(empty)", make("small", {}, i === gold ? " right answer" : ""));
    const row = make("tr", {}, name, scoreCell(was, i, "was"), scoreCell(now, i, "now"));
    row.hidden = num > MOST_CHOICES && !first.has(i);
    return row;
  });
  const head = make("tr", {}, make("th", { scope: "col" }, "choice"),
    was ? make("th", { scope: "col" }, called(view, view.against)) : null,
    make("th", { scope: "col" }, called(view)));
  const table = make("table", {}, make("thead", {}, head), make("tbody", {}, ...rows));
  if (!rows.some((row) => row.hidden)) return table;
  const more = make("button", { type: "button" }, `Show all ${format(num)} choices`);
  more.onclick = () => {
    for (const row of rows) row.hidden = false;
    more.remove();
  };
  return make("div", {}, table, more);
}

function wordsTable(view, columns, place, now, was) {
  const target = columns.choices?.[place]?.[0];
  const rows = [[was, view.against], [now, null]].filter(([own]) => own).map(([own, other]) => {
    const words = own.i === undefined ? "not asked" : own.sheet.answers.words[own.i].join(", ");
    const score = own.i === undefined ? undefined : own.sheet.answers.scores[own.i][0];
    const probability = target && score !== undefined && score !== null ? `${target}: probability ${score}` : "";
    return make("tr", {}, make("th", { scope: "row" }, called(view, other)),
      make("td", {}, words || "–", probability ? make("small", {}, ` (${probability})`) : null));
  });
  return make("table", {}, make("tbody", {}, ...rows));
}

function verdict(view, i, was) {
  const said = SHOW.slice(1).filter((kind) => kinds[kind](view, i, was));
  const count = view.sheet.counted[i];
  if (count > 0 && count < 1) said.push(`counts ${Number(count.toPrecision(2))}`);
  if (view.sheet.answers.said?.[i] === null) said.push("no answer");
  return said.join(", ") || "not judged";
}

function card(view, columns, [place, i, was]) {
  const id = itemName(columns, place);
  const now = { sheet: view.sheet, i };
  const before = view.other ? { sheet: view.other, i: was } : null;
  const isContext = Boolean(view.sheet.answers.words);
  const fact = (column, text) => {
    const value = columns[column]?.[place] ?? null;
    return value === null ? null : make("span", {}, text(value));
  };
  const group = columns.group?.[place] ?? null;
  const every = make("button", { type: "button" }, "every run’s answer");
  const article = make("li", { class: "item" },
    make("p", { class: "about" },
      make("span", { class: "verdict" }, verdict(view, i, was)),
      make("a", { href: address(view, { item: id }), title: "Address of this item" }, id),
      group === null ? null : make("span", {}, "concept ",
        make("a", { href: address(view, { cluster: group, item: "" }) }, group)),
      fact("hops", (hops) => `${hops} ${hops === 1 ? "hop" : "hops"}`),
      fact("distractor_type", (type) => `distractors: ${type}`),
      fact("distractor_hops", (hops) => `distractors at ${hops} ${hops === 1 ? "hop" : "hops"}`),
      every),
    columns.question?.[place] ? make("p", { class: "question" }, columns.question[place], isContext ? " …" : "") : null,
    isContext && columns.expected?.[place]?.length
      ? make("p", { class: "about" }, make("span", {}, `expected: ${columns.expected[place].join(", ")}`)) : null,
    (isContext ? wordsTable : choicesTable)(view, columns, place, now, before));
  every.onclick = () => everyAnswer(view, columns, place, every, article);
  if (view.item) everyAnswer(view, columns, place, every, article);
  return article;
}

async function everyAnswer(view, columns, place, button, article) {
  button.remove();
  const rows = [];
  try {
    for (const model of view.probe.models) {
      for (const told of model.sheets) {
        const sheet = await sheetOf(view.probe, model, told);
        const i = sheet.rows.get(place);
        if (i === undefined) continue;
        const { said, words } = sheet.answers;
        const answer = words ? words[i].join(", ") : said[i] === null ? "nothing" : columns.choices[place][said[i]] || "(empty)";
        const count = sheet.counted[i];
        const counts = count === null ? "–" : count === 1 ? "right" : count === 0 ? "wrong" : `counts ${Number(count.toPrecision(2))}`;
        rows.push(make("tr", {}, make("th", { scope: "row" }, `${model.name}, `, runLink(told)),
          make("td", {}, answer), make("td", {}, counts)));
      }
    }
  } catch (error) {
    complain([error.message]);
    return;
  }
  const names = ["run", "answer", "counts"].map((name) => make("th", { scope: "col" }, name));
  article.append(make("table", {}, make("thead", {}, make("tr", {}, ...names)), make("tbody", {}, ...rows)));
}

function complain(problems) {
  const text = problems.join(" ");
  if (problem.textContent !== text) problem.textContent = text;
}

function pageLinks(view, num) {
  const pages = Math.max(1, Math.ceil(num / PER_PAGE));
  const link = (page, text) => make("a", { href: address(view, { page: page === 1 ? "" : page }) }, text);
  return [
    view.item ? make("a", { href: address(view, { item: "" }) }, "All items") : null,
    view.page > 1 ? link(view.page - 1, "Previous") : null,
    pages > 1 ? make("span", {}, `page ${format(view.page)} of ${format(pages)} `) : null,
    view.page < pages ? link(view.page + 1, "Next") : null,
  ].filter(Boolean);
}

let latest = 0;
let isOwnChange = false;

async function render() {
  const query = asked() || new URLSearchParams();
  const scroll = Boolean(asked()) && !isOwnChange;
  isOwnChange = false;
  latest += 1;
  const turn = latest;
  const view = viewOf(query);
  try {
    const columns = await itemsOf(view.probe);
    if (view.item && !query.get("run")) await findItem(view, columns);
    view.sheet = await sheetOf(view.probe, view.model, view.run);
    view.other = view.against && await sheetOf(view.probe, view.against.model, view.against.told);
    if (turn !== latest) return;
    const all = pairs(view);
    const found = chosen(view, columns, all);
    view.page = Math.min(view.page, Math.max(1, Math.ceil(found.length / PER_PAGE)));
    const start = (view.page - 1) * PER_PAGE;
    const some = found.slice(start, start + PER_PAGE);
    if (view.item && !found.length) view.problems.push(`${view.run.label} of ${view.model.name} has no item ${view.item}.`);
    complain(view.problems);
    fillForm(view, columns, all);
    status.textContent = `${format(found.length)} of ${format(all.length)} items`
      + (found.length > some.length ? `, ${format(start + 1)} to ${format(start + some.length)} shown` : "");
    const linked = ({ run, protocol }, other) =>
      [make("a", { href: `#run-${run}` }, called(view, other)), ` (${protocol})`];
    section.querySelector(".answers").replaceChildren("Answers: ", ...linked(view.run),
      ...(view.against ? [", beside: ", ...linked(view.against.told, view.against)] : []), ".");
    list.replaceChildren(...some.map((row) => card(view, columns, row)));
    section.querySelector(".pages").replaceChildren(...pageLinks(view, found.length));
    if (scroll) {
      section.scrollIntoView();
      if (String(query)) status.focus({ preventScroll: true });
    }
  } catch (error) {
    if (turn === latest) complain([...view.problems, error.message]);
  }
}

// ---- what the reader does

function go(hash, replacing) {
  if (hash === window.location.hash) return;
  isOwnChange = true;
  if (replacing) window.location.replace(hash); else window.location.hash = hash;
}

function changed(name) {
  const value = (field) => fields[field].value;
  const kept = { show: value("show"), q: value("q") };
  const query = new URLSearchParams();
  const put = (given) => Object.entries(given).forEach(([key, own]) => own && own !== "all" && query.set(key, own));
  put({ probe: value("probe"), ...kept });
  if (name !== "probe") put({ model: value("model"), cluster: value("cluster"), hops: value("hops") });
  if (name !== "probe" && name !== "model") put({ run: value("run"), against: value("against") });
  go(`#items?${query}`, name === "q" || name === "cluster");
}

let timer = 0;
form.addEventListener("submit", (event) => event.preventDefault());
form.addEventListener("input", ({ target }) => {
  clearTimeout(timer);
  const isText = target.name === "q" || target.name === "cluster";
  timer = setTimeout(() => changed(target.name), isText ? 150 : 0);
});

let begun = false;
function begin() {
  if (begun) return;
  begun = true;
  status.textContent = "Unpacking the items …";
  render();
}
window.addEventListener("hashchange", () => {
  if (!asked()) return;
  if (begun) render(); else begin();
});
if (asked()) begin();
else if (window.IntersectionObserver) {
  const observer = new IntersectionObserver((entries) => {
    if (!entries.some((entry) => entry.isIntersecting)) return;
    observer.disconnect();
    begin();
  }, { rootMargin: "600px" });
  observer.observe(section);
} else begin();
})();
