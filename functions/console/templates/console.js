"use strict";
// What the script adds to pages: live updates, a palette, zoom, keyboard navigation of the graph. Without it everything is
// readable and every button works.
(() => {
  const page = document.body;
  const $ = (selector, root = document) => root.querySelector(selector);
  const $$ = (selector, root = document) => [...root.querySelectorAll(selector)];

  // Times: shown relative to now; the tooltip has the exact local time.
  const distance = (at) => {
    const away = (at - Date.now()) / 1000, seconds = Math.abs(away);
    if (seconds < 5) return "now";
    const words = seconds < 60 ? `${Math.floor(seconds)} s` : seconds < 3600 ? `${Math.floor(seconds / 60)} min`
      : seconds < 86400 ? `${Math.floor(seconds / 3600)} h` : `${Math.floor(seconds / 86400)} d`;
    return away > 0 ? `in ${words}` : `${words} ago`;
  };
  const relative = /^(now|in \d+ (s|min|h|d)|\d+ (s|min|h|d) ago)$/;
  const tellTimes = () => {
    for (const time of $$("time[datetime]")) {
      const at = new Date(time.dateTime);
      if (!time.dataset.exact) {
        time.dataset.exact = time.title;
        time.title = `${time.title} · ${at.toLocaleString()} here`;
      }
      if (relative.test(time.textContent)) {
        const words = distance(at);
        if (words !== time.textContent) time.textContent = words;
      }
    }
  };

  // Live: something happened, so the page is fetched again and the parts that differ are put in place.
  const mark = $("#live");
  const parts = () => $$("[data-part]");
  const show = (words, stale) => {
    mark.hidden = false;
    mark.classList.toggle("stale", stale);
    if (mark.textContent !== words) mark.textContent = words;
  };
  // A part with focus, unsent input or an open menu is not replaced.
  const inUse = (part) => {
    const active = document.activeElement;
    if (active && part.contains(active) && active.matches("input, select, textarea, button, summary")) return true;
    return $$("details[open]", part).length > 0 || $$("input, textarea", part).some((field) => field.type !== "hidden" && field.value !== field.defaultValue);
  };
  const replace = (old, fresh) => {
    const active = document.activeElement;
    const link = active && old.contains(active) && active.getAttribute("href");
    const scrolled = $$(".view, .log, .scroll", old).map((box) => [box.scrollLeft, box.scrollTop, box.scrollTop + box.clientHeight >= box.scrollHeight - 4]);
    old.replaceWith(fresh);
    $$(".view, .log, .scroll", fresh).forEach((box, place) => {
      if (!scrolled[place]) return;
      [box.scrollLeft, box.scrollTop] = scrolled[place];
      if (box.matches(".log") && scrolled[place][2]) box.scrollTop = box.scrollHeight;
    });
    if (link) $$("a", fresh).find((anchor) => anchor.getAttribute("href") === link)?.focus({ preventScroll: true });
  };
  // What the server wrote of each part, but for how far away times are.
  const bare = (html) => html.replace(/(<time[^>]*>)[^<]*/g, "$1");
  const seen = new Map();
  let busy = false, again = false, next = 0;
  const refresh = async () => {
    if (busy) { again = true; return; }
    busy = true;
    const began = performance.now();
    try {
      const answer = await fetch(location.href, { headers: { accept: "text/html" }, cache: "no-store" });
      if (!answer.ok) throw new Error(answer.status);
      const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
      for (const part of parts()) {
        const other = $(`[data-part="${part.dataset.part}"]`, fresh);
        if (!other || inUse(part)) continue;
        const before = seen.get(part.dataset.part), after = bare(other.innerHTML);
        if (before !== after) replace(part, document.importNode(other, true));
        seen.set(part.dataset.part, after);
      }
      if (fresh.title && fresh.title !== document.title) document.title = fresh.title;
      page.toggleAttribute("data-ended", fresh.body.hasAttribute("data-ended"));
      dress();
      tellTimes();
    } catch {
      stale();
    }
    // A slow refresh is repeated less often, which leaves time for the reader and for other requests.
    next = performance.now() + 2 * (performance.now() - began);
    busy = false;
    if (again) { again = false; soon(); }
  };
  let timer = 0;
  const soon = () => { timer ||= setTimeout(() => { timer = 0; refresh(); }, Math.max(40, Math.min(2000, next - performance.now()))); };
  let since = null;
  const stale = () => { since ??= new Date(); show(`stale since ${since.toLocaleTimeString()}`, true); };
  const fresh = () => { since = null; show("live", false); };

  const filter = page.dataset.live;
  if (filter !== undefined && "EventSource" in window) {
    // A stream keeps an instance of the console busy, so a page that nobody sees has none.
    let source = null;
    const disconnect = () => { source?.close(); source = null; };
    const connect = () => {
      if (source || document.hidden) return;
      const own = new EventSource(`/live${filter ? `?${filter}` : ""}`);
      const later = (wait, act) => setTimeout(() => { if (source === own) act(); }, wait);
      source = own;
      own.onopen = () => { if (since) soon(); fresh(); };
      own.onerror = () => {
        // A connection that ends in the usual course comes again within a second or two.
        later(2500, () => { if (own.readyState !== EventSource.OPEN) stale(); });
        if (own.readyState === EventSource.CLOSED) later(3000, () => { disconnect(); connect(); });
      };
      own.onmessage = soon;
      own.addEventListener("gap", soon);
      own.addEventListener("progress", soon);
    };
    connect();
    // Counting clocks of what runs, and logs, which are no events.
    setInterval(() => { if (!document.hidden && $("[data-follow]")) refresh(); }, 1000);
    setInterval(() => { if (!document.hidden && !$("[data-follow]") && !page.hasAttribute("data-ended")) refresh(); }, 10000);
    document.addEventListener("visibilitychange", () => {
      if (document.hidden) return disconnect();
      connect();
      soon();
    });
    addEventListener("pagehide", disconnect);
  }

  // The graph: larger and smaller, and the way through a task.
  let scale = 1;
  const zoomed = (svg) => {
    const [, , width, height] = svg.getAttribute("viewBox").split(" ").map(Number);
    svg.setAttribute("width", Math.round(width * scale));
    svg.setAttribute("height", Math.round(height * scale));
  };
  const dress = () => {
    for (const canvas of $$(".canvas")) {
      const svg = $("svg.graph", canvas);
      if (!svg || $(".zoom", canvas)) continue;
      const tools = document.createElement("div");
      tools.className = "zoom";
      for (const [label, words, step] of [["−", "Smaller", 1 / 1.25], ["+", "Larger", 1.25], ["Fit", "Fit into view", 0]]) {
        const button = document.createElement("button");
        button.type = "button";
        button.className = "btn small";
        button.textContent = label;
        button.setAttribute("aria-label", words);
        button.addEventListener("click", () => {
          const view = $(".view", canvas), wide = Number(svg.getAttribute("viewBox").split(" ")[2]);
          scale = step ? Math.min(3, Math.max(0.15, scale * step)) : Math.min(1, view.clientWidth / wide);
          zoomed(svg);
        });
        tools.append(button);
      }
      canvas.append(tools);
      if (scale !== 1) zoomed(svg);
      trace(svg);
      drag($(".view", canvas));
    }
  };
  const trace = (svg) => {
    const edges = $$(".edge", svg).map((edge) => [edge, edge.dataset.from, edge.dataset.to]);
    const reach = (start, from, to) => {
      const found = new Set([start]), open = [start];
      while (open.length) {
        const task = open.pop();
        for (const edge of edges) if (edge[from] === task && !found.has(edge[to])) { found.add(edge[to]); open.push(edge[to]); }
      }
      return found;
    };
    const on = (task) => {
      const before = reach(task, 2, 1), after = reach(task, 1, 2);
      for (const node of $$(".task", svg)) node.classList.toggle("on", before.has(node.dataset.task) || after.has(node.dataset.task));
      for (const [edge, from, to] of edges) edge.classList.toggle("on", (before.has(from) && before.has(to)) || (after.has(from) && after.has(to)));
      svg.classList.add("tracing");
    };
    const off = () => svg.classList.remove("tracing");
    for (const node of $$(".task", svg)) {
      node.addEventListener("mouseenter", () => on(node.dataset.task));
      node.addEventListener("mouseleave", off);
      node.addEventListener("focus", () => on(node.dataset.task));
      node.addEventListener("blur", off);
    }
  };
  const drag = (view) => {
    let from = null;
    view.addEventListener("pointerdown", (event) => {
      if (event.pointerType === "mouse" && event.button === 0 && !event.target.closest("a")) from = [event.clientX + view.scrollLeft, event.clientY + view.scrollTop];
    });
    view.addEventListener("pointermove", (event) => {
      if (from && event.buttons & 1) [view.scrollLeft, view.scrollTop] = [from[0] - event.clientX, from[1] - event.clientY];
      else from = null;
    });
  };

  // Irreversible actions ask for confirmation, and a form is submitted only once.
  document.addEventListener("submit", (event) => {
    const words = event.submitter?.dataset.confirm;
    if (words && !confirm(words)) { event.preventDefault(); return; }
    if (event.target.method === "post") setTimeout(() => { for (const button of $$("button", event.target)) button.disabled = true; });
  });
  document.addEventListener("click", (event) => {
    for (const menu of $$("details.menu[open]")) if (!menu.contains(event.target)) menu.open = false;
  });

  // The palette.
  let dialog = null, entries = [], chosen = 0;
  const shown = () => {
    const words = $("input", dialog).value.toLowerCase().split(/\s+/).filter(Boolean);
    return entries.filter((entry) => words.every((word) => `${entry.label} ${entry.hint}`.toLowerCase().includes(word))).slice(0, 40);
  };
  const draw = () => {
    const list = $("ul", dialog), found = shown();
    chosen = Math.max(0, Math.min(chosen, found.length - 1));
    list.replaceChildren(...found.map((entry, place) => {
      const item = document.createElement("li"), hint = document.createElement("span");
      item.id = `go-${place}`;
      item.setAttribute("role", "option");
      item.setAttribute("aria-selected", place === chosen);
      item.textContent = entry.label;
      hint.textContent = entry.hint;
      item.append(hint);
      item.addEventListener("click", () => { location.href = entry.href; });
      return item;
    }));
    $("input", dialog).setAttribute("aria-activedescendant", found.length ? `go-${chosen}` : "");
    $(`#go-${chosen}`)?.scrollIntoView({ block: "nearest" });
  };
  const open = async () => {
    if (!dialog) {
      dialog = document.createElement("dialog");
      dialog.className = "palette";
      dialog.setAttribute("aria-label", "Go to");
      const input = document.createElement("input"), list = document.createElement("ul");
      Object.assign(input, { type: "text", placeholder: "Go to a workflow, a run, a page…", autocomplete: "off" });
      for (const [name, value] of [["role", "combobox"], ["aria-expanded", "true"], ["aria-controls", "go"], ["aria-label", "Go to"]]) input.setAttribute(name, value);
      Object.assign(list, { id: "go" });
      list.setAttribute("role", "listbox");
      list.setAttribute("aria-label", "Places");
      dialog.append(input, list);
      page.append(dialog);
      input.addEventListener("input", () => { chosen = 0; draw(); });
      dialog.addEventListener("keydown", (event) => {
        const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
        if (step) { event.preventDefault(); chosen += step; draw(); }
        if (event.key === "Enter") { event.preventDefault(); const entry = shown()[chosen]; if (entry) location.href = entry.href; }
      });
      dialog.addEventListener("click", (event) => { if (event.target === dialog) dialog.close(); });
    }
    $("input", dialog).value = "";
    chosen = 0;
    if (!dialog.open) dialog.showModal();
    draw();
    try { entries = await (await fetch("/palette")).json(); draw(); } catch { /* The pages can still be walked to. */ }
  };
  const find = $("#find");
  find.hidden = false;
  if (!/Mac|iPhone|iPad/.test(navigator.platform)) $("kbd", find).textContent = "Ctrl K";
  find.addEventListener("click", open);
  document.addEventListener("keydown", (event) => {
    const typing = event.target.closest("input, textarea, select");
    if ((event.key === "k" && (event.metaKey || event.ctrlKey)) || (event.key === "/" && !typing)) { event.preventDefault(); open(); }
    if (event.key === "Escape") for (const menu of $$("details.menu[open]")) { menu.open = false; $("summary", menu).focus(); }
  });

  for (const part of parts()) seen.set(part.dataset.part, bare(part.innerHTML));
  dress();
  tellTimes();
  // On a phone the tabs are wider than the screen: the chosen one is to be seen.
  for (const tab of $$("nav [aria-current]")) tab.parentElement.scrollLeft = tab.offsetLeft - tab.parentElement.offsetLeft - 24;
  setInterval(tellTimes, 1000);
  for (const log of $$(".log")) if (!location.hash.startsWith("#L")) log.scrollTop = log.scrollHeight;
})();
