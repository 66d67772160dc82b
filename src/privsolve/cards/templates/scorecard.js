"use strict";
// Points are whole numbers of any length: sums and comparisons are exact.
(() => {
  const card = JSON.parse(document.getElementById("data").textContent);
  const decides = card.positive !== undefined; // a card for a number decides nothing
  let threshold = BigInt(card.threshold);
  const rows = card.rows.map((row, i) => ({
    ...row,
    points: [].concat(row.points).map(BigInt),
    lowest: BigInt(row.lowest),
    highest: BigInt(row.highest),
    inputs: [...document.querySelectorAll(`[name="q${i}"]`)],
    counted: document.getElementById(`q${i}-counted`),
  }));
  const element = (id) => document.getElementById(id);
  const sum = (values) => values.reduce((a, b) => a + b, 0n);
  const size = (n) => (n < 0n ? -n : n);
  const grouped = (n) => n.toString().replace(/\B(?=(\d{3})+$)/g, ",");

  const figures = (n, plus = "") => (n < 0n ? "−" : n > 0n ? plus : "") + grouped(size(n));

  // the same arithmetic on doubles as where the data is encoded: clip, divide, round halves up
  function stepsOf(row, value) {
    return Math.floor(Math.min(Math.max(value, row.low), row.high) / row.step + 0.5);
  }

  // the points of a row, or null while it has no answer
  function pointsOf(row) {
    if (!row.counted) {
      const chosen = row.inputs.findIndex((input) => input.checked);
      return chosen < 0 ? null : row.points[chosen];
    }
    const input = row.inputs[0];
    const value = input.valueAsNumber;
    if (!Number.isFinite(value)) {
      row.counted.textContent = input.validity.badInput ? "This is not a number." : "";
      return null;
    }
    const steps = stepsOf(row, value);
    const points = BigInt(steps) * row.points[0];
    const counted = Number((steps * row.step).toPrecision(15));
    row.counted.textContent = `Points: ${figures(points, "+")}` + (counted === value ? "" : ` (counts as ${counted})`);
    return points;
  }

  function update() {
    const points = rows.map(pointsOf);
    const open = rows.filter((_, i) => points[i] === null);
    const total = sum(points.filter((p) => p !== null));
    const low = total + sum(open.map((row) => row.lowest));
    const high = total + sum(open.map((row) => row.highest));
    const state = !decides ? "open" : low >= threshold ? "positive" : high < threshold ? "negative" : "open";
    element("total").textContent = figures(total);
    element("so-far").textContent = open.length ? "points so far" : "points";
    showRisk(low, high);
    showBand(low, high);
    if (decides) {
      element("decision").dataset.state = state;
      element("decision").textContent = state === "open" ? "Not decided yet" : card[state];
    }
    element("progress").textContent = !open.length
      ? "All questions are answered."
      : state === "open"
        ? `${rows.length - open.length} of ${rows.length} answered; the total can still be ${figures(low)} to ${figures(high)}.`
        : `${rows.length - open.length} of ${rows.length} answered; the others cannot change the decision.`;
    showReasons(points);
    element("result").dataset.answered = open.length ? "no" : "yes";
    drawGauge(total, low, high);
  }

  // of a risk score: the risk of the total, or what it can still be, and the lines of the table that this is on
  function showRisk(low, high) {
    const [least, most] = card.risks ? [card.risks[low], card.risks[high]] : [];
    if (card.risks) element("risk").textContent = least === most ? `${card.means} ${least}` : `${card.means} ${least} to ${most}`;
    for (const line of document.querySelectorAll("#risks tbody tr")) {
      line.classList.toggle("here", low === high && low >= BigInt(line.dataset.low) && low <= BigInt(line.dataset.high));
    }
  }

  // the band of the total, or the bands that it can still be in; marks tell them apart without colour
  function showBand(low, high) {
    if (!card.bands) return;
    const { names, starts } = card.bands;
    const [first, last] = [low, high].map((total) => starts.filter((start) => total >= BigInt(start)).length);
    const known = first === last;
    element("band").textContent = known
      ? `${"●".repeat(first)}${"○".repeat(starts.length - first)} ${names[first]}`
      : `Band: ${names[first]} to ${names[last]}`;
    element("band").style.setProperty("--level", known ? first / starts.length : 0);
    element("band").dataset.state = known ? "known" : "open";
  }

  // the answers that raised the total most above the lowest one
  function showReasons(points) {
    const raised = rows.map((row, i) => [row.asked, points[i] === null ? 0n : points[i] - row.lowest]).filter(([, p]) => p > 0n);
    const most = raised.sort(([, a], [, b]) => (a < b ? 1 : a > b ? -1 : 0)).slice(0, 4);
    element("reasons").textContent = most.length
      ? `Most points come from: ${most.map(([asked, p]) => `${asked} (${figures(p, "+")})`).join("; ")}.`
      : "";
  }

  // show the questions that have the words in question or answers
  function search() {
    const wanted = element("search").value.trim().toLowerCase();
    for (const field of document.querySelectorAll("fieldset")) {
      field.hidden = !field.textContent.toLowerCase().includes(wanted);
    }
    if (wanted && element("more")) element("more").open = true;
  }

  // questions that are open get the answer "not known" where they have it
  function skip() {
    for (const row of rows) {
      const unknown = row.inputs.find((input) => input.closest(".unknown"));
      if (unknown && !row.inputs.some((input) => input.checked)) unknown.checked = true;
    }
    update();
  }

  // the reader may decide from any other total on
  function moveThreshold() {
    const start = element("threshold").value;
    threshold = BigInt(start);
    const risk = card.risks[start];
    element("from").textContent = figures(BigInt(start)) + (risk ? ` (${risk})` : " (never)");
    element("needed").textContent = `at least ${figures(BigInt(start))}`;
    update();
  }

  function drawGauge(total, low, high) {
    const border = element("border");
    const lowest = sum(rows.map((row) => row.lowest));
    const highest = sum(rows.map((row) => row.highest));
    if (highest === lowest) return;
    // only for the eye; with whole points the border lies half-way between the last "no" and the first "yes"
    const at = (n) => Math.min(Math.max((100 * (Number(n) - Number(lowest))) / Number(highest - lowest), 0), 100);
    const gauge = element("gauge");
    gauge.querySelector(".over").style.left = (decides ? at(Number(threshold) - 0.5) : 100) + "%";
    border.textContent = decides && threshold > lowest && threshold <= highest ? figures(threshold) : "";
    border.style.left = at(threshold) + "%";
    border.parentElement.dataset.near = !border.textContent ? "" : at(threshold) < 12 ? "low" : at(threshold) > 88 ? "high" : "";
    gauge.querySelector(".reach").style.left = at(low) + "%";
    gauge.querySelector(".reach").style.right = 100 - at(high) + "%";
    gauge.querySelector(".now").style.left = at(total) + "%";
    for (const tick of gauge.querySelectorAll(".tick")) tick.remove();
    for (const start of card.bands?.starts ?? []) {
      const tick = gauge.appendChild(document.createElement("i"));
      tick.className = "tick";
      tick.style.left = at(Number(start) - 0.5) + "%";
    }
    gauge.hidden = false;
  }

  element("answers").addEventListener("input", update);
  element("answers").addEventListener("submit", (event) => event.preventDefault());
  element("answers").addEventListener("reset", () => setTimeout(update));
  element("print").addEventListener("click", () => window.print());
  element("search")?.addEventListener("input", search);
  element("skip")?.addEventListener("click", skip);
  window.addEventListener("beforeprint", () => { if (element("more")) element("more").open = true; });
  const moves = card.risks && decides;
  if (moves) element("threshold").addEventListener("input", moveThreshold);
  window.addEventListener("pageshow", moves ? moveThreshold : update);
  moves ? moveThreshold() : update();
})();
