// Show and hide sections of the page, and draw its charts. All figures come with the page; none is computed here.
// The choice is kept in the address (#dataset=eq&track=plain&scale=log&without=xml,excel), so it can be shared.
"use strict";
(() => {
  const data = JSON.parse(document.getElementById("page-data").textContent);
  const form = document.getElementById("controls");
  if (!form) return;
  const status = document.getElementById("state");
  const formatBoxes = [...form.querySelectorAll("input[name=format]")];
  const charts = new Map();
  for (const section of data.sections) {
    for (const chart of Object.values(section.charts || {}).flat()) charts.set(chart.id, chart);
  }
  const state = { wanted: {}, scale: "auto", without: new Set() };

  // --- the address --------------------------------------------------------------------------------------------------

  function readAddress() {
    const told = new URLSearchParams(location.hash.includes("=") ? location.hash.slice(1) : "");
    state.wanted = {};
    for (const key of data.facets) if (told.has(key)) state.wanted[key] = told.get(key);
    state.scale = ["linear", "log"].includes(told.get("scale")) ? told.get("scale") : "auto";
    state.without = new Set((told.get("without") || "").split(",").filter(Boolean));
  }

  function writeAddress() {
    const told = new URLSearchParams();
    for (const key of data.facets) if (state.wanted[key] !== undefined) told.set(key, state.wanted[key]);
    if (state.scale !== "auto") told.set("scale", state.scale);
    if (state.without.size) told.set("without", [...state.without].sort().join(","));
    history.replaceState(null, "", "#" + told.toString().replaceAll("%2C", ","));
  }

  // --- choosing -----------------------------------------------------------------------------------------------------

  // Choose a value of each facet in turn, among the sections that remain. If the wanted value is not available, take
  // the first one.
  function choose() {
    let left = data.sections;
    const chosen = {};
    const offered = {};
    for (const key of data.facets) {
      const values = [...new Set(left.filter((each) => key in each.facets).map((each) => each.facets[key]))];
      if (!values.length) continue;
      offered[key] = new Set(values);
      chosen[key] = values.includes(state.wanted[key]) ? state.wanted[key] : values[0];
      left = left.filter((each) => !(key in each.facets) || each.facets[key] === chosen[key]);
    }
    return { shown: left, chosen, offered };
  }

  function show() {
    const { shown, chosen, offered } = choose();
    const ids = new Set(shown.map((each) => each.id));
    for (const section of data.sections) document.getElementById(section.id).hidden = !ids.has(section.id);
    for (const fieldset of form.querySelectorAll("fieldset[data-facet]")) {
      const key = fieldset.dataset.facet;
      const values = offered[key] || new Set();
      fieldset.hidden = values.size < 2;
      for (const input of fieldset.querySelectorAll("input")) {
        input.closest("label").hidden = !values.has(input.value);
        input.checked = input.value === chosen[key];
      }
    }
    for (const input of form.querySelectorAll("input[name=scale]")) input.checked = input.value === state.scale;
    const there = new Set(shown.flatMap((each) => each.formats || []));
    for (const box of formatBoxes) {
      box.checked = !state.without.has(box.value);
      box.closest("label").hidden = there.size > 0 && !there.has(box.value);
    }
    for (const each of document.querySelectorAll("[data-format]")) each.hidden = state.without.has(each.dataset.format);
    const known = formatBoxes.filter((box) => !box.closest("label").hidden);
    const words = Object.keys(chosen).filter((key) => offered[key].size > 1).map((key) => chosen[key]);
    if (known.length) words.push(`${known.filter((box) => box.checked).length} of ${known.length} formats`);
    status.textContent = words.length ? `Showing ${words.join(", ")}` : "";
    redraw();
  }

  form.addEventListener("change", (event) => {
    const input = event.target;
    if (input.name === "scale") state.scale = input.value;
    else if (input.name === "format") state.without[input.checked ? "delete" : "add"](input.value);
    else {
      state.wanted = { ...choose().chosen, [input.name]: input.value };
      state.wanted = choose().chosen;
    }
    writeAddress();
    show();
  });
  form.addEventListener("submit", (event) => event.preventDefault());

  function allFormats(on) {
    for (const box of formatBoxes) if (!box.closest("label").hidden) state.without[on ? "delete" : "add"](box.value);
    writeAddress();
    show();
  }
  document.getElementById("all-formats")?.addEventListener("click", () => allFormats(true));
  document.getElementById("no-formats")?.addEventListener("click", () => allFormats(false));

  window.addEventListener("hashchange", () => {
    readAddress();
    show();
  });
  // Links within this page scroll without losing the choice in the address.
  document.addEventListener("click", (event) => {
    const link = event.target.closest("a[href^='#']");
    const place = link && !link.hash.includes("=") && document.getElementById(link.hash.slice(1));
    if (!place) return;
    event.preventDefault();
    place.scrollIntoView();
    place.focus({ preventScroll: true });
  });

  // --- drawing ------------------------------------------------------------------------------------------------------

  const seen = new Set();
  const drawn = new Map();
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const watcher = new IntersectionObserver(
    (entries) => {
      for (const entry of entries) {
        seen[entry.isIntersecting ? "add" : "delete"](entry.target.id);
        if (entry.isIntersecting) draw(entry.target.id);
      }
    },
    { rootMargin: "300px" },
  );

  function redraw() {
    for (const id of seen) draw(id);
  }

  function colour(name) {
    return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
  }

  function isLog(wide) {
    return state.scale === "log" || (state.scale === "auto" && wide);
  }

  function look() {
    const ink = colour("ink");
    const quiet = colour("quiet");
    const line = colour("line");
    return {
      background: "transparent",
      font: getComputedStyle(document.body).fontFamily,
      view: { stroke: null },
      axis: {
        labelColor: quiet, titleColor: quiet, titleFontWeight: "normal", gridColor: line, domainColor: line,
        tickColor: line, labelFontSize: 12, titleFontSize: 12,
      },
      axisX: { labelFlush: true, labelOverlap: true, tickCount: 5 },
      axisBand: { grid: false, ticks: false, domain: false, labelColor: ink, labelPadding: 8 },
      rule: { color: ink }, tick: { color: ink }, text: { color: ink, fontSize: 12 },
      line: { color: quiet, strokeWidth: 1.5 },
    };
  }

  // Grid values of a logarithmic axis: powers of ten, or 1, 2 and 5 times each on a short axis.
  function powers(least, most) {
    const steps = Math.log10(most / least) > 2.5 ? [1] : [1, 2, 5];
    const found = [];
    for (let power = Math.floor(Math.log10(least)); power <= Math.log10(most); power += 1)
      for (const step of steps) found.push(Number((step * 10 ** power).toPrecision(1)));
    return found.filter((value) => value >= least && value <= most);
  }

  function layer(spec, name) {
    return spec.layer.find((each) => each.name === name);
  }

  function barsOf(chart, width) {
    const spec = structuredClone(data.specs.bars);
    let rows = chart.rows.filter((row) => !state.without.has(row.format));
    const bars = layer(spec, "bars").encoding;
    const log = isLog(chart.wide);
    const values = rows.flatMap((row) => [row.value, row.low]).concat(chart.raw_io).filter((value) => value > 0);
    spec.encoding.y.axis.labelLimit = Math.min(230, width * 0.4);
    spec.padding = { left: 0, top: 4, bottom: 4, right: 4 };
    const narrow = width < 480;
    spec.height = (narrow ? 29 : 23) * Math.max(rows.length, 1);
    if (narrow) Object.assign(spec.encoding.y.axis, { labelExpr: "split(replace(datum.label, '[', '\\n['), '\\n')", labelFontSize: 11, labelLineHeight: 12 });
    layer(spec, "raw_io_line").data.values = chart.raw_io === null ? [] : [{ raw_io: chart.raw_io }];
    if (log && values.length) {
      const least = Math.min(...values) / 2;
      bars.x.scale = { type: "log", domainMin: least, nice: false };
      bars.x.axis = { values: powers(least, Math.max(...values)) };
      // A logarithmic scale has no 0, so bars begin at its left end.
      const above = (value) => (value === null ? null : Math.max(value, least));
      rows = rows.map((row) => ({ ...row, value: above(row.value), low: above(row.low), high: above(row.high) }));
    } else bars.x.scale = { zero: true };
    spec.data.values = rows;
    bars.color.scale.range = data.colours.map(colour);
    layer(spec, "halo").mark.color = colour("paper");
    return spec;
  }

  function scatterOf(chart, width) {
    const spec = structuredClone(data.specs.scatter);
    spec.data.values = chart.rows.filter((row) => !state.without.has(row.format));
    layer(spec, "frontier_line").data.values = chart.frontier;
    for (const [axis, wide, field] of [["x", chart.x_wide, "size"], ["y", chart.y_wide, "time"]]) {
      const values = spec.data.values.map((row) => row[field]).filter((value) => value > 0);
      if (!isLog(wide) || !values.length) continue;
      spec.encoding[axis].scale = { ...spec.encoding[axis].scale, type: "log", zero: undefined };
      spec.encoding[axis].axis = { values: powers(Math.min(...values) / 2, 2 * Math.max(...values)) };
    }
    spec.encoding.x.title = chart.x_title;
    spec.encoding.y.title = chart.y_title;
    const points = layer(spec, "points").encoding.color;
    points.condition.value = colour("accent");
    points.value = colour("point");
    return spec;
  }

  function linesOf(chart, width) {
    const spec = structuredClone(data.specs.lines);
    const shown = (row) => !state.without.has(row.format);
    const range = data.line_colours.map(colour);
    spec.data.values = chart.rows.filter(shown);
    for (const name of ["crossing_bands", "crossings"])
      layer(spec, name).data.values = chart.crossings.filter((each) => each.formats.every((format) => !state.without.has(format)));
    layer(spec, "crossing_bands").mark.color = colour("ink");
    for (const [name, rows] of [["others", chart.others], ["joints", chart.labels.filter(shown)], ["labels", chart.labels.filter(shown)], ["other_labels", chart.other_labels]])
      layer(spec, name).data.values = rows;
    for (const each of spec.layer) if (each.encoding.color) each.encoding.color.scale.range = range;
    layer(spec, "other_labels").mark.color = colour("quiet");
    Object.assign(spec.encoding.x, chart.x);
    for (const each of spec.layer) if (each.encoding.y) Object.assign(each.encoding.y, chart.y, { title: null });
    const names = [...chart.labels, ...chart.other_labels].map((each) => each.label.length);
    const room = Math.min(7 * Math.max(...names, 0) + 12, width * 0.4);
    for (const name of ["labels", "other_labels"]) layer(spec, name).mark.limit = room - 10;
    // The size that is fitted to the page already includes the labels next to the lines, so they need no extra padding.
    spec.padding = { left: 0, top: 6, bottom: 4, right: 4 };
    return spec;
  }

  async function draw(id) {
    const chart = charts.get(id);
    const place = document.getElementById(id);
    const key = JSON.stringify([state.scale, [...state.without].sort(), dark.matches]);
    if (!chart || drawn.get(id)?.key === key) return;
    const before = drawn.get(id);
    const current = { key };
    drawn.set(id, current);
    const spec = { bars: barsOf, scatter: scatterOf, lines: linesOf }[chart.kind](chart, place.clientWidth);
    spec.description = chart.title;
    const made = await vegaEmbed(place, spec, {
      // Use Vega's expression interpreter, so that the page's Content-Security-Policy need not allow eval.
      ast: true, actions: false, renderer: "svg", config: look(), logLevel: 1, // only errors
      tooltip: { theme: dark.matches ? "dark" : "light" },
    });
    before?.made?.finalize();
    current.made = made;
    place.dataset.drawn = key;
  }

  dark.addEventListener("change", redraw);
  readAddress();
  form.hidden = false;
  show();
  for (const id of charts.keys()) watcher.observe(document.getElementById(id));
})();
