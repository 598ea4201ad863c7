// -- algebra

const matrix = new GridCanvas($("matrix"), {});

function drawAlgebra(shape, scope) {
  $("bases").textContent = $("facts").textContent = "";
  matrix.hide();
  if (!state.x.trim()) return showError($("x-error"), null);
  try {
    const layout = layoutOf(state.x, shape, scope, given).linear;
    showError($("x-error"), null);
    $("facts").textContent = facts(layout);
    $("bases").textContent = layout.toString().slice(1);
    const tile = { layout, names: layout.outs.map((d) => d[0]), coordinates: () => [] };
    if (layout.inBits && layout.outBits) matrix.show({ ...matrixScene(tile), active: undefined });
  } catch (error) {
    if (!(error instanceof LayoutError)) throw error;
    showError($("x-error"), error, state.x);
  }
}
