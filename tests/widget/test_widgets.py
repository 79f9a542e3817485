"""Widgets hold what they show, and notebooks keep the picture where no widget runs."""

from __future__ import annotations

import pytest
from tests.heatmap.export.maps import town

from sfumato.errors import InvalidParameter

pytestmark = pytest.mark.unit
pytest.importorskip("anywidget")
pytest.importorskip("maplibre")


def test_a_map_is_live_and_a_picture() -> None:
    from sfumato.widget import MapWidget

    shown = MapWidget(town())
    bundle, _ = shown._repr_mimebundle_()
    assert "application/vnd.jupyter.widget-view+json" in bundle
    assert bundle["text/html"].startswith("<figure")
    assert shown.get_state()["view"]["format"] == "sfumato-map-view/1"


def test_a_plan_follows_its_sliders_and_refuses_in_words() -> None:
    from sfumato.widget import PlanWidget

    shown = PlanWidget(epsilon=1, users=1000, levels=6)
    before = shown.shown
    shown.epsilon = 0.1
    assert shown.shown != before
    shown.epsilon = -1.0
    assert "epsilon" in shown.shown
    shown.users = float("nan")
    assert "finite" in shown.shown


def test_what_cannot_be_shown_is_refused() -> None:
    from sfumato.widget import RecoveryWidget

    with pytest.raises(InvalidParameter, match="got int"):
        RecoveryWidget(3)


def test_a_notebook_that_is_run_to_be_converted_keeps_the_picture() -> None:
    """As the how-to says: with the state of its widgets, the page would show nothing offline."""
    nbformat, nbconvert = pytest.importorskip("nbformat"), pytest.importorskip("nbconvert")
    code = "from sfumato.widget import PlanWidget\nPlanWidget(epsilon=1, users=1000, levels=6)"
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(code)])
    run = nbconvert.preprocessors.ExecutePreprocessor(store_widget_state=False)
    page, _ = nbconvert.HTMLExporter().from_notebook_node(run.preprocess(book, {})[0])
    assert "Similarity" in page


def test_a_converted_notebook_keeps_the_picture() -> None:
    nbformat, nbconvert = pytest.importorskip("nbformat"), pytest.importorskip("nbconvert")
    from sfumato.widget import MapWidget

    bundle, _ = MapWidget(town())._repr_mimebundle_()
    cell = nbformat.v4.new_code_cell("MapWidget(release)")
    cell.outputs = [nbformat.v4.new_output("display_data", data=bundle)]
    page, _ = nbconvert.HTMLExporter().from_notebook_node(nbformat.v4.new_notebook(cells=[cell]))
    assert "data:image/png;base64," in page
