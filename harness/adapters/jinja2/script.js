"use strict";
(() => {
  const still = matchMedia("(prefers-reduced-motion: reduce)");
  const dialog = document.getElementById("details");
  const title = document.getElementById("details-title");
  const body = document.getElementById("details-body");

  const boxAt = (anchor) => {
    const found = document.getElementById(anchor);
    return found && found.classList.contains("box") ? found : null;
  };

  const go = (box) => {
    if (!box) return;
    for (const other of box.closest(".timeline").querySelectorAll('.box[tabindex="0"]')) other.tabIndex = -1;
    box.tabIndex = 0;
    box.focus({ preventScroll: true });
    box.scrollIntoView({ block: "nearest", inline: "nearest", behavior: still.matches ? "auto" : "smooth" });
  };

  const middle = (box) => box.offsetLeft + box.offsetWidth / 2;

  const neighbour = (box, step) => {
    let lane = box.parentElement;
    do lane = step > 0 ? lane.nextElementSibling : lane.previousElementSibling;
    while (lane && !lane.querySelector(".box"));
    if (!lane || !lane.classList.contains("lane")) return null;
    let best = null;
    for (const other of lane.querySelectorAll(".box")) {
      if (!best || Math.abs(middle(other) - middle(box)) < Math.abs(middle(best) - middle(box))) best = other;
    }
    return best;
  };

  const along = (box, step) => {
    const own = [...box.parentElement.querySelectorAll(".box")];
    return own[own.indexOf(box) + step];
  };

  const wakeUps = (box, from, to) =>
    [...box.closest(".timeline").querySelectorAll(".wake")]
      .filter((arrow) => arrow.dataset[from] === box.id)
      .map((arrow) => boxAt(arrow.dataset[to]));

  const moves = {
    ArrowRight: (box) => along(box, 1),
    ArrowLeft: (box) => along(box, -1),
    ArrowDown: (box) => neighbour(box, 1),
    ArrowUp: (box) => neighbour(box, -1),
    Home: (box) => box.parentElement.querySelector(".box"),
    End: (box) => [...box.parentElement.querySelectorAll(".box")].pop(),
    w: (box) => wakeUps(box, "to", "from")[0],
    e: (box) => wakeUps(box, "from", "to")[0],
  };

  const copy = (node) => {
    const made = node.cloneNode(true);
    for (const inner of [made, ...made.querySelectorAll("[id], [aria-labelledby]")]) {
      inner.removeAttribute("id");
      inner.removeAttribute("aria-labelledby");
    }
    return made;
  };

  const add = (tag, parent, text) => {
    const made = parent.appendChild(document.createElement(tag));
    if (text) made.textContent = text;
    return made;
  };

  const excerpt = (stack) => {
    const link = [...stack.querySelectorAll('a[href^="#s"]')].pop();
    const line = link && document.getElementById(link.hash.slice(1));
    if (!line) return null;
    const lines = [...line.parentElement.children];
    const at = lines.indexOf(line);
    const made = document.createElement("pre");
    made.tabIndex = 0;
    made.setAttribute("aria-label", line.closest("figure").querySelector("figcaption").textContent);
    for (const near of lines.slice(Math.max(0, at - 4), at + 5)) {
      const shown = made.appendChild(copy(near));
      shown.classList.toggle("used", near === line);
    }
    return made;
  };

  const open = (box) => {
    const row = document.getElementById("t-" + box.id);
    title.textContent = box.getAttribute("aria-label");
    body.replaceChildren();
    const list = add("dl", body);
    const heads = row.closest("table").querySelectorAll("thead th");
    [...row.children].forEach((cell, index) => {
      if (!cell.textContent.trim()) return;
      add("dt", list, heads[index].textContent);
      add("dd", list).append(...copy(cell).childNodes);
    });
    const link = row.querySelector('a[href^="#k"]');
    const stack = link && document.getElementById(link.hash.slice(1));
    if (stack) {
      add("h3", body, "Stack, the outermost call first");
      body.append(copy(stack));
      const lines = excerpt(stack);
      if (lines) {
        add("h3", body, lines.getAttribute("aria-label"));
        body.append(lines);
      }
    }
    dialog.showModal();
  };

  const light = (box, on) => {
    box.classList.toggle("lit", on);
    for (const arrow of box.closest(".timeline").querySelectorAll(".wake")) {
      if (arrow.dataset.from !== box.id && arrow.dataset.to !== box.id) continue;
      arrow.classList.toggle("lit", on);
      for (const end of [boxAt(arrow.dataset.from), boxAt(arrow.dataset.to)]) end.classList.toggle("lit", on);
    }
  };

  for (const timeline of document.querySelectorAll(".timeline")) {
    const boxes = [...timeline.querySelectorAll(".box")];
    for (const box of boxes) box.tabIndex = -1;
    (timeline.querySelector(".box.marked") || boxes[0]).tabIndex = 0;
    timeline.addEventListener("keydown", (event) => {
      const box = event.target.closest(".box");
      if (!box || event.ctrlKey || event.metaKey || event.altKey) return;
      if (event.key === " ") {
        event.preventDefault();
        open(box);
        return;
      }
      const move = moves[event.key.length === 1 ? event.key.toLowerCase() : event.key];
      if (!move) return;
      event.preventDefault();
      go(move(box));
    });
    timeline.addEventListener("click", (event) => {
      const box = event.target.closest(".box");
      if (!box || event.ctrlKey || event.metaKey || event.shiftKey) return;
      event.preventDefault();
      go(box);
      open(box);
    });
    for (const [name, on] of [["focusin", true], ["focusout", false], ["mouseover", true], ["mouseout", false]]) {
      timeline.addEventListener(name, (event) => {
        const box = event.target.closest(".box");
        if (!box) return;
        light(box, on);
        // for a mouse only: a screen reader would say it twice
        if (name === "mouseover") box.title = box.getAttribute("aria-label");
        if (name === "mouseout") box.removeAttribute("title");
      });
    }
  }

  document.addEventListener("click", (event) => {
    const link = event.target.closest('a[href^="#"]');
    if (!link || (link.classList.contains("box") && !dialog.contains(link))) return;
    if (dialog.contains(link)) dialog.close();
    const box = boxAt(link.hash.slice(1));
    if (!box) return;
    event.preventDefault();
    history.replaceState(null, "", link.hash);
    box.closest(".panel").scrollIntoView({ block: "nearest" });
    go(box);
  });

  // On paper a drawing is cut into strips, between two columns; one that takes more than MAX_STRIPS is left to the table.
  const STRIP = 71;
  const MAX_STRIPS = 12;
  const left = (node) => parseFloat(node.style.getPropertyValue("--x"));
  const right = (node) => left(node) + parseFloat(node.style.getPropertyValue("--w"));

  const cuts = (timeline) => {
    const found = [0];
    const boxes = [...timeline.querySelectorAll(".box")].sort((one, other) => left(one) - left(other));
    for (const box of boxes) if (right(box) > found[found.length - 1] + STRIP) found.push(left(box) - 0.5);
    return found;
  };

  const strip = (canvas, begin, end) => {
    const made = document.createElement("div");
    made.className = "strip";
    const shown = made.appendChild(copy(canvas));
    for (const node of shown.querySelectorAll(".box, .bar")) {
      if (right(node) < begin || left(node) >= end) node.remove();
    }
    shown.style.setProperty("--shift", begin);
    shown.style.setProperty("--strip", Math.min(end - begin, STRIP));
    return made;
  };

  addEventListener("beforeprint", () => {
    for (const timeline of document.querySelectorAll(".timeline")) {
      const found = cuts(timeline);
      if (found.length > MAX_STRIPS) continue;
      const canvas = timeline.querySelector(".canvas");
      found.forEach((begin, index) => timeline.append(strip(canvas, begin, found[index + 1] || begin + STRIP)));
    }
  });
  addEventListener("afterprint", () => {
    for (const made of document.querySelectorAll(".strip")) made.remove();
  });

  const begin = () => {
    const box = boxAt(location.hash.slice(1));
    if (!box) return;
    box.scrollIntoView({ block: "center", inline: "center" });
    go(box);
  };
  addEventListener("load", begin);
  addEventListener("hashchange", begin);
})();
