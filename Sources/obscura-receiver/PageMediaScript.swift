/// The part of the page's script that examines files before they are sent, for changes that phones make.
let pageMediaScript = #"""
    const text = (view, at, length) => {
      let result = "";
      for (let i = at; i < at + length && i < view.byteLength; i++) result += String.fromCharCode(view.getUint8(i));
      return result;
    };
    const find = (bytes, word, from) => {
      outer: for (let i = from || 0; i + word.length <= bytes.length; i++) {
        for (let j = 0; j < word.length; j++) if (bytes[i + j] !== word.charCodeAt(j)) continue outer;
        return i;
      }
      return -1;
    };
    // The entries of a TIFF directory: tag to {value}, at most 200.
    const directory = (view, base, offset, little) => {
      const result = {};
      if (base + offset + 2 > view.byteLength) return result;
      const count = Math.min(view.getUint16(base + offset, little), 200);
      for (let i = 0; i < count; i++) {
        const at = base + offset + 2 + 12 * i;
        if (at + 12 > view.byteLength) break;
        result[view.getUint16(at, little)] = {value: view.getUint32(at + 8, little)};
      }
      return result;
    };
    // From the start of a picture: its format, whether it has a location, and whether it belongs to a Live Photo.
    const picture = (buffer) => {
      const view = new DataView(buffer), bytes = new Uint8Array(buffer);
      const info = {kind: "", place: null, live: false};
      if (bytes[0] === 0xff && bytes[1] === 0xd8) info.kind = "jpeg";
      else if (text(view, 4, 4) === "ftyp") info.kind = /^(hei|mif|msf|hev)/.test(text(view, 8, 4)) ? "heic" : "video";
      else if (bytes[0] === 0x89 && text(view, 1, 3) === "PNG") info.kind = "png";
      if (info.kind !== "jpeg" && info.kind !== "heic") return info;
      info.place = false;
      for (let from = 0, at; (at = find(bytes, "Exif\0\0", from)) >= 0; from = at + 6) {
        const base = at + 6, order = text(view, base, 2);
        if (order !== "II" && order !== "MM" || base + 8 > view.byteLength) continue;
        const little = order === "II";
        const first = directory(view, base, view.getUint32(base + 4, little), little);
        const latitude = first[0x8825] && directory(view, base, first[0x8825].value, little)[2];
        // Android overwrites a place with zeros: denominators, too.
        if (latitude) {
          const at = base + latitude.value;
          info.place = bytes.subarray(at, at + 24).some((byte) => byte);
        }
        const apple = find(bytes, "Apple iOS\0\0\x01", base);
        if (apple >= 0) info.live = !!directory(view, apple, 14, text(view, apple + 12, 2) === "II")[0x11];
        break;
      }
      return info;
    };
    const stem = (name) => name.replace(/\.[^.]*$/, "").toLowerCase();
    // The keys of the texts for losses that a file shows.
    const losses = async (file, names) => {
      const found = [], info = picture(await file.slice(0, 524288).arrayBuffer());
      if (info.kind === "jpeg" && /\.hei[cf]$/i.test(file.name)) found.push("lostHeic");
      if (info.place === false) found.push("lostPlace");
      if (info.live && !names.has(stem(file.name) + "/video")) found.push("lostLive");
      if (info.kind === "video" && /^IMG_\d+\.mov$/i.test(file.name)) {
        const ends = [file.slice(0, 524288), file.slice(Math.max(0, file.size - 524288))];
        const parts = await Promise.all(ends.map((end) => end.arrayBuffer()));
        if (!parts.some((part) => find(new Uint8Array(part), "com.apple.quicktime.") >= 0)) found.push("lostVideo");
      }
      return found;
    };
    const isVideo = (name) => /\.(mov|mp4|m4v)$/i.test(name);
    const hex = (buffer) => [...new Uint8Array(buffer)].map((byte) => byte.toString(16).padStart(2, "0")).join("");
    // As the computer makes it (sampleRanges): the size, then all of a small file or three parts of a large one.
    const sample = async (file) => {
      const piece = 262144, size = new DataView(new ArrayBuffer(8));
      size.setBigUint64(0, BigInt(file.size));
      const middle = Math.floor((file.size - piece) / 2);
      const parts = file.size <= 3 * piece ? [file]
        : [file.slice(0, piece), file.slice(middle, middle + piece), file.slice(file.size - piece)];
      return hex(await crypto.subtle.digest("SHA-256", await new Blob([size, ...parts]).arrayBuffer()));
    };

    """#
