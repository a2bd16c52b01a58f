// The address says what is shown.

const SHOW = ["all", "right", "wrong", "tied", "lost", "gained"];

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

// The one of a list that has this name. Without a name, or if none has it (a problem), the first one.
function one(all, name, first, noun, where, problems) {
  const found = all.find((each) => each.name === name);
  if (!found && name) problems.push(`There is no ${noun} “${name}” ${where}.`);
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
  const probe = one(index.probes, get("probe"), index.probes[0], "probe", "in this report", problems);
  const model = one(probe.models, get("model"), probe.models[0], "model", `for ${probe.name}`, problems);
  const shown = model.shown.map((place) => model.sheets[place]);
  const run = sheetNamed(model, get("run")) || shown[0];
  if (get("run") && ![run.name, run.run].includes(get("run"))) {
    problems.push(`There are no answers “${get("run")}” from ${model.name}.`);
  }
  let against = shown[1] && shown[1] !== run ? { model, told: shown[1] } : null;
  if (get("against")) {
    const wanted = probe.models.map((each) => ({ model: each, told: sheetNamed(each, get("against")) }));
    against = wanted.find((each) => each.told && each.model === model)
      || wanted.find((each) => each.told) || null;
    if (!against && get("against") !== "none") {
      problems.push(`There are no answers “${get("against")}” to compare with.`);
    }
  }
  let show = get("show") || "all";
  if (!SHOW.includes(show)) {
    problems.push(`“${show}” is not one of ${SHOW.join(", ")}.`);
    show = "all";
  }
  if (!against && (show === "lost" || show === "gained")) {
    problems.push(`To see ${show} items, choose answers to compare with.`);
    show = "all";
  }
  return {
    probe, model, run, against, show, problems, cluster: get("cluster"), hops: get("hops"),
    q: get("q"), item: get("item"), page: Math.max(1, Math.floor(Number(get("page"))) || 1),
  };
}
