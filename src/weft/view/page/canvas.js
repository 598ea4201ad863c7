// A grid of cells on a canvas: pointer, touch and keyboard; what is seen is described by a scene (tile.js, banks.js).

class GridCanvas {
  // `on.hover(cell)`, `on.pick(cell)`, `on.leave()`: cells as the scene gives them.
  constructor(canvas, on) {
    this.canvas = canvas;
    this.on = on;
    this.cursor = [0, 0];
    this.zoom = 1;
    this.marks = { elements: [], threads: null };
    canvas.tabIndex = 0;
    canvas.addEventListener("pointermove", (e) => this.pointed(e, "hover"));
    canvas.addEventListener("pointerdown", (e) => this.pointed(e, "pick"));
    canvas.addEventListener("pointerleave", () => this.on.leave?.());
    canvas.addEventListener("keydown", (e) => this.key(e));
    canvas.addEventListener("focus", () => this.paint());
    canvas.addEventListener("blur", () => this.paint());
  }

  show(scene) {
    this.scene = scene;
    this.cells = Array.from({ length: scene.rows * scene.columns }, (_, i) => scene.cell(Math.floor(i / scene.columns), i % scene.columns));
    for (const cell of this.cells)
      if (cell) {
        cell.css = css(cell.fill);
        cell.ink = ink(cell.fill);
      }
    this.layers = null;
    this.cursor = [Math.min(this.cursor[0], scene.rows - 1), Math.min(this.cursor[1], scene.columns - 1)];
    this.canvas.setAttribute("aria-label", scene.label);
    this.layOut();
    this.paint();
  }

  // Nothing to show.
  hide() {
    this.scene = null;
    this.canvas.style.width = this.canvas.style.height = "0";
  }

  cell(r, c) {
    return this.cells[r * this.scene.columns + c];
  }

  layOut() {
    const { scene, canvas } = this;
    const space = canvas.parentElement.clientWidth - 4;
    const names = Math.max(...Array.from({ length: Math.min(scene.rows, 64) }, (_, r) => scene.rowName(r).length), scene.rowName(scene.rows - 1).length);
    this.left = Math.ceil(10 + 6.4 * names);
    this.top = 20;
    const wanted = Math.max(20, 9 + 6.2 * (scene.letters ?? 3));
    const fit = (space - this.left) / scene.columns;
    this.w = Math.max(3, Math.min(wanted, fit) * this.zoom);
    if (scene.letters > 3 && this.w < wanted * 0.8 && scene.columns <= 64) this.w = Math.max(this.w, wanted * this.zoom); // read rather than fit
    this.h = Math.max(3, Math.min(22, this.w) * (this.w > 22 ? Math.max(1, this.zoom) : 1));
    this.w = Math.floor(this.w);
    this.h = Math.floor(Math.min(30, this.h));
    const width = Math.ceil(this.left + this.w * scene.columns + 2);
    const height = Math.ceil(this.top + this.h * scene.rows + 2);
    this.ratio = Math.min(window.devicePixelRatio || 1, Math.sqrt(16e6 / (width * height)));
    canvas.style.width = `${width}px`;
    canvas.style.height = `${height}px`;
    canvas.width = Math.round(width * this.ratio);
    canvas.height = Math.round(height * this.ratio);
    canvas.dataset.cells = [this.left, this.top, this.w, this.h].join();
  }

  at(event) {
    const box = this.canvas.getBoundingClientRect();
    const c = Math.floor((event.clientX - box.left - this.left) / this.w);
    const r = Math.floor((event.clientY - box.top - this.top) / this.h);
    return r >= 0 && c >= 0 && r < this.scene.rows && c < this.scene.columns ? [r, c] : null;
  }

  pointed(event, what) {
    if (!this.scene) return;
    const at = this.at(event);
    if (!at) return what === "hover" ? this.on.leave?.() : undefined;
    this.cursor = at;
    const cell = this.cell(...at);
    if (cell) this.on[what]?.(cell);
    else this.on.leave?.();
  }

  key(event) {
    if (!this.scene) return;
    const step = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1], Home: [0, -1e9], End: [0, 1e9], PageUp: [-8, 0], PageDown: [8, 0] }[event.key];
    if (step) {
      const clamp = (x, size) => Math.min(size - 1, Math.max(0, x));
      this.cursor = [clamp(this.cursor[0] + step[0], this.scene.rows), clamp(this.cursor[1] + step[1], this.scene.columns)];
      const cell = this.cell(...this.cursor);
      if (cell) this.on.hover?.(cell);
      this.paint();
      this.reveal();
    } else if (event.key === "Enter" || event.key === " ") {
      const cell = this.cell(...this.cursor);
      if (cell) this.on.pick?.(cell);
    } else if (event.key === "Escape") this.on.clear?.();
    else return;
    event.preventDefault();
  }

  // Scrolls so that the cursor is in sight.
  reveal() {
    const box = this.canvas.parentElement;
    const [x, y] = [this.left + this.cursor[1] * this.w, this.top + this.cursor[0] * this.h];
    if (x < box.scrollLeft) box.scrollLeft = x - this.w;
    if (x + this.w > box.scrollLeft + box.clientWidth) box.scrollLeft = x + 2 * this.w - box.clientWidth;
    if (y < box.scrollTop) box.scrollTop = y - this.h;
    if (y + this.h > box.scrollTop + box.clientHeight) box.scrollTop = y + 2 * this.h - box.clientHeight;
  }

  // marks: {element, same(cell) -> bool, dim(cell) -> bool, place, active}
  mark(marks) {
    this.marks = marks ?? {};
    if (this.scene) this.paint();
  }

  // All cells as they are, and all dimmed: drawn once for each scene, so that a selection costs two copies of pictures.
  layer(dimmed) {
    const key = document.documentElement.dataset.theme;
    if (this.layers?.key !== key) this.layers = { key };
    const name = dimmed ? "dimmed" : "plain";
    if (this.layers[name]) return this.layers[name];
    const picture = document.createElement("canvas");
    [picture.width, picture.height] = [this.canvas.width, this.canvas.height];
    this.drawCells(picture.getContext("2d"), dimmed);
    return (this.layers[name] = picture);
  }

  drawCells(g, dimmed) {
    const { scene, w, h, left, top, ratio } = this;
    const style = getComputedStyle(document.documentElement);
    const [text, idle, empty] = ["--text", "--line", "--empty"].map((name) => style.getPropertyValue(name).trim());
    g.setTransform(ratio, 0, 0, ratio, 0, 0);
    const longest = this.cells.reduce((most, cell) => Math.max(most, cell?.text?.length ?? 0), 1);
    const size = Math.min(11, h * 0.62, (w - 3) / (0.61 * longest)); // letters are 0.6 of the size wide
    g.font = `${size}px ui-monospace, SFMono-Regular, Menlo, Consolas, monospace`;
    g.textBaseline = "middle";
    g.textAlign = "center";
    const gap = w >= 12 ? 1 : 0;
    for (let r = 0; r < scene.rows; r++)
      for (let c = 0; c < scene.columns; c++) {
        const cell = this.cell(r, c);
        g.globalAlpha = cell && dimmed ? 0.35 : 1;
        g.fillStyle = cell && !cell.idle ? cell.css : cell ? idle : empty;
        g.fillRect(left + c * w, top + r * h, w - gap, h - gap);
        if (cell?.text && h >= 11 && size >= 6) {
          g.globalAlpha = dimmed ? 0.5 : 1;
          g.fillStyle = dimmed ? text : cell.ink;
          g.fillText(cell.text, left + c * w + (w - gap) / 2, top + r * h + (h - gap) / 2 + 0.5);
        }
      }
  }

  paint() {
    const { scene, w, h, left, top, ratio } = this;
    if (!scene) return;
    const g = this.canvas.getContext("2d");
    const style = getComputedStyle(document.documentElement);
    const colour = (name) => style.getPropertyValue(name).trim();
    g.setTransform(1, 0, 0, 1, 0, 0);
    g.clearRect(0, 0, this.canvas.width, this.canvas.height);
    g.drawImage(this.layer(Boolean(this.marks.dim)), 0, 0);
    g.setTransform(ratio, 0, 0, ratio, 0, 0);
    g.textBaseline = "middle";
    g.textAlign = "center";
    if (this.marks.dim) {
      const plain = this.layer(false);
      for (let r = 0; r < scene.rows; r++)
        for (let c = 0; c < scene.columns; c++) {
          const cell = this.cell(r, c);
          if (!cell || this.marks.dim(cell)) continue;
          const at = [left + c * w, top + r * h, w, h];
          g.clearRect(...at);
          g.drawImage(plain, ...at.map((x) => x * ratio), ...at);
        }
    }
    this.names(g, colour("--soft"));
    this.outlines(g, colour("--text"), colour("--accent"));
  }

  names(g, colour) {
    const { scene, w, h, left, top } = this;
    const active = this.marks.place != null && scene.active ? scene.active(this.marks.place, this.marks.element) : null;
    g.fillStyle = colour;
    g.font = "10px ui-monospace, SFMono-Regular, Menlo, Consolas, monospace";
    const every = Math.max(1, Math.ceil(20 / w));
    const bold = (on) => (g.globalAlpha = active ? (on ? 1 : 0.45) : 1);
    for (let c = 0; c < scene.columns; c += every) {
      bold(active?.columns[c]);
      g.fillText(scene.columnName(c), left + (c + 0.5) * w, top - 9);
    }
    g.textAlign = "right";
    const skip = Math.max(1, Math.ceil(11 / h));
    for (let r = 0; r < scene.rows; r += skip) {
      bold(active?.rows[r]);
      g.fillText(scene.rowName(r), left - 6, top + (r + 0.5) * h);
    }
    g.globalAlpha = 1;
    if (active) {
      g.strokeStyle = getComputedStyle(document.documentElement).getPropertyValue("--text");
      g.lineWidth = 1.5;
      active.columns.forEach((on, c) => on && g.strokeRect(left + c * w, top, w - 1, scene.rows * h - 1));
    }
  }

  outlines(g, text, accent) {
    const { scene, w, h, left, top, marks } = this;
    const box = (r, c, colour, width) => {
      g.strokeStyle = colour;
      g.lineWidth = width;
      g.strokeRect(left + c * w + width / 2 - 1, top + r * h + width / 2 - 1, w - width + 1, h - width + 1);
    };
    if (marks.same && w >= 8)
      for (let r = 0; r < scene.rows; r++)
        for (let c = 0; c < scene.columns; c++) {
          const cell = this.cell(r, c);
          if (cell && marks.same(cell)) box(r, c, text, 1.5);
        }
    if (marks.element != null) for (const [r, c] of scene.find(marks.element)) box(r, c, accent, 3);
    if (document.activeElement === this.canvas && this.canvas.matches(":focus-visible")) {
      g.setLineDash([3, 2]);
      box(...this.cursor, text, 1.5);
      g.setLineDash([]);
    }
  }
}
