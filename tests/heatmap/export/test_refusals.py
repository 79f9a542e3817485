"""Maps are read back as they were, and what cannot be written is refused before anything is paid."""

from __future__ import annotations

import builtins
import importlib.util
import json
from pathlib import Path
from typing import Any

import pytest
from tests.broken_disk import fill
from tests.heatmap.export.maps import CITY, HOSTILE, PACIFIC, SCENE, heatmap, town

from sfumato.errors import ExistsAlready, InvalidInput, InvalidParameter, MissingPackage
from sfumato.heatmap.export import SUFFIXES, WriteOptions, check_outputs, read_heatmap, write
from sfumato.spaces import area_of_image

pytestmark = pytest.mark.unit


def saved(release: Any, folder: Path, name: str, **wishes: Any) -> Path:
    write(release, folder / name, **wishes)
    return folder / name


# back again


def test_a_map_can_be_read_back_and_drawn_again(tmp_path: Path) -> None:
    for release in (
        town(),
        town(PACIFIC, rehearsal=True, group=HOSTILE),
        town(SCENE),
        heatmap(CITY, []),
    ):
        path = tmp_path / "map.json"
        write(release, path, overwrite=True)
        again = read_heatmap(path)
        assert again.to_json() == release.to_json()
        for suffix in (".csv", ".html", ".npz"):
            first, second = (saved(one, tmp_path, f"{k}{suffix}", overwrite=True).read_bytes()
                             for k, one in enumerate((release, again)))  # fmt: skip
            assert first == second


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": "x"}, "its format is not sfumato-heatmap/1"),
        ({"statement": "nothing"}, "its statement is not that of its guarantee"),
        ({"tiles": {"levels": [0.5], "codes": [0], "masses": [1]}}, "no integers"),
        ({"tiles": {"levels": [9], "codes": [0], "masses": [1]}}, r"not all in 0\.\.8"),
        ({"tiles": {"levels": [1], "codes": [4], "masses": [1]}}, "not in its grid"),
        ({"tiles": {"levels": [1], "codes": [0], "masses": [-1]}}, "at least 0"),
        ({"tiles": {}}, "it has no 'levels'"),
        ({"rehearsal": 1}, "neither true nor false"),
        ({"area": None}, "is not a whole map"),
    ],
)
def test_a_broken_map_is_refused_in_one_sentence(
    change: dict[str, Any], message: str, tmp_path: Path
) -> None:
    path = tmp_path / "map.json"
    path.write_text(json.dumps({**town().to_json(), **change}))
    with pytest.raises(InvalidInput, match=message) as refused:
        read_heatmap(path)
    assert str(refused.value).endswith("nothing was drawn")


def test_a_missing_or_garbled_map_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="cannot read"):
        read_heatmap(tmp_path / "none.json")
    (tmp_path / "a.json").write_bytes(b"\xff\xfe")
    with pytest.raises(InvalidInput, match="no text"):
        read_heatmap(tmp_path / "a.json")


# refusals, before anything is paid


def test_outputs_are_checked_beforehand(tmp_path: Path) -> None:
    check_outputs([tmp_path / f"map{suffix}" for suffix in SUFFIXES], CITY)
    check_outputs([tmp_path / "MAP.PNG"], CITY)
    (tmp_path / "old.csv").write_text("")
    check_outputs([tmp_path / "old.csv"], CITY, overwrite=True)
    for paths, message in [
        (["map.gif"], r"one of \.png, \.tif.*got .*map\.gif; nothing was written"),
        (["no/map.png"], "folder of .* must exist"),
        (["old.csv"], "exists already and is kept"),
        (["map.png", "./map.png"], "got one twice"),
    ]:
        with pytest.raises((InvalidParameter, ExistsAlready), match=message):
            check_outputs([tmp_path / path for path in paths], CITY)
    with pytest.raises(InvalidParameter, match="the map is in pixels"):
        check_outputs([tmp_path / "a.geojson"], area_of_image(8, 6, 2))
    over = WriteOptions(over=tmp_path / "old.csv")
    with pytest.raises(InvalidInput, match="as a georeferenced image"):
        check_outputs([tmp_path / "a.png"], CITY, options=over)
    with pytest.raises(InvalidInput, match="as an image"):
        check_outputs([tmp_path / "a.png"], area_of_image(8, 6, 2), options=over)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["old.csv"]


def test_a_file_is_kept_unless_asked(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("mine")
    with pytest.raises(ExistsAlready, match="exists already and is kept"):
        town().write(path)
    assert path.read_text() == "mine"
    town().write(path, overwrite=True)
    assert path.read_text().startswith("level,west")
    assert [one.name for one in tmp_path.iterdir()] == ["a.csv"]


def test_a_disk_that_fails_leaves_no_half_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(monkeypatch)
    with pytest.raises(InvalidInput, match="No space left on device; the map was paid for"):
        write(town(), tmp_path / "a.csv")
    assert list(tmp_path.iterdir()) == []


def test_a_missing_package_is_its_install_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, found = builtins.__import__, importlib.util.find_spec

    def without(name: str, *rest: Any, **more: Any) -> Any:
        if name.split(".")[0] in {"rasterio", "h3", "geopandas"}:
            raise ImportError(name)
        return whole(name, *rest, **more)

    with monkeypatch.context() as absent:
        absent.setattr(
            importlib.util,
            "find_spec",
            lambda name: None if name in {"rasterio", "h3"} else found(name),
        )
        for suffix in (".tif", ".h3.csv", ".h3.parquet"):
            with pytest.raises(MissingPackage, match=r"^pip install 'sfumato\[geo\]'$"):
                check_outputs([tmp_path / f"a{suffix}"], CITY)
        check_outputs([tmp_path / "a.png", tmp_path / "a.geojson"], CITY)
    monkeypatch.setattr(builtins, "__import__", without)
    for suffix in (".tif", ".h3.csv"):
        with pytest.raises(MissingPackage, match=r"^pip install 'sfumato\[geo\]'$"):
            write(town(), tmp_path / f"a{suffix}")
    with pytest.raises(MissingPackage, match=r"^pip install 'sfumato\[geo\]'$"):
        town().to_geodataframe()
