/// The part of the page's script that sends. Pieces of 8 MiB each carry their SHA-256, which the computer compares.
let pageScript = #"""
    const $ = (id) => document.getElementById(id);
    const pieceBytes = 8 << 20, parallel = 3;
    let language = "en", queue = [], active = 0, sentBytes = 0, rates = [], spoken = {};
    let wakeLock = null, isAsking = false, skipped = [], wake = [];
    const t = (key, ...values) => {
      let result = texts[language][key] ?? texts.en[key] ?? key;
      values.forEach((value, index) => { result = result.replace("$" + (index + 1), value); });
      return result;
    };
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
      showFiles(); showSummary(); showProgress();
    };
    let state = null, files = [];

    // Requests. XMLHttpRequest tells how much was sent.
    const request = (method, path, body, headers, onProgress) => new Promise((resolve, reject) => {
      const xhr = new XMLHttpRequest();
      xhr.open(method, path);
      xhr.timeout = 120000;
      for (const name in headers || {}) xhr.setRequestHeader(name, headers[name]);
      if (onProgress) xhr.upload.onprogress = (event) => onProgress(event.loaded);
      xhr.onload = () => resolve(xhr);
      xhr.onerror = xhr.ontimeout = xhr.onabort = () => reject(new Error("network"));
      xhr.send(body ?? null);
    });
    // Ends early when the network or the page comes back.
    const pause = (seconds) => new Promise((resolve) => { wake.push(resolve); setTimeout(resolve, seconds * 1000); });
    const wakeUp = () => { wake.splice(0).forEach((resolve) => resolve()); };

    // The device's own number: the same file of the same device goes on after a reload.
    const device = () => {
      let number = null;
      try { number = localStorage.getItem("device"); } catch {}
      if (!/^[0-9a-f]{32}$/.test(number || "")) {
        number = hex(crypto.getRandomValues(new Uint8Array(16)).buffer);
        try { localStorage.setItem("device", number); } catch {}
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
    // The display. Each file has a row; the page holds the last hundred.
    const showFiles = () => {
      $("results").hidden = !files.length;
      $("files").replaceChildren(...files.slice(-100).reverse().map((item) => {
        const row = document.createElement("li"), name = document.createElement("b");
        name.textContent = item.file.name;
        row.append(name);
        const line = (key, kind) => {
          const small = document.createElement("small");
          small.textContent = t(key);
          small.className = kind || "";
          row.append(small);
        };
        line(item.state, colours[item.state]);
        for (const loss of item.losses || []) line(loss, "warn");
        return row;
      }));
    };
    const showSummary = () => {
      const lines = [], count = (test) => files.filter(test).length;
      for (const state of ["done", "known", "failed", "noRoom", "refused"]) {
        const number = count((item) => item.state === state);
        if (number) lines.push([t(state + "Count", number), colours[state] || ""]);
      }
      for (const loss of ["lostHeic", "lostPlace", "lostLive", "lostVideo"]) {
        const number = count((item) => item.state === "done" && (item.losses || []).includes(loss));
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
      const waiting = files.filter((item) => ["waiting", "sending", "retrying", "away"].includes(item.state));
      const ours = files.filter((item) => item.state !== "known");
      const total = ours.reduce((sum, item) => sum + item.file.size, 0);
      const sent = ours.reduce((sum, item) => sum + (item.state === "done" ? item.file.size : item.sent), 0);
      $("progress").hidden = !ours.length;
      $("bar").value = total ? Math.round(1000 * sent / total) : 1000;
      const now = Date.now();
      rates = [...rates, [now, sentBytes]].filter(([time]) => now - time < 10000);
      const [time, bytes] = rates[0], rate = now > time ? (sentBytes - bytes) * 1000 / (now - time) : 0;
      let words = t("progress", ours.length - waiting.length, ours.length, format(sent), format(total));
      const isAway = waiting.some((item) => item.state === "away");
      if (isAway) words += " · " + t("away");
      else if (waiting.some((item) => item.state === "retrying")) words += " · " + t("retrying");
      else if (waiting.length && rate > 0) {
        const seconds = Math.ceil((total - sent) / rate);
        words += " · " + format(rate) + "/s · ";
        words += seconds < 120 ? t("seconds", seconds) : t("minutes", Math.ceil(seconds / 60));
      } else if (!waiting.length) words = t("finished");
      if ($("status").textContent !== words) $("status").textContent = words;
      // Screen readers announce progress at intervals, the end and failures at once.
      const kind = !ours.length ? "" : isAway ? "away" : waiting.length ? "sending" : "finished";
      if (kind && (kind !== spoken.kind || now - spoken.at > 20000)) {
        spoken = {kind, at: now};
        $("spoken").textContent = words;
      }
      document.title = waiting.length ? Math.floor(total ? 100 * sent / total : 0) + " % · Obscura" : "Obscura";
    };

    // The screen stays on while something is sent: a phone that sleeps stops sending.
    const keepAwake = async () => {
      if (!active || wakeLock || isAsking || document.visibilityState !== "visible") return;
      isAsking = true;
      try {
        wakeLock = await navigator.wakeLock?.request("screen") ?? null;
        wakeLock?.addEventListener("release", () => { wakeLock = null; });
      } catch {}
      isAsking = false;
      // All was sent before the lock came.
      if (!active) wakeLock?.release();
    };

    const put = async (item) => {
      const file = item.file;
      const query = "?size=" + file.size + "&modified=" + Math.max(0, Math.floor(file.lastModified))
        + "&sample=" + item.sample;
      const path = "/photo/" + encodeURIComponent(file.name) + query;
      const there = await request("HEAD", path);
      if (there.status === 404) throw new Error("gone");
      // Only whole pieces were compared. Of a file that has all its bytes and no name yet the last piece goes again.
      let offset = Math.min(Number(there.getResponseHeader("Upload-Offset")) || 0, Math.max(0, file.size - 1));
      offset -= offset % pieceBytes;
      do {
        const end = Math.min(offset + pieceBytes, file.size), start = offset;
        const bytes = await file.slice(start, end).arrayBuffer();
        const digest = btoa(String.fromCharCode(...new Uint8Array(await crypto.subtle.digest("SHA-256", bytes))));
        const headers = {"Content-Type": "application/octet-stream", "Content-Digest": "sha-256=:" + digest + ":"};
        if (file.size) headers["Content-Range"] = "bytes " + start + "-" + (end - 1) + "/" + file.size;
        let before = 0;
        const answer = await request("PUT", path, bytes, headers, (sent) => {
          sentBytes += sent - before;
          before = sent;
          item.state = "sending";
          item.sent = start + sent;
        });
        if (answer.status === 200 || answer.status === 201) return "done";
        if (answer.status === 507) return "noRoom";
        if (answer.status === 404) throw new Error("gone");
        if (answer.status === 500) throw new Error("refused");
        if (answer.status !== 204) throw new Error("again");
        offset = end;
        item.tries = 0;
      } while (offset < file.size);
      return "done";
    };
    const send = async (item) => {
      for (item.tries = 0; ; item.tries++) {
        try {
          if (item.state !== "away") item.state = "sending";
          showFiles();
          return await put(item);
        } catch (error) {
          // An unreadable file stays unreadable; a new session needs another code.
          if (/^Not(Readable|Found)Error$/.test(error.name)) return "failed";
          if (error.message === "gone") askForCode("codeText");
          if (error.message === "refused" && item.tries >= 3) return "refused";
          item.sent = 0;
          item.state = error.message === "network" && item.tries >= 4 ? "away" : "retrying";
          showFiles();
          await pause(Math.min(30, 2 ** item.tries));
        }
      }
    };
    const work = async () => {
      active++;
      keepAwake();
      for (let item; (item = queue.shift());) {
        item.state = await send(item);
        showFiles();
        showSummary();
        showProgress();
      }
      active--;
      if (!active) {
        wakeLock?.release();
        showState().catch(() => {});
      }
    };
    const start = () => { while (active < parallel && queue.length) work(); };

    // Asks which files are there already, in batches, so that sending begins soon.
    const choose = async (chosen) => {
      const names = new Set([...chosen].filter((file) => isVideo(file.name)).map((file) => stem(file.name) + "/video"));
      // Chosen twice, sent once.
      const key = ({name, size, lastModified}) => [name, size, lastModified].join("/");
      const ended = ["done", "known", "failed", "noRoom", "refused"];
      const pending = new Set(files.filter((item) => !ended.includes(item.state)).map((item) => key(item.file)));
      const fresh = [...chosen].filter((file) => !pending.has(key(file)));
      const items = fresh.map((file) => ({file, state: "looking", sent: 0}));
      files = [...files.filter((item) => item.state !== "known"), ...items];
      skipped = [];
      showFiles();
      for (let from = 0; from < items.length; from += 50) {
        const batch = items.slice(from, from + 50);
        for (const item of batch) {
          try {
            item.sample = await sample(item.file);
            item.losses = await losses(item.file, names);
          } catch { item.state = "failed"; }
        }
        const ready = batch.filter((item) => item.state !== "failed");
        const lines = ready.map(({file, sample}) =>
          [file.size, file.lastModified > 0 ? Math.floor(file.lastModified) : "-", sample,
            encodeURIComponent(file.name)].join(" "));
        let known = [];
        for (let attempt = 0; attempt < 5; attempt++) {
          try {
            const answer = await request("POST", "/known", lines.join("\n"));
            if (answer.status === 200) known = JSON.parse(answer.responseText);
            break;
          } catch { await pause(2 ** attempt); }
        }
        ready.forEach((item, index) => {
          item.state = known[index] ? "known" : "waiting";
          (known[index] ? skipped : queue).push(item);
        });
        showFiles();
        showSummary();
        start();
      }
    };

    for (const id of ["photos", "originals"]) {
      $(id).addEventListener("change", () => { const chosen = [...$(id).files]; $(id).value = ""; choose(chosen); });
    }
    $("again").addEventListener("click", () => {
      for (const item of skipped.splice(0)) { item.state = "waiting"; queue.push(item); }
      showSummary();
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
    addEventListener("beforeunload", (event) => { if (active) event.preventDefault(); });
    for (const name in texts) $("language").append(new Option(texts[name].name, name));
    $("language").addEventListener("change", () => setLanguage($("language").value));
    setLanguage((navigator.languages || ["en"]).map((name) => name.slice(0, 2)).find((name) => texts[name]) || "en");
    $("language").value = language;
    setInterval(() => { if (active) showProgress(); }, 500);
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
    """#
