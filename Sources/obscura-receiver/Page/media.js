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
const kindOf = (buffer) => {
  const view = new DataView(buffer);
  if (text(view, 0, 2) === "\xff\xd8") return "jpeg";
  if (text(view, 4, 4) !== "ftyp") return "";
  return /^(hei|mif|msf|hev)/.test(text(view, 8, 4)) ? "heic" : "video";
};
// Whether a part of a picture says a location, if it has Exif; and whether it belongs to a Live Photo.
const examine = (buffer, isCut) => {
  const view = new DataView(buffer), bytes = new Uint8Array(buffer);
  const info = {place: find(bytes, "GPSLatitude") >= 0 || undefined, live: false};
  for (let from = 0, at; (at = find(bytes, "Exif\0\0", from)) >= 0; from = at + 6) {
    const base = at + 6, order = text(view, base, 2);
    if (order !== "II" && order !== "MM" || base + 8 > view.byteLength) continue;
    // It may go on behind the end of what was read.
    if (isCut && base + 65536 > view.byteLength) break;
    const little = order === "II";
    const first = directory(view, base, view.getUint32(base + 4, little), little);
    const latitude = first[0x8825] && directory(view, base, first[0x8825].value, little)[2];
    // Android overwrites a location with zeros: denominators, too.
    const start = base + latitude?.value;
    info.place = info.place || !!latitude && bytes.subarray(start, start + 24).some((byte) => byte);
    const apple = find(bytes, "Apple iOS\0\0\x01", base);
    if (apple >= 0) info.live = !!directory(view, apple, 14, text(view, apple + 12, 2) === "II")[0x11];
    break;
  }
  return info;
};
const stem = (name) => name.replace(/\.[^.]*$/, "").toLowerCase();
// The keys of the texts for losses that a file shows. What tells of them is at its beginning or its end.
const losses = async (file) => {
  const found = [], part = 524288, isCut = file.size > 2 * part;
  const ends = isCut ? [file.slice(0, part), file.slice(-part)] : [file];
  const [head, tail] = await Promise.all(ends.map((end) => end.arrayBuffer()));
  const kind = kindOf(head);
  if (kind === "jpeg" && /\.hei[cf]$/i.test(file.name)) found.push("lostHeic");
  if (kind === "jpeg" || kind === "heic") {
    let info = examine(head, isCut);
    // Exif is at the beginning of a JPEG, and anywhere in a HEIC: one that was not found may be there.
    if (info.place === undefined && kind === "heic" && tail) info = examine(tail);
    if (!(info.place ?? (kind === "heic" && isCut))) found.push("lostPlace");
    if (info.live) found.push("lostLive");
  }
  if (kind === "video" && /^IMG_\d+\.mov$/i.test(file.name)
    && ![head, tail].some((end) => end && find(new Uint8Array(end), "com.apple.quicktime.") >= 0)) {
    found.push("lostVideo");
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
