"use strict";
(() => {
  const data = JSON.parse(document.getElementById("plot-data").textContent);
  const hidden = new Set();
  const reach = 30;

  const tip = document.createElement("div");
  tip.className = "tip";
  tip.setAttribute("role", "status");
  const name = tip.appendChild(document.createElement("bdi"));
  const values = tip.appendChild(document.createElement("span"));
  document.body.append(tip);

  const visible = (points) => points.filter((point) => !hidden.has(point[2]));
  const nearest = (points, distance) =>
    points.reduce((best, point) => (best && distance(best) <= distance(point) ? best : point), null);

  function place(svg, [x, y]) {
    const box = svg.getBoundingClientRect();
    const scale = box.width / svg.viewBox.baseVal.width;
    const widest = document.documentElement.clientWidth - tip.offsetWidth - 8;
    const left = Math.max(8, Math.min(box.left + x * scale + 12, widest));
    const above = box.top + y * scale - tip.offsetHeight - 12;
    tip.style.left = left + scrollX + "px";
    tip.style.top = (above < 0 ? box.top + y * scale + 14 : above) + scrollY + "px";
  }

  let hide = () => {};

  function follow(svg, points) {
    let current = null;
    const ring = document.createElementNS(svg.namespaceURI, "circle");
    ring.setAttribute("class", "ring off");
    ring.setAttribute("r", 7);
    svg.append(ring);

    function leave() {
      if (!current) return;
      current = null;
      ring.classList.add("off");
      tip.classList.remove("shown");
    }

    function show(point) {
      if (!point) return leave();
      if (!current) hide();
      hide = leave;
      current = point;
      const [label, colour] = data.series[point[2]];
      name.textContent = label;
      values.textContent = point[3];
      tip.style.borderLeftColor = "var(--series-" + colour + ")";
      tip.classList.add("shown");
      ring.setAttribute("cx", point[0]);
      ring.setAttribute("cy", point[1]);
      ring.classList.remove("off");
      place(svg, point);
    }

    function point_at(event) {
      const box = svg.getBoundingClientRect();
      const scale = svg.viewBox.baseVal.width / box.width;
      const x = (event.clientX - box.left) * scale, y = (event.clientY - box.top) * scale;
      const distance = (point) => Math.hypot(point[0] - x, point[1] - y);
      const point = nearest(visible(points), distance);
      show(point && distance(point) <= reach ? point : null);
    }

    function neighbour(key) {
      const all = visible(points).sort((a, b) => a[2] - b[2] || a[0] - b[0]);
      const at = all.indexOf(current);
      if (at < 0) return all[0];
      if (key === "ArrowRight" || key === "ArrowLeft") return all[at + (key === "ArrowRight" ? 1 : -1)];
      const down = key === "ArrowDown";
      const others = all.filter((point) => (down ? point[2] > current[2] : point[2] < current[2]));
      if (others.length === 0) return null;
      const series = others[down ? 0 : others.length - 1][2];
      return nearest(others.filter((point) => point[2] === series), (point) => Math.abs(point[0] - current[0]));
    }

    svg.addEventListener("pointermove", point_at);
    svg.addEventListener("pointerdown", point_at);
    svg.addEventListener("pointerleave", (event) => {
      if (event.pointerType === "mouse") leave();
    });
    svg.tabIndex = 0;
    svg.addEventListener("focus", () => {
      if (svg.matches(":focus-visible")) show(neighbour(""));
    });
    svg.addEventListener("blur", leave);
    svg.addEventListener("keydown", (event) => {
      if (event.key === "Escape") leave();
      if (!event.key.startsWith("Arrow")) return;
      event.preventDefault();
      show(neighbour(event.key) || current);
    });
  }

  function toggle(series) {
    if (!hidden.delete(series)) hidden.add(series);
    for (const part of document.querySelectorAll('[data-series="' + series + '"]')) {
      part.classList.toggle("off", hidden.has(series));
      const button = part.querySelector("button");
      if (button) button.setAttribute("aria-pressed", String(!hidden.has(series)));
    }
    hide();
  }

  function show_tab(name) {
    for (const part of document.querySelectorAll("section[data-tab]")) part.hidden = part.dataset.tab !== name;
    for (const tab of document.querySelectorAll('[role="tab"]')) {
      const chosen = tab.textContent === name;
      tab.setAttribute("aria-selected", String(chosen));
      tab.tabIndex = chosen ? 0 : -1;
    }
    hide();
  }

  const names = [...new Set([...document.querySelectorAll("section[data-tab]")].map((part) => part.dataset.tab))];
  if (names.length > 1) {
    const bar = document.createElement("div");
    bar.className = "tabs";
    bar.setAttribute("role", "tablist");
    /* A browser that asks again by itself (a live page) does so with the fragment that the page was loaded with. */
    const key = "prism tab of " + location.hash;
    const choose = (name) => {
      show_tab(name);
      history.replaceState(null, "", "#" + name.toLowerCase());
      try { sessionStorage.setItem(key, name); } catch { /* Not allowed: the first tab is shown again. */ }
    };
    const chosen_before = () => {
      try { return sessionStorage.getItem(key); } catch { return null; }
    };
    for (const name of names) {
      const tab = bar.appendChild(document.createElement("button"));
      tab.type = "button";
      tab.setAttribute("role", "tab");
      tab.textContent = name;
      tab.addEventListener("click", () => choose(name));
    }
    bar.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowLeft: names.length - 1 }[event.key];
      if (!step) return;
      const tabs = [...bar.children];
      const next = tabs[(tabs.indexOf(document.activeElement) + step) % tabs.length];
      choose(next.textContent);
      next.focus();
    });
    document.querySelector("section[data-tab]").before(bar);
    const before = chosen_before();
    show_tab(names.find((name) => name === before) || names.find((name) => "#" + name.toLowerCase() === location.hash) ||
             names[0]);
  }

  for (const svg of document.querySelectorAll("svg[data-plot]")) follow(svg, data.plots[svg.dataset.plot]);
  for (const entry of document.querySelectorAll(".legend li")) {
    const button = document.createElement("button");
    button.type = "button";
    button.setAttribute("aria-pressed", "true");
    button.append(...entry.childNodes);
    button.addEventListener("click", () => toggle(Number(entry.dataset.series)));
    entry.append(button);
  }
  for (const hint of document.querySelectorAll(".hint")) hint.hidden = false;
})();
