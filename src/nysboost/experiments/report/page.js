"use strict";
(() => {
  const SVG = "http://www.w3.org/2000/svg";
  const LEFT = 74, RIGHT = 14, TOP = 12, BOTTOM = 44, LETTER = 6.8, LINE = 14, NARROW = 760;
  const charts = JSON.parse(document.getElementById("data").textContent);

  const svg = (name, attributes, parent) => {
    const node = document.createElementNS(SVG, name);
    for (const key in attributes) node.setAttribute(key, attributes[key]);
    if (parent) parent.appendChild(node);
    return node;
  };
  const html = (name, attributes, parent, text) => {
    const node = document.createElement(name);
    for (const key in attributes) node.setAttribute(key, attributes[key]);
    if (text !== undefined) node.textContent = text;
    if (parent) parent.appendChild(node);
    return node;
  };
  const format = v => v === null || v === undefined ? "–"
    : v !== 0 && (Math.abs(v) < 1e-3 || Math.abs(v) >= 1e5) ? Number(v.toPrecision(3)).toExponential() : String(+v.toPrecision(4));

  function linearTicks(low, high) {
    const raw = (high - low) / 6, power = 10 ** Math.floor(Math.log10(raw));
    const step = [1, 2, 5, 10].map(m => m * power).find(s => s >= raw);
    const ticks = [];
    for (let i = Math.ceil(low / step - 1e-9); i * step <= high * (1 + 1e-9); i++) ticks.push(i * step);
    return ticks;
  }
  function logTicks(low, high) {
    const decades = Math.log10(high / low), ticks = [];
    const steps = decades > 4 ? [1] : decades > 1.5 ? [1, 3] : [1, 1.5, 2, 3, 4, 5, 6, 8];
    for (let d = Math.floor(Math.log10(low)); d <= Math.ceil(Math.log10(high)); d++)
      for (const s of steps) { const t = s * 10 ** d; if (t >= low * 0.999 && t <= high * 1.001) ticks.push(t); }
    return ticks;
  }

  // Labels that would run into the one before them are left out; ends are [from, to] of each.
  function apart(ticks, ends) {
    let last = -Infinity;
    return ticks.filter(t => { const [from, to] = ends(t); if (from < last + 8) return false; last = to; return true; });
  }
  // A name goes beside its point, or as near as it covers no other name or point.
  function placed(w, x, y, taken, frame) {
    const gap = 8, found = [];
    const overlap = (b, t) => Math.max(0, Math.min(b[2], t[2]) - Math.max(b[0], t[0])) * Math.max(0, Math.min(b[3], t[3]) - Math.max(b[1], t[1]));
    for (let line = -8; line <= 8; line++) for (const left of [x + gap, x - gap - w, x - w / 2]) {
      const middle = y + line * LINE, box = [left, middle - LINE / 2, left + w, middle + LINE / 2];
      if (box[0] < frame[0] || box[1] < frame[1] || box[2] > frame[2] || box[3] > frame[3]) continue;
      const covers = taken.reduce((sum, t) => sum + overlap(box, t), 0);
      found.push([100 * covers + 4 * Math.abs(line) + (left > x ? 0 : 1), box]);
    }
    return found.length ? found.sort((a, b) => a[0] - b[0])[0][1] : [x, y - LINE / 2, x + w, y + LINE / 2];
  }

  function mark(kind, x, y, colour, parent) {
    const r = 3.4, stroke = { stroke: colour, "stroke-width": 1.6, fill: "none" };
    if (kind === "") return null;
    if (kind === "s") return svg("rect", { x: x - r, y: y - r, width: 2 * r, height: 2 * r, fill: colour }, parent);
    if (kind === "^") return svg("path", { d: `M${x} ${y - r - 1}L${x + r + 1} ${y + r}L${x - r - 1} ${y + r}Z`, fill: colour }, parent);
    if (kind === "D") return svg("path", { d: `M${x} ${y - r - 1}L${x + r + 1} ${y}L${x} ${y + r + 1}L${x - r - 1} ${y}Z`, fill: colour }, parent);
    if (kind === "x") return svg("path", { d: `M${x - r} ${y - r}L${x + r} ${y + r}M${x - r} ${y + r}L${x + r} ${y - r}`, ...stroke }, parent);
    if (kind === "+") return svg("path", { d: `M${x - r} ${y}H${x + r}M${x} ${y - r}V${y + r}`, ...stroke }, parent);
    return svg("circle", { cx: x, cy: y, r, fill: colour }, parent);
  }

  function build(box, chart) {
    const views = Object.keys(chart.views), selections = Object.keys(chart.selections);
    const state = { view: views[0], log: chart.log, shown: new Set(chart.selections[selections[0]]) };
    const bar = html("div", { class: "bar" }, box);
    const plot = html("div", { class: "plot" }, box);
    const legend = html("div", { class: "legend" }, box);
    const canvas = svg("svg", { role: "img", "aria-label": chart.title }, plot);
    const tip = html("div", { class: "tip", hidden: "" }, plot);
    let place = null, W = 760, H = 440;

    function group(label, options, pressed, act) {
      const span = html("span", { class: "group" }, bar);
      html("span", {}, span, label);
      for (const option of options) {
        const button = html("button", { type: "button", "data-option": option }, span, option);
        button.addEventListener("click", () => { act(option); refresh(); });
      }
      return () => span.querySelectorAll("button").forEach(
        b => b.setAttribute("aria-pressed", String(pressed(b.dataset.option))));
    }
    const same = names => names.length === state.shown.size && names.every(n => state.shown.has(n));
    const everything = () => chart.views[state.view].map(s => s.name);
    const some = Object.entries(chart.selections).filter(([, names]) => names.length < everything().length);
    const sets = { ...Object.fromEntries(some), all: null, none: [] };
    const buttons = [
      group("Show", Object.keys(sets), o => same(sets[o] || everything()),
        o => { state.shown = new Set(sets[o] || everything()); }),
      group("Axis", ["linear", "logarithmic"], o => (o === "logarithmic") === state.log,
        o => { state.log = o === "logarithmic"; }),
    ];
    if (views.length > 1) buttons.push(group("View", views, o => o === state.view, o => { state.view = o; }));

    const families = new Map();
    for (const s of chart.views[views[0]]) {
      if (!families.has(s.family)) families.set(s.family, []);
      families.get(s.family).push(s);
    }
    const boxes = new Map();
    for (const [family, members] of families) {
      const set = html("div", { class: "family", role: "group", "aria-label": family }, legend);
      html("b", {}, set, family);
      for (const s of members) {
        const label = html("label", { title: s.name }, set);
        const input = html("input", { type: "checkbox", "data-method": s.name }, label);
        const swatch = svg("svg", { class: "swatch", viewBox: "0 0 26 10" }, label);
        svg("line", { x1: 0, x2: 26, y1: 5, y2: 5, stroke: s.colour, "stroke-width": 2, "stroke-dasharray": s.dash }, swatch);
        mark(s.mark, 13, 5, s.colour, swatch);
        html("span", {}, label, s.name.startsWith(family + "-") ? s.name.slice(family.length + 1) : s.name);
        input.addEventListener("change", () => {
          if (input.checked) state.shown.add(s.name); else state.shown.delete(s.name);
          refresh();
        });
        boxes.set(s.name, input);
      }
    }

    function refresh() {
      buttons.forEach(update => update());
      boxes.forEach((input, name) => { input.checked = state.shown.has(name); });
      draw();
    }

    function draw() {
      canvas.replaceChildren();
      tip.hidden = true;
      // One unit is one pixel, so that letters are as large on a phone.
      W = Math.max(280, plot.clientWidth);
      H = Math.round(Math.max(260, Math.min(440, 0.58 * W)));
      canvas.setAttribute("viewBox", `0 0 ${W} ${H}`);
      const shown = chart.views[state.view].filter(s => state.shown.has(s.name));
      const values = shown.flatMap(s => s.y.flatMap((y, i) => y === null ? [] : [y, ...edges(s, i)])).filter(v => !state.log || v > 0);
      if (!values.length) {
        svg("text", { x: W / 2, y: H / 2, "text-anchor": "middle" }, canvas).textContent = "No method is shown: choose some from the list.";
        place = null;
        return;
      }
      const xs = [...new Set(chart.views[state.view].flatMap(s => s.x))].sort((a, b) => a - b);
      let low = Math.min(...values), high = Math.max(...values);
      if (low === high) { low = low * 0.9; high = high * 1.1 || 1; }
      const room = chart.named ? 0.12 : 0.045;
      if (state.log) { const pad = (high / low) ** room; low /= pad; high *= pad; }
      else { const pad = room * (high - low); low -= pad; high += pad; }
      let x0 = xs[0], x1 = xs.length > 1 ? xs[xs.length - 1] : xs[0] + 1;
      if (chart.log_x) { x0 /= 1.15; x1 *= 1.15; }
      const along = x => chart.log_x ? Math.log(x / x0) / Math.log(x1 / x0) : (x - x0) / (x1 - x0);
      const X = x => LEFT + 8 + along(x) * (W - LEFT - RIGHT - 16);
      const scale = v => state.log ? Math.log(v / low) / Math.log(high / low) : (v - low) / (high - low);
      const Y = v => H - BOTTOM - Math.min(1.2, Math.max(-0.2, scale(v))) * (H - TOP - BOTTOM);
      for (const t of state.log ? logTicks(low, high) : linearTicks(low, high)) {
        svg("line", { class: "grid", x1: LEFT, x2: W - RIGHT, y1: Y(t), y2: Y(t) }, canvas);
        svg("text", { x: LEFT - 7, y: Y(t) + 4, "text-anchor": "end" }, canvas).textContent = format(t);
      }
      const ticks = chart.log_x ? logTicks(x0, x1) : [...new Set(Number.isInteger(x0) ? [x0, ...linearTicks(x0, x1)] : linearTicks(x0, x1))];
      const ends = x => { const half = format(x).length * LETTER / 2; return [X(x) - half, X(x) + half]; };
      for (const x of apart(ticks, ends))
        svg("text", { class: "tick", x: X(x), y: H - BOTTOM + 18, "text-anchor": "middle" }, canvas).textContent = format(x);
      svg("line", { class: "axis", x1: LEFT, x2: W - RIGHT, y1: H - BOTTOM, y2: H - BOTTOM }, canvas);
      svg("line", { class: "axis", x1: LEFT, x2: LEFT, y1: TOP, y2: H - BOTTOM }, canvas);
      svg("text", { x: (LEFT + W - RIGHT) / 2, y: H - 6, "text-anchor": "middle" }, canvas).textContent = chart.x;
      svg("text", { transform: `translate(13 ${(TOP + H - BOTTOM) / 2}) rotate(-90)`, "text-anchor": "middle" }, canvas).textContent = chart.y;
      if (chart.named) names(shown, X, Y);
      for (const s of shown) curve(s, X, Y);
      place = { xs, X, shown };
      const guide = svg("line", { class: "axis guide", y1: TOP, y2: H - BOTTOM, visibility: "hidden" }, canvas);
      place.guide = guide;
    }

    // The ends of the band at one point; where zero lies inside it, a logarithmic axis stops at y/4.
    function edges(s, i) {
      const y = s.y[i], e = s.e ? s.e[i] : null;
      return e === null ? [] : [Math.max(y - e, state.log ? y / 4 : -Infinity), y + e];
    }

    function names(shown, X, Y) {
      const ends = shown.map(s => [s, X(s.x[s.x.length - 1]), Y(s.y[s.y.length - 1])]).sort((a, b) => a[2] - b[2]);
      const taken = ends.map(([, x, y]) => [x - 5, y - 5, x + 5, y + 5]);
      for (const [s, x, y] of ends) {
        const text = svg("text", { class: "name", style: `fill:${s.colour}` }, canvas);
        text.textContent = s.name;
        const box = placed(text.getComputedTextLength(), x, y, taken, [LEFT, TOP, W - 2, H - BOTTOM]);
        taken.push(box);
        const near = Math.min(Math.max(x, box[0]), box[2]), middle = (box[1] + box[3]) / 2;
        if (Math.abs(middle - y) > LINE) svg("line", { class: "axis", x1: x, y1: y, x2: near, y2: middle }, canvas);
        text.setAttribute("x", box[0]);
        text.setAttribute("y", box[1] + 11);
      }
    }

    function curve(s, X, Y) {
      const layer = svg("g", { "data-curve": s.name }, canvas);
      const at = s.x.map((x, i) => [X(x), s.y[i], edges(s, i)]).filter(p => p[1] !== null && (!state.log || p[1] > 0));
      if (at.length > 1 && at.every(p => p[2].length)) {
        const edge = side => at.map(([x, , ends]) => `${x.toFixed(1)} ${Y(ends[side]).toFixed(1)}`);
        svg("path", { class: "band", d: `M${edge(1).join("L")}L${edge(0).reverse().join("L")}Z`, fill: s.colour, "fill-opacity": 0.13 }, layer);
      }
      const line = at.map(([x, y]) => `${x.toFixed(1)} ${Y(y).toFixed(1)}`).join("L");
      svg("path", { d: "M" + line, fill: "none", stroke: s.colour, "stroke-width": 2, "stroke-dasharray": s.dash }, layer);
      for (const [x, y] of at) mark(s.mark, x, Y(y), s.colour, layer);
    }

    plot.addEventListener("mousemove", event => {
      if (!place) return;
      const frame = canvas.getBoundingClientRect();
      const x = (event.clientX - frame.left) / frame.width * W;
      const near = place.xs.reduce((a, b) => Math.abs(place.X(b) - x) < Math.abs(place.X(a) - x) ? b : a);
      const rows = place.shown.map(s => [s, s.x.indexOf(near)]).filter(([s, i]) => i >= 0 && s.y[i] !== null)
        .sort((a, b) => a[0].y[a[1]] - b[0].y[b[1]]);
      if (!rows.length) { tip.hidden = true; return; }
      place.guide.setAttribute("x1", place.X(near));
      place.guide.setAttribute("x2", place.X(near));
      place.guide.setAttribute("visibility", "visible");
      tip.replaceChildren();
      html("b", {}, tip, `${chart.x}: ${format(near)}`);
      for (const [s, i] of rows) {
        const row = html("div", {}, tip);
        html("span", { style: `color:${s.colour}` }, row, "\u25CF ");
        html("span", {}, row, `${s.name}  ${format(s.y[i])}` + (s.e && s.e[i] !== null ? ` \u00B1 ${format(s.e[i])}` : ""));
      }
      tip.hidden = false;
      const left = place.X(near) / W * frame.width;
      tip.style.left = (left > frame.width / 2 ? left - tip.offsetWidth - 12 : left + 12) + "px";
      tip.style.top = Math.max(0, Math.min(event.clientY - frame.top - 20, frame.height - tip.offsetHeight)) + "px";
    });
    plot.addEventListener("mouseleave", () => {
      tip.hidden = true;
      if (place) place.guide.setAttribute("visibility", "hidden");
    });
    refresh();
    window.addEventListener("resize", () => { if (plot.clientWidth !== W) draw(); });
    tests(box, chart);
  }

  // The tests at every point are many: their table is made when someone opens it.
  function tests(box, chart) {
    for (const view of Object.keys(chart.views).reverse()) {
      const tested = chart.views[view].filter(s => s.p && s.p.some(p => p !== null));
      if (!tested.length) continue;
      const fold = html("details", {});
      box.after(fold);
      html("summary", {}, fold, `Tests against ensemble-ridge at every point (${view})`);
      fold.addEventListener("toggle", () => {
        if (!fold.open || fold.querySelector("table")) return;
        html("p", { class: "note" }, fold, "One-sided Welch p-values for \u201Csmaller mean\u201D; bold where it is below 0.01 after Holm\u2019s correction over all of this table.");
        const table = html("table", {}, html("div", { class: "scroll" }, fold));
        const head = html("tr", {}, html("thead", {}, table));
        html("th", {}, head, chart.x);
        tested[0].x.forEach(x => html("th", {}, head, format(x)));
        const body = html("tbody", {}, table);
        for (const s of tested) {
          const row = html("tr", {}, body);
          html("td", {}, row, s.name);
          s.p.forEach((p, i) => html("td", { class: s.holm[i] < 0.01 ? "p strong" : "p" }, row, p === null ? "–" : p < 0.001 ? p.toExponential(0) : p.toFixed(3)));
        }
        stack();
      });
    }
  }

  // On a phone a table that is too wide becomes a list: each cell with the head of its column.
  function stack() {
    for (const box of document.querySelectorAll(".scroll")) {
      const table = box.querySelector("table");
      const heads = [...table.querySelectorAll("th")].map(th => th.textContent);
      table.querySelectorAll("tbody tr").forEach(row => [...row.cells].forEach((cell, i) => { cell.dataset.head = heads[i]; }));
      box.classList.remove("stacked");
      box.classList.toggle("stacked", window.innerWidth <= NARROW && box.scrollWidth > box.clientWidth);
    }
  }
  document.querySelectorAll("details").forEach(fold => fold.addEventListener("toggle", stack));
  window.addEventListener("resize", stack);
  stack();

  document.querySelectorAll("[data-chart]").forEach(box => build(box, charts[+box.dataset.chart]));
})();
