// Shows a sketch as SVG, and changes it by mouse, touch and keyboard.

import { ASPECT } from './layout.mjs';

const NAMESPACE = 'http://www.w3.org/2000/svg';
const STEP = 0.04; // of a node that is moved by keys
const CLICK = 6; // pixels that a pointer may move in a click
const MARGIN = 26; // pixels around the nodes
const ARROWS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

export class Drawing {
  tool = 'draw';
  focused = 0; // the node that the Tab key reaches
  edgeFrom = null; // where an edge started by the E key begins
  #drag = null;
  #radius = 18;

  /**
   * @param svg the element
   * @param sketch the graph
   * @param options.newNode label and attributes of a new node
   * @param options.appearance of a node: { text, fill, place, unknown, description }
   * @param options.relabel called with a node and the number of a label (null: the chosen one)
   * @param options.changed called after a change
   * @param options.say announces a sentence to screen readers
   * @param options.light called with the node under the pointer or in focus, or null
   */
  constructor(svg, sketch, options) {
    Object.assign(this, { svg, sketch, ...options });
    svg.addEventListener('pointerdown', (event) => this.#pointerDown(event));
    svg.addEventListener('pointermove', (event) => this.#pointerMove(event));
    svg.addEventListener('pointerup', (event) => this.#pointerUp(event));
    svg.addEventListener('pointercancel', () => this.#stopDrag());
    svg.addEventListener('pointerover', (event) => this.light(nodeOf(event.target)));
    svg.addEventListener('pointerleave', () => this.light(null));
    svg.addEventListener('keydown', (event) => this.#key(event));
    svg.addEventListener('focusin', (event) => this.#focusIn(nodeOf(event.target)));
    svg.addEventListener('focusout', () => this.light(null));
    new ResizeObserver(() => this.render()).observe(svg);
  }

  render() {
    this.#radius = this.radius;
    const { nodes, edges } = this.sketch;
    const hadFocus = this.svg.contains(document.activeElement);
    this.svg.dataset.tool = this.tool;
    this.svg.tabIndex = nodes.length ? -1 : 0;
    this.focused = Math.max(0, Math.min(this.focused, nodes.length - 1));
    const parts = [];
    for (const [one, other] of edges) {
      const ends = { ...this.#end(one, 1), ...this.#end(other, 2) };
      parts.push(element('line', { class: 'edge', ...ends }));
      parts.push(element('line', { class: 'edge-area', 'data-edge': `${one} ${other}`, ...ends }));
    }
    if (this.#drag?.rubber)
      parts.push(
        element('line', {
          class: 'rubber',
          ...this.#end(this.#drag.node, 1),
          ...this.#drag.rubber,
        }),
      );
    for (const node of nodes.keys()) parts.push(this.#node(node));
    this.svg.replaceChildren(...parts);
    if (hadFocus) this.focus(this.focused);
  }

  focus(node) {
    this.focused = node;
    for (const each of this.svg.querySelectorAll('.node'))
      each.tabIndex = Number(each.dataset.node) === node ? 0 : -1;
    (this.svg.querySelector(`[data-node="${node}"]`) ?? this.svg).focus({ preventScroll: true });
  }

  highlight(node) {
    for (const each of this.svg.querySelectorAll('.node'))
      each.classList.toggle('lit', Number(each.dataset.node) === node);
  }

  /** Small enough for the room that there is, and for the edges to be seen. */
  get radius() {
    const { nodes, edges } = this.sketch;
    const { width, height } = this.#size();
    const room = Math.sqrt((width * height) / Math.max(1, nodes.length)) / 4.2;
    const lengths = edges.map(([one, other]) => {
      return (
        this.#scale() * Math.hypot(nodes[one].x - nodes[other].x, nodes[one].y - nodes[other].y)
      );
    });
    const typical = lengths.sort((a, b) => a - b)[lengths.length >> 1] ?? Infinity;
    return Math.max(5, Math.min(18, room, 0.34 * typical));
  }

  #node(node) {
    const { text, fill, place, unknown, description } = this.appearance(node);
    const [x, y] = this.#pixels(this.sketch.nodes[node]);
    const radius = this.#radius;
    const size = radius * (text.length > 2 ? 0.6 : 0.9);
    const classes = ['node', unknown && 'unknown', node === this.edgeFrom && 'from'];
    const group = element('g', {
      class: classes.filter(Boolean).join(' '),
      'data-node': node,
      tabindex: node === this.focused ? 0 : -1,
      role: 'img',
      'aria-roledescription': 'node',
      'aria-label': description,
    });
    const circle = element('circle', { cx: x, cy: y, r: radius });
    if (fill) circle.style.fill = fill;
    group.append(circle, words(text, { x, y, 'font-size': size }));
    if (place !== null && radius > 8) {
      group.append(
        words(place, { class: 'place', x: x + radius, y: y + radius, 'font-size': 10.5 }),
      );
    }
    return group;
  }

  #end(node, number) {
    const [x, y] = this.#pixels(this.sketch.nodes[node]);
    return { [`x${number}`]: x, [`y${number}`]: y };
  }

  #size() {
    return { width: this.svg.clientWidth || 600, height: this.svg.clientHeight || 400 };
  }

  /** Pixels per unit; the drawing is wider than it is high, as layouts are. */
  #scale() {
    const { width, height } = this.#size();
    return Math.max(50, Math.min(width - 2 * MARGIN, ASPECT * (height - 2 * MARGIN)));
  }

  #pixels({ x, y }) {
    const { width, height } = this.#size();
    return [width / 2 + (x - 0.5) * this.#scale(), height / 2 + (y - 0.5) * this.#scale()];
  }

  /** Where a pointer is: in pixels, and in the unit square (which it may leave). */
  #at(event) {
    const box = this.svg.getBoundingClientRect();
    const [px, py] = [event.clientX - box.left, event.clientY - box.top];
    const { width, height } = this.#size();
    const scale = this.#scale();
    return { px, py, x: (px - width / 2) / scale + 0.5, y: (py - height / 2) / scale + 0.5 };
  }

  #pointerDown(event) {
    if (event.button !== 0 || this.#drag) return;
    const at = this.#at(event);
    const node = nodeOf(event.target);
    event.preventDefault();
    this.svg.setPointerCapture(event.pointerId);
    this.#drag = { node, start: at, edge: event.target.dataset.edge, moved: false };
    if (node !== null) this.focus(node);
  }

  #pointerMove(event) {
    const drag = this.#drag;
    if (!drag) return;
    const at = this.#at(event);
    drag.moved ||= Math.hypot(at.px - drag.start.px, at.py - drag.start.py) > CLICK;
    if (!drag.moved || drag.node === null) return;
    if (this.tool === 'move') {
      if (!drag.kept) this.sketch.remember();
      drag.kept = true;
      this.#place(drag.node, at);
    } else if (this.tool === 'draw') drag.rubber = { x2: at.px, y2: at.py };
    this.render();
  }

  #pointerUp(event) {
    const drag = this.#drag;
    if (!drag) return;
    const at = this.#at(event);
    this.#stopDrag();
    const target = nodeOf(document.elementFromPoint(event.clientX, event.clientY));
    if (this.tool === 'erase') {
      if (drag.node !== null) this.sketch.remove(drag.node);
      else if (drag.edge) this.sketch.disconnect(...drag.edge.split(' ').map(Number));
      this.changed();
    } else if (this.tool === 'draw') {
      if (drag.node === null) this.#add(at, null);
      else if (!drag.moved) this.relabel(drag.node, null);
      else if (target === null) this.#add(at, drag.node);
      else this.sketch.toggle(drag.node, target);
      this.changed();
    }
  }

  #stopDrag() {
    this.#drag = null;
    this.render();
  }

  #add(at, from) {
    const node = this.sketch.add(this.newNode(), from);
    this.#place(node, at);
    this.focused = node;
    return node;
  }

  /** Put a node at a place, but not outside of the drawing. */
  #place(node, { x, y }) {
    const { width, height } = this.#size();
    const within = (value, size) => {
      const most = Math.max(0, size - MARGIN) / (2 * this.#scale());
      return Math.min(0.5 + most, Math.max(0.5 - most, value));
    };
    Object.assign(this.sketch.nodes[node], { x: within(x, width), y: within(y, height) });
  }

  #focusIn(node) {
    if (node !== null) this.focused = node;
    this.light(node);
  }

  #key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const node = this.sketch.nodes.length ? this.focused : null;
    const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
    const arrow = ARROWS[key];
    if (key === 'n' || key === 'Insert') this.#addByKey(node);
    else if (node === null) return;
    else if (arrow && event.shiftKey) this.#moveByKey(node, arrow);
    else if (arrow) this.focus(this.#towards(node, arrow));
    else if (key === 'e') this.#startEdge(node);
    else if (key === 'Enter' || key === ' ') this.#enter(node);
    else if (key === 'Escape' && this.edgeFrom !== null) this.#startEdge(null);
    else if (key === 'Delete' || key === 'Backspace') this.#removeByKey(node);
    else if (/^[1-9]$/.test(key)) {
      this.relabel(node, Number(key) - 1);
      this.changed();
    } else return;
    event.preventDefault();
  }

  #addByKey(from) {
    const near = from === null ? { x: 0.5, y: 0.5 } : this.#freePlace(this.sketch.nodes[from]);
    const node = this.#add(near, from);
    this.changed();
    this.focus(node);
    this.say(`Added node ${node}${from === null ? '' : `, connected to node ${from}`}.`);
  }

  /** The place around a node that is farthest from all others. */
  #freePlace({ x, y }) {
    const around = Array.from({ length: 12 }, (_, i) => {
      const angle = (i * Math.PI) / 6;
      return { x: x + 0.14 * Math.cos(angle), y: y + 0.14 * Math.sin(angle) };
    });
    const room = (place) => {
      const distances = this.sketch.nodes.map((each) =>
        Math.hypot(each.x - place.x, each.y - place.y),
      );
      const edges = [place.x, 1 - place.x, place.y - 0.15, 0.85 - place.y].map(
        (each) => each + 0.1,
      );
      return Math.min(...distances.filter((each) => each > 0), ...edges);
    };
    return around.reduce((best, place) => (room(place) > room(best) + 1e-9 ? place : best));
  }

  #moveByKey(node, [dx, dy]) {
    this.sketch.remember();
    const { x, y } = this.sketch.nodes[node];
    this.#place(node, { x: x + dx * STEP, y: y + dy * STEP });
    this.render();
  }

  #startEdge(node) {
    this.edgeFrom = node;
    this.render();
    this.say(
      node === null ? 'No edge.' : `Edge from node ${node}. Go to another node and press Enter.`,
    );
  }

  #enter(node) {
    if (this.edgeFrom === null) this.relabel(node, null);
    else {
      const from = this.edgeFrom;
      this.edgeFrom = null;
      this.sketch.toggle(from, node);
      this.say(`Nodes ${from} and ${node}: connected or disconnected.`);
    }
    this.changed();
  }

  #removeByKey(node) {
    this.edgeFrom = null;
    this.sketch.remove(node);
    this.changed();
    this.say(`Removed node ${node}.`);
  }

  /** The nearest node in a direction, or the same one. */
  #towards(node, [dx, dy]) {
    const [x, y] = this.#pixels(this.sketch.nodes[node]);
    let [best, least] = [node, Infinity];
    for (const other of this.sketch.nodes.keys()) {
      const [ox, oy] = this.#pixels(this.sketch.nodes[other]);
      const along = (ox - x) * dx + (oy - y) * dy;
      const aside = Math.abs((ox - x) * dy) + Math.abs((oy - y) * dx);
      const cost = along + 2 * aside;
      if (along > 1 && cost < least) [best, least] = [other, cost];
    }
    return best;
  }
}

function nodeOf(target) {
  const found = target?.closest?.('#drawing .node');
  return found ? Number(found.dataset.node) : null;
}

function element(name, attributes) {
  const made = document.createElementNS(NAMESPACE, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return made;
}

function words(text, attributes) {
  const made = element('text', { ...attributes, 'aria-hidden': true });
  made.textContent = text;
  return made;
}
