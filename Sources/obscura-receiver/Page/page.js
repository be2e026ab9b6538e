const $ = (id) => document.getElementById(id);
// Powers of two, so that no piece crosses a multiple of the largest.
const pieceBytesMin = 256 << 10, pieceBytesMax = 8 << 20, parallel = 3;
let pieceBytes = 1 << 20, idleSeconds = 60;
let language = "en", queue = [], active = 0, arrivedBytes = 0, rates = [], spoken = {}, drawing = 0;
let wakeLock = null, isAsking = false, skipped = [], wake = [], videos = new Set();
const t = (key, ...values) =>
  texts[language][key].replace(/\$(\d)/g, (_, number) => values[number - 1]);
const format = (bytes) => {
  const units = ["byte", "kilobyte", "megabyte", "gigabyte"];
  let unit = 0;
  while (bytes >= 1000 && unit < 3) { bytes /= 1000; unit++; }
  return new Intl.NumberFormat(language, {style: "unit", unit: units[unit], unitDisplay: "short",
    maximumFractionDigits: bytes < 10 && unit ? 1 : 0}).format(bytes);
};
const setLanguage = (wanted) => {
  language = texts[wanted] ? wanted : "en";
  document.documentElement.lang = language;
  document.documentElement.dir = language === "ar" ? "rtl" : "ltr";
  document.querySelectorAll("[data-t]").forEach((element) => { element.textContent = t(element.dataset.t); });
  if (state) showRecent();
  show();
};
let state = null, files = [];
const failures = ["failed", "noRoom", "refused"];
const hasFailed = (item) => failures.includes(item.state);
const isPending = (item) => !["done", "known", ...failures].includes(item.state);
const isSending = (item) => ["sending", "retrying", "away"].includes(item.state);
// Until everything chosen was looked at, and sent if it was not there.
const isBusy = () => files.some(isPending);

// Requests. XMLHttpRequest tells how much was sent. A request fails when nothing moves, however long it takes.
const request = (method, path, body, headers, onProgress) => new Promise((resolve, reject) => {
  const xhr = new XMLHttpRequest();
  let timer;
  const wait = (seconds) => {
    clearTimeout(timer);
    timer = setTimeout(() => xhr.abort(), seconds * 1000);
  };
  xhr.open(method, path);
  for (const name in headers || {}) xhr.setRequestHeader(name, headers[name]);
  xhr.upload.onprogress = (event) => {
    wait(idleSeconds);
    onProgress?.(event.loaded);
  };
  // The computer may take a while to answer.
  xhr.upload.onload = () => wait(2 * idleSeconds);
  xhr.onloadend = () => {
    clearTimeout(timer);
    xhr.status ? resolve(xhr) : reject(new Error("network"));
  };
  wait(2 * idleSeconds);
  xhr.send(body ?? null);
});
// Ends early when the network or the page comes back.
const pause = (seconds) => new Promise((resolve) => { wake.push(resolve); setTimeout(resolve, seconds * 1000); });
const wakeUp = () => { wake.splice(0).forEach((resolve) => resolve()); };

// Values of localStorage, which outlive a reload. Some browsers refuse it.
const stored = (key) => { try { return localStorage.getItem(key); } catch {} };
const store = (key, value) => {
  try { value ? localStorage.setItem(key, value) : localStorage.removeItem(key); } catch {}
};
// The device's own number: the same file of the same device goes on after a reload.
const device = () => {
  let number = stored("device");
  if (!/^[0-9a-f]{32}$/.test(number || "")) {
    number = hex(crypto.getRandomValues(new Uint8Array(16)).buffer);
    store("device", number);
  }
  return number;
};
const join = async (code) => {
  const answer = await request("POST", "/join", code + "\n" + device());
  return answer.status === 204;
};
const showState = async () => {
  const answer = await request("GET", "/state");
  if (answer.status !== 200) return false;
  state = JSON.parse(answer.responseText);
  $("code").hidden = true;
  if ($("send").hidden) {
    $("send").hidden = false;
    $("photos").focus({preventScroll: true});
  }
  showRecent();
  return true;
};
const showRecent = () => {
  $("target").textContent = t("target", state.album);
  const days = new Map();
  for (const photo of state.recent) days.set(photo.day, [...(days.get(photo.day) || []), photo]);
  $("recent").hidden = !days.size;
  $("days").replaceChildren(...[...days].map(([day, photos]) => {
    const group = document.createElement("section"), title = document.createElement("h3");
    const date = new Date(day + "T12:00:00");
    title.textContent = isNaN(date) ? day : new Intl.DateTimeFormat(language, {dateStyle: "full"}).format(date);
    const grid = document.createElement("div");
    for (const photo of photos) {
      const image = document.createElement("img");
      image.alt = photo.name;
      image.loading = "lazy";
      image.src = "/thumbnail/" + photo.number;
      image.onerror = () => image.remove();
      grid.append(image);
    }
    group.append(title, grid);
    return group;
  }));
};

const colours = {done: "good", away: "warn", failed: "bad", noRoom: "bad", refused: "bad"};
const askForCode = (key) => {
  $("code").hidden = false;
  $("code-text").textContent = t(key);
};
const lossesOf = ({file, losses}) =>
  (losses || []).filter((loss) => loss !== "lostLive" || !videos.has(stem(file.name)));
// The display. Failed files and those being sent have rows, and a hundred of the others.
const showFiles = () => {
  $("results").hidden = !files.length;
  const failed = files.filter(hasFailed), sending = files.filter(isSending);
  const others = files.filter((item) => !hasFailed(item) && !isSending(item)).slice(-100).reverse();
  const percent = new Intl.NumberFormat(language, {style: "percent"});
  $("files").replaceChildren(...[...failed, ...sending, ...others].map((item) => {
    const row = document.createElement("li"), name = document.createElement("b");
    name.textContent = item.file.name;
    row.append(name);
    const line = (words, kind) => {
      const small = document.createElement("small");
      small.textContent = words;
      small.className = kind || "";
      row.append(small);
    };
    const part = isSending(item) && item.file.size ? " · " + percent.format(item.sent / item.file.size) : "";
    line(t(item.state) + part, colours[item.state]);
    for (const loss of lossesOf(item)) line(t(loss), "warn");
    return row;
  }));
};
const showSummary = () => {
  const lines = [], count = (test) => files.filter(test).length;
  for (const state of ["done", "known", ...failures]) {
    const number = count((item) => item.state === state);
    if (number) lines.push([t(state + "Count", number), colours[state] || ""]);
  }
  for (const loss of ["lostHeic", "lostPlace", "lostLive", "lostVideo"]) {
    const number = count((item) => item.state === "done" && lossesOf(item).includes(loss));
    if (number) lines.push([t(loss + "Count", number), "warn"]);
  }
  $("summary").replaceChildren(...lines.map(([words, kind]) => {
    const row = document.createElement("li");
    row.textContent = words;
    row.className = kind;
    return row;
  }));
  $("again").hidden = !skipped.length;
};
const showProgress = () => {
  const ours = files.filter((item) => item.state !== "known"), waiting = ours.filter(isPending);
  const done = ours.filter((item) => item.state === "done");
  const total = ours.reduce((sum, item) => sum + item.file.size, 0);
  const sent = ours.reduce((sum, item) => sum + (item.state === "done" ? item.file.size : item.sent), 0);
  $("progress").hidden = !ours.length;
  $("bar").value = total ? Math.round(1000 * sent / total) : 1000;
  const now = Date.now();
  // Of whole pieces: what a browser calls sent may still be in its machine.
  rates = files.some(isSending) ? [...rates, [now, arrivedBytes]].filter(([time]) => now - time < 30000) : [];
  const [time, bytes] = rates[0] || [now];
  const rate = now - time >= 3000 ? (arrivedBytes - bytes) * 1000 / (now - time) : 0;
  let words = t("progress", done.length, ours.length, format(sent), format(total));
  const isAway = waiting.some((item) => item.state === "away");
  const isLooking = waiting.some((item) => item.state === "looking");
  if (!waiting.length) words = t(files.some(hasFailed) ? "unfinished" : "finished");
  else if (isAway) words += " · " + t("away");
  else if (waiting.some((item) => item.state === "retrying")) words += " · " + t("retrying");
  else if (rate > 0) {
    const seconds = Math.ceil(Math.max(1, total - sent) / rate);
    words += " · " + format(rate) + "/s";
    const left = seconds < 120 ? t("seconds", seconds) : t("minutes", Math.ceil(seconds / 60));
    // Files that the computer has are not sent, so the total is known only when all are looked at.
    if (!isLooking) words += " · " + left;
  } else if (isLooking) words += " · " + t("looking");
  if ($("status").textContent !== words) $("status").textContent = words;
  // Screen readers announce progress at intervals, the end and failures at once.
  const kind = !ours.length ? "" : isAway ? "away" : waiting.length ? "sending" : "finished";
  if (kind && (kind !== spoken.kind || now - spoken.at > 20000)) {
    spoken = {kind, at: now};
    $("spoken").textContent = words;
  }
  document.title = waiting.length ? Math.floor(total ? 100 * sent / total : 0) + " % · Obscura" : "Obscura";
};

// A change is drawn a little later, with others.
const show = () => {
  if (drawing) return;
  drawing = setTimeout(() => { drawing = 0; showFiles(); showSummary(); showProgress(); }, 200);
};

// The screen stays on while there is something to send: a phone that sleeps stops sending.
const keepAwake = async () => {
  if (!isBusy() || wakeLock || isAsking || document.visibilityState !== "visible") return;
  isAsking = true;
  try {
    wakeLock = await navigator.wakeLock?.request("screen") ?? null;
    wakeLock?.addEventListener("release", () => { wakeLock = null; });
  } catch {}
  isAsking = false;
  // All was sent before the lock came.
  if (!isBusy()) wakeLock?.release();
};
// For the next load of the page: whether it should be told to choose again.
const remember = () => store("left", isBusy() || files.some(hasFailed) ? "1" : "");
const settle = () => {
  remember();
  show();
  if (isBusy()) return;
  wakeLock?.release();
  showState().catch(() => {});
};

const resizePieces = (factor) => {
  pieceBytes = Math.min(Math.max(factor * pieceBytes, pieceBytesMin), pieceBytesMax);
};
// Which files are on the computer already.
const askKnown = async (items) => {
  const lines = items.map(({file, sample}) =>
    [file.size, file.lastModified > 0 ? Math.floor(file.lastModified) : "-", sample,
      encodeURIComponent(file.name)].join(" "));
  const answer = await request("POST", "/known", lines.join("\n"));
  return answer.status === 200 ? JSON.parse(answer.responseText) : [];
};
const put = async (item) => {
  const file = item.file;
  const query = "?size=" + file.size + "&modified=" + Math.max(0, Math.floor(file.lastModified))
    + "&sample=" + item.sample;
  const path = "/photo/" + encodeURIComponent(file.name) + query;
  const answer = await request("HEAD", path);
  if (answer.status === 404) throw new Error("gone");
  const there = Number(answer.getResponseHeader("Upload-Offset")) || 0;
  // Pieces that were compared, also by an earlier page.
  item.kept = item.kept || Number(stored(path)) || 0;
  // Nothing is left under its working name: the answer to the last piece may have been lost.
  if (!there && item.kept && (await askKnown([item]))[0]) return "done";
  // If the browser keeps nothing: pieces end at multiples of the largest. Of a file that has all its bytes and no
  // name yet the last piece goes again.
  let offset = Math.min(there, Math.max(0, file.size - 1));
  offset = item.kept && item.kept <= there ? item.kept : offset - offset % pieceBytesMax;
  item.sent = offset;
  do {
    const start = offset, end = Math.min(start + pieceBytes - start % pieceBytes, file.size), began = Date.now();
    const bytes = await file.slice(start, end).arrayBuffer();
    const digest = btoa(String.fromCharCode(...new Uint8Array(await crypto.subtle.digest("SHA-256", bytes))));
    const headers = {"Content-Type": "application/octet-stream", "Content-Digest": "sha-256=:" + digest + ":"};
    if (file.size) headers["Content-Range"] = "bytes " + start + "-" + (end - 1) + "/" + file.size;
    const {status} = await request("PUT", path, bytes, headers, (sent) => {
      item.state = "sending";
      item.sent = start + sent;
    });
    if (status < 300) arrivedBytes += end - start;
    if (status === 200 || status === 201) {
      store(path);
      return "done";
    }
    if (status === 507) return "noRoom";
    if (status === 404) throw new Error("gone");
    if (status === 500) throw new Error("refused");
    if (status !== 204) throw new Error("again");
    item.kept = offset = end;
    store(path, end);
    item.tries = 0;
    // An interruption costs a piece, so one takes a few seconds.
    const seconds = (Date.now() - began) / 1000;
    if (seconds < 5 && end - start === pieceBytes) resizePieces(2);
    if (seconds > 20) resizePieces(0.5);
  } while (offset < file.size);
  return "done";
};
const send = async (item) => {
  for (item.tries = 0; ; item.tries++) {
    try {
      if (item.state !== "away") item.state = "sending";
      show();
      return await put(item);
    } catch (error) {
      // An unreadable file stays unreadable; a new session needs another code.
      if (/^Not(Readable|Found)Error$/.test(error.name)) return "failed";
      if (error.message === "gone") askForCode("codeText");
      if (error.message === "refused" && item.tries >= 3) return "refused";
      if (error.message === "network") resizePieces(0.5);
      item.sent = item.kept || 0;
      item.state = error.message === "network" && item.tries >= 4 ? "away" : "retrying";
      show();
      await pause(Math.min(30, 2 ** item.tries));
    }
  }
};
// A video that did not come belongs to no Live Photo.
const withdraw = ({file: {name}}) => { if (isVideo(name)) videos.delete(stem(name)); };
const work = async () => {
  active++;
  for (let item; (item = queue.shift());) {
    item.state = await send(item);
    if (hasFailed(item)) withdraw(item);
    show();
  }
  active--;
  settle();
};
const start = () => {
  keepAwake();
  while (active < parallel && queue.length) work();
};

// Asks which files are there already, in batches, so that sending begins soon.
const choose = async (chosen) => {
  $("left").hidden = true;
  for (const {name} of chosen) if (isVideo(name)) videos.add(stem(name));
  // Chosen twice, sent and counted once.
  const key = ({file: {name, size, lastModified}}) => [name, size, lastModified].join("/");
  const pending = new Set(files.filter(isPending).map(key));
  const items = chosen.map((file) => ({file, state: "looking", sent: 0})).filter((item) => !pending.has(key(item)));
  const keys = new Set(items.map(key));
  files = [...files.filter((item) => item.state !== "known" && !keys.has(key(item))), ...items];
  skipped = [];
  remember();
  show();
  keepAwake();
  for (let from = 0; from < items.length; from += 50) {
    const batch = items.slice(from, from + 50);
    for (const item of batch) {
      try {
        item.sample = await sample(item.file);
        item.losses = await losses(item.file);
      } catch {
        item.state = "failed";
        withdraw(item);
      }
    }
    const ready = batch.filter((item) => item.state !== "failed");
    let known = [];
    for (let attempt = 0; attempt < 5; attempt++) {
      try {
        known = await askKnown(ready);
        break;
      } catch { await pause(2 ** attempt); }
    }
    ready.forEach((item, index) => {
      item.state = known[index] ? "known" : "waiting";
      (known[index] ? skipped : queue).push(item);
    });
    show();
    start();
  }
  settle();
};

for (const id of ["photos", "originals"]) {
  $(id).addEventListener("change", () => { const chosen = [...$(id).files]; $(id).value = ""; choose(chosen); });
}
$("again").addEventListener("click", () => {
  for (const item of skipped.splice(0)) { item.state = "waiting"; queue.push(item); }
  show();
  start();
});
$("code-form").addEventListener("submit", async (event) => {
  event.preventDefault();
  const code = $("code-input").value.replace(/^.*#/, "").trim();
  if (!(await join(code).catch(() => false)) || !(await showState())) askForCode("codeWrong");
  else wakeUp();
});
document.addEventListener("visibilitychange", () => {
  if (document.visibilityState !== "visible") return;
  wakeUp();
  keepAwake();
});
addEventListener("online", wakeUp);
addEventListener("beforeunload", (event) => { if (isBusy()) event.preventDefault(); });
$("left").hidden = !stored("left");
for (const name in texts) $("language").append(new Option(texts[name].name, name));
$("language").addEventListener("change", () => setLanguage($("language").value));
setLanguage((navigator.languages || ["en"]).map((name) => name.slice(0, 2)).find((name) => texts[name]) || "en");
$("language").value = language;
setInterval(() => { if (isBusy()) show(); }, 500);
const enter = async () => {
  const code = location.hash.slice(1);
  try {
    if (code) await join(code);
  } catch {
    // A new session has another certificate, which the browser only asks about when the page is loaded.
    if (state) return location.reload();
  }
  // The code is not kept in the history, and not sent again by a reload.
  if (code) history.replaceState(null, "", "/");
  if (await showState().catch(() => false)) wakeUp();
  else askForCode(code ? "codeWrong" : "codeText");
};
// The camera may open the next code in the same tab.
addEventListener("hashchange", () => { if (location.hash.length > 1) enter(); });
enter();
