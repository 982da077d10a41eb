// Places the nodes of a graph around (0.5, 0.5), 1 wide and 1 / ASPECT high at most: distances in the drawing follow distances in the
// graph (classical scaling, then stress majorization). The same graph gets the same drawing.

/** Width of a drawing by its height. */
export const ASPECT = 1.4;
const STEPS = 120;
const LARGE = 250; // nodes; larger graphs take fewer steps

/** A position [x, y] for each node, from the neighbours of each node. */
export function layout(neighbors) {
  const n = neighbors.length;
  if (n < 2) return neighbors.map(() => [0.5, 0.5]);
  const distances = allDistances(neighbors);
  const place = scaled(distances);
  for (let step = 0; step < (n > LARGE ? 15 : STEPS); step++) improve(place, distances);
  return fitted(place);
}

/** Lengths of shortest paths; nodes without a path are as far apart as a graph of this size is wide. */
function allDistances(neighbors) {
  const far = 1.5 + Math.sqrt(neighbors.length);
  return neighbors.map((_, start) => {
    const found = new Array(neighbors.length).fill(Infinity);
    found[start] = 0;
    const queue = [start];
    for (const node of queue) {
      for (const other of neighbors[node]) {
        if (found[other] === Infinity) {
          found[other] = found[node] + 1;
          queue.push(other);
        }
      }
    }
    return found.map((each) => Math.min(each, Math.max(far, 1)));
  });
}

/** Classical multidimensional scaling: two eigenvectors of the centred squared distances. */
function scaled(distances) {
  const n = distances.length;
  const squares = distances.map((row) => row.map((each) => each * each));
  const mean = squares.map((row) => row.reduce((sum, each) => sum + each, 0) / n);
  const total = mean.reduce((sum, each) => sum + each, 0) / n;
  const centred = squares.map((row, i) =>
    row.map((each, j) => (mean[i] + mean[j] - each - total) / 2),
  );
  const vectors = [];
  for (const axis of [0, 1]) {
    // Any start that is not an eigenvector; fixed, so that drawings do not change.
    let vector = distances.map((_, i) => Math.sin(i * 1.7 + axis + 1));
    let length = 0;
    for (let step = 0; step < 60; step++) {
      for (const other of vectors) {
        const along = dot(vector, other) / (dot(other, other) || 1);
        vector = vector.map((each, i) => each - along * other[i]);
      }
      vector = centred.map((row) => dot(row, vector));
      length = Math.hypot(...vector) || 1;
      vector = vector.map((each) => each / length);
    }
    vectors.push(vector.map((each) => each * Math.sqrt(length)));
  }
  // A little noise separates nodes that would lie on each other.
  return distances.map((_, i) => [
    vectors[0][i] + 0.01 * Math.sin(i),
    vectors[1][i] + 0.01 * Math.cos(3 * i),
  ]);
}

/** One step of stress majorization, with weights of one over the squared distance. */
function improve(place, distances) {
  for (let i = 0; i < place.length; i++) {
    let [x, y, total] = [0, 0, 0];
    for (let j = 0; j < place.length; j++) {
      if (i === j) continue;
      const weight = 1 / distances[i][j] ** 2;
      const [dx, dy] = [place[i][0] - place[j][0], place[i][1] - place[j][1]];
      const scale = distances[i][j] / Math.max(Math.hypot(dx, dy), 1e-6);
      x += weight * (place[j][0] + dx * scale);
      y += weight * (place[j][1] + dy * scale);
      total += weight;
    }
    place[i] = [x / total, y / total];
  }
}

/** Moved and scaled to fit; the longer side lies across. */
function fitted(place) {
  const [xs, ys] = [place.map(([x]) => x), place.map(([, y]) => y)];
  const middle = (values) => (Math.min(...values) + Math.max(...values)) / 2;
  const width = (values) => Math.max(...values) - Math.min(...values);
  const [cx, cy] = [middle(xs), middle(ys)];
  const turned = width(ys) > width(xs);
  const [across, down] = turned ? [width(ys), width(xs)] : [width(xs), width(ys)];
  const size = Math.max(across, ASPECT * down, 4); // a few nodes do not fill the drawing
  const moved = place.map(([x, y]) => [(x - cx) / size + 0.5, (y - cy) / size + 0.5]);
  return turned ? moved.map(([x, y]) => [y, x]) : moved;
}

function dot(one, other) {
  return one.reduce((sum, each, i) => sum + each * other[i], 0);
}
