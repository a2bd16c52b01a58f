// The section: its form, its list, and what the reader does.

const FIRST = 6; // cards before anything was asked for: the sections of the page are below them
const PER_PAGE = 25;
const MOST_CONCEPTS = 1000;
const section = document.getElementById("items");
const form = section.querySelector("form");
const fields = form.elements;
const problem = section.querySelector("[role=alert]");
const status = section.querySelector("[role=status]");
const list = section.querySelector(".list");

function options(select, pairsOfNames, value) {
  select.replaceChildren(...pairsOfNames.map(([name, text]) => make("option", { value: name }, text)));
  select.value = value;
}

const sheetOptions = (model) => model.sheets.map((sheet) => [sheet.name, sheet.label]);

const known = (column) => [...new Set(column || [])].filter((each) => each !== null);

function fillFacts(view, columns) {
  fields.hops.dataset.probe = view.probe.name;
  const hops = known(columns.hops).sort((a, b) => a - b);
  options(fields.hops, [["", "all"], ...hops.map((each) => [String(each), String(each)])], "");
  fields.hops.parentNode.hidden = !hops.length;
  const clusters = known(columns.group).sort();
  fields.cluster.parentNode.hidden = !clusters.length;
  document.getElementById("items-clusters").replaceChildren(
    ...clusters.slice(0, MOST_CONCEPTS).map((name) => make("option", { value: name })));
}

// What is being typed stays: the reader may have gone on since.
function fillForm(view, columns, all, isTyped) {
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
  if (fields.hops.dataset.probe !== view.probe.name) fillFacts(view, columns);
  fields.hops.value = view.hops;
  for (const name of ["cluster", "q"]) {
    if (!isTyped || document.activeElement !== fields[name]) fields[name].value = view[name];
  }
  form.hidden = false;
}

function complain(problems) {
  const text = problems.join(" ");
  if (problem.textContent !== text) problem.textContent = text;
}

function pageLinks(view, num, isFirst) {
  const pages = Math.max(1, Math.ceil(num / PER_PAGE));
  const link = (page, text) => make("a", { href: address(view, { page: page === 1 ? "" : page }) }, text);
  if (isFirst) return num > FIRST ? [make("a", { href: address(view) }, `All ${format(num)} items`)] : [];
  return [
    view.item ? make("a", { href: address(view, { item: "" }) }, "All items") : null,
    view.page > 1 ? link(view.page - 1, "Previous") : null,
    pages > 1 ? make("span", {}, `page ${format(view.page)} of ${format(pages)} `) : null,
    view.page < pages ? link(view.page + 1, "Next") : null,
  ].filter(Boolean);
}

let latest = 0;

// isTyped: the address is what the form was just changed to, not a link that was followed.
async function render(isTyped) {
  const isFirst = !asked();
  const query = asked() || new URLSearchParams();
  latest += 1;
  const turn = latest;
  const view = viewOf(query);
  try {
    const columns = await part(view.probe.part);
    if (view.item && !query.get("run")) await findItem(view, columns);
    view.sheet = await sheetOf(view.probe, view.model, view.run);
    view.other = view.against && await sheetOf(view.probe, view.against.model, view.against.told);
    if (turn !== latest) return;
    const all = pairs(view);
    const found = chosen(view, columns, all);
    view.page = Math.min(view.page, Math.max(1, Math.ceil(found.length / PER_PAGE)));
    const start = (view.page - 1) * PER_PAGE;
    const some = found.slice(start, start + (isFirst ? FIRST : PER_PAGE));
    if (view.item && !found.length) view.problems.push(`The answers of ${view.model.name} (${view.run.label}) have no item ${view.item}.`);
    if (view.hops && !known(columns.hops).map(String).includes(view.hops)) {
      view.problems.push(`No item of ${view.probe.name} has “${view.hops}” hops.`);
    }
    complain(view.problems);
    fillForm(view, columns, all, isTyped);
    status.textContent = `${format(found.length)} of ${format(all.length)} items`
      + (found.length > some.length ? `, showing ${format(start + 1)} to ${format(start + some.length)}` : "");
    const linked = ({ run, protocol }, other) =>
      [make("a", { href: `#run-${run}` }, called(view, other)), ` (${protocol} run)`];
    section.querySelector(".answers").replaceChildren("Answers: ", ...linked(view.run),
      ...(view.against ? [", compared with: ", ...linked(view.against.told, view.against)] : []), ".");
    list.replaceChildren(...some.map((row) => card(view, columns, row)));
    section.querySelector(".pages").replaceChildren(...pageLinks(view, found.length, isFirst));
    if (!isFirst && !isTyped) {
      (view.item ? status : section).scrollIntoView();
      if (String(query)) status.focus({ preventScroll: true });
    }
  } catch (error) {
    if (turn === latest) complain([...view.problems, error.message]);
  }
}

let isGoing = false; // to what the form says, until the address has changed
function go(hash, replacing) {
  if (hash === window.location.hash) return;
  isGoing = true;
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
function begin(isTyped = false) {
  if (!begun) status.textContent = "Loading the items …";
  begun = true;
  render(isTyped);
}
window.addEventListener("hashchange", () => {
  const isTyped = isGoing;
  isGoing = false;
  if (!isTyped) clearTimeout(timer); // of a key before the link was followed
  if (asked()) begin(isTyped);
});
if (asked()) begin();
else if (window.IntersectionObserver) {
  const observer = new IntersectionObserver((entries) => {
    if (!entries.some((entry) => entry.isIntersecting)) return;
    observer.disconnect();
    if (!begun) begin();
  }, { rootMargin: "600px" });
  observer.observe(section);
} else begin();
