"""A person with a notebook: widgets in JupyterLab and in marimo, in a real browser, and the file afterwards."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect
from tests.browsers import PATIENCE, kept, visiting

from sfumato.network import free_port

pytestmark = pytest.mark.browser
nbformat, nbconvert = pytest.importorskip("nbformat"), pytest.importorskip("nbconvert")

CELLS = (
    "from sfumato.widget import MapWidget, PlanWidget, RecoveryWidget\n"
    "from tests.heatmap.export.maps import town\n"
    "from tests.widget.rounds import two_rounds\n"
    "MapWidget(town())",
    "PlanWidget(epsilon=1, users=1000, levels=6)",
    "RecoveryWidget(two_rounds())",
)
NAMES = "MapWidget, PlanWidget, RecoveryWidget, town, two_rounds"
IDLE = "window.jupyterapp?.shell?.currentWidget?.sessionContext?.session?.kernel?.status === 'idle'"


@contextmanager
def server(command: list[str], folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A server of notebooks that knows nothing of whoever runs the tests; it ends with the test."""
    tests = Path(__file__).parents[2]
    places = {
        name: str(folder / name.lower())
        for name in ("JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR", "IPYTHONDIR",
                     "XDG_CONFIG_HOME", "XDG_STATE_HOME")
    }  # fmt: skip
    path = os.pathsep.join([str(tests / "src"), str(tests)])
    with (folder / "said.txt").open("wb") as said:
        started = subprocess.Popen(
            [sys.executable, "-m", *command],
            cwd=folder,
            env=os.environ | places | {"PYTHONPATH": path},
            stdout=said,
            stderr=subprocess.STDOUT,
        )
    try:
        yield started
    finally:
        started.terminate()
        started.wait()


def until(found: Any, started: subprocess.Popen[bytes], folder: Path) -> Any:
    """What a server answers once it is there; what it said, if it ended instead."""
    while started.poll() is None:
        try:
            return found()
        except (OSError, ValueError, StopIteration):
            time.sleep(0.1)
    raise AssertionError((folder / "said.txt").read_text("utf-8"))


def used(page: Page) -> None:
    """What a person does with the three widgets, wherever they are."""
    shown = page.locator("[data-ready]")
    shown.scroll_into_view_if_needed()
    shown.get_by_label("Blur").press("ArrowRight")  # which notebooks have a use for, too
    expect(shown.get_by_label("Blur").locator("xpath=../output")).to_have_text("2% of the side")
    assert shown.get_attribute("data-ready") in {"map", "picture"}
    assert shown.locator("canvas, img").count()
    plan = page.locator(".sf-plan")
    plan.scroll_into_view_if_needed()
    forecast = plan.locator("xpath=following-sibling::div")
    before = forecast.text_content() or ""
    assert "Similarity" in before
    plan.get_by_label("epsilon").press("End")
    expect(plan.locator("output").first).to_have_text("20")
    expect(forecast).not_to_have_text(before, timeout=PATIENCE)
    expect(forecast).to_contain_text("Similarity")
    rounds = page.locator("label", has_text="Round ")
    rounds.scroll_into_view_if_needed()
    expect(rounds.locator("output")).to_have_text("2 of 2")
    expect(rounds.locator("xpath=following-sibling::div")).to_contain_text("verdict")
    picture = rounds.locator("xpath=following-sibling::div").locator("img, svg").first
    picture.wait_for()
    last = picture.evaluate("(one) => one.outerHTML")
    rounds.locator("input").press("ArrowLeft")
    expect(rounds.locator("output")).to_have_text("1 of 2")
    assert picture.evaluate("(one) => one.outerHTML") != last


def test_jupyterlab_shows_live_widgets_and_the_file_keeps_their_pictures(
    browser: Browser, tmp_path: Path
) -> None:
    cells = [nbformat.v4.new_code_cell(one) for one in CELLS]
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    path = tmp_path / "town.ipynb"
    book = nbformat.v4.new_notebook(cells=cells, metadata={"kernelspec": kernel})
    nbformat.write(book, path)
    command = [
        "jupyterlab", "--no-browser", "--allow-root", "--ServerApp.ip=127.0.0.1",
        "--ServerApp.port=0", f"--ServerApp.root_dir={tmp_path}", "--IdentityProvider.token=opener",
        "--LabApp.expose_app_in_browser=True", "--LabApp.extension_manager=readonly",
        "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate",
    ]  # fmt: skip
    runtime = tmp_path / "jupyter_runtime_dir"
    with server(command, tmp_path) as started:
        told = until(
            lambda: json.loads(next(runtime.glob("jpserver-*.json")).read_text("utf-8")),
            started,
            tmp_path,
        )
        home = f"http://127.0.0.1:{told['port']}/"
        with visiting(browser, home, viewport={"width": 1280, "height": 1600}) as visit:
            page = visit.page
            page.goto(f"{home}lab/tree/{path.name}?token=opener")
            page.wait_for_function(IDLE)
            page.evaluate("window.jupyterapp.commands.execute('notebook:run-all-cells')")
            used(page)
            kept(page, "jupyterlab")
            page.evaluate("window.jupyterapp.commands.execute('docmanager:save')")
            assert visit.outside == []
    saved = nbformat.read(path, as_version=4)
    bundles = [one.data for cell in saved.cells for one in cell.outputs]
    assert len(bundles) == len(CELLS)
    assert all({"application/vnd.jupyter.widget-view+json", "text/html"} <= set(b) for b in bundles)
    text, _ = nbconvert.HTMLExporter().from_notebook_node(saved)
    still(browser, text)


def still(browser: Browser, text: str) -> None:
    """A converted notebook has its pictures where no script may run and nobody can be asked."""
    with visiting(browser, "about:blank", java_script_enabled=False, offline=True) as visit:
        visit.page.set_content(text)
        pictures = visit.page.locator("img[src^='data:image/png']")
        assert pictures.count() >= 2
        for one in pictures.all():
            assert one.evaluate("(one) => one.naturalWidth") > 100
            assert "No description" not in str(one.get_attribute("alt"))  # nbconvert's own
        expect(visit.page.get_by_alt_text("epsilon 1 for each user")).to_be_visible()
        kept(visit.page, "nbconvert")


def test_marimo_shows_live_widgets(browser: Browser, tmp_path: Path) -> None:
    inside = [CELLS[0].replace("\n", "\n    "), *CELLS[1:]]
    asked, given = ["", NAMES, NAMES], [NAMES, "", ""]
    cells = (
        f"@app.cell\ndef _({takes}):\n    {cell}\n    return {gives}\n"
        for takes, cell, gives in zip(asked, inside, given, strict=True)
    )
    (tmp_path / "town.py").write_text(
        "\n".join(["import marimo", "app = marimo.App()", *cells]), "utf-8"
    )
    port = free_port()
    home = f"http://127.0.0.1:{port}/"
    command = ["marimo", "-q", "run", "town.py", "--headless", "--no-token", "--port", str(port)]
    with server(command, tmp_path) as started:
        until(lambda: urllib.request.urlopen(f"{home}health").read(), started, tmp_path)  # noqa: S310
        with visiting(browser, home, viewport={"width": 1280, "height": 1600}) as visit:
            visit.page.goto(home)
            used(visit.page)
            kept(visit.page, "marimo")
            assert visit.outside == []
