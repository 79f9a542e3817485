"""Twins of a sensor in C and in MicroPython give the known answers, and the C one publishes."""

from __future__ import annotations

import json
import queue
import shutil
import subprocess
import sys
from dataclasses import asdict, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.network import wire_answers
from tests.network.mosquitto import running_mosquitto

from sfumato.errors import InvalidInput, NoiseExhausted
from sfumato.network import BrokerConfig, MqttClient, decode, encode, is_checked, unseal_packets
from sfumato.network.sensors import DeviceLattice, device_lattice, device_table
from sfumato.privacy import GaussianLaw, RoundedGaussianLaw
from sfumato.privacy.noise import keyed_draws
from sfumato.sensing.release import MasterKey, quantise
from sfumato.sensing.release.exact import in_sources

pytestmark = pytest.mark.golden

ROOT = Path(__file__).parents[2]
CONTRACT = json.loads((ROOT / "contracts" / "wire-v1.json").read_text())
KNOWN: list[dict[str, Any]] = CONTRACT["answers"]
REFUSED: list[dict[str, Any]] = CONTRACT["refused"]
LATTICES: list[dict[str, Any]] = CONTRACT["lattices"]
STATUSES = {"read": 0, "held": 1, "none": 2}


def head_of(answer: dict[str, Any]) -> bytes:
    """The first bytes and the name, the status in it not masked: what a device packs itself."""
    if "head" in answer:
        return bytes.fromhex(answer["head"])
    name = answer["device"].encode()
    head = bytearray(bytes.fromhex(answer["payload"])[: 113 + len(name)])
    head[57] = STATUSES[answer["status"]]
    return bytes(head)


def law_of(answer: dict[str, Any]) -> str:
    sigma = Fraction(answer["sigma"])
    return f"{answer['law']}|{sigma.numerator}/{sigma.denominator}"


def table_of(answer: dict[str, Any]) -> bytes:
    law = GaussianLaw if answer["law"] == "gaussian" else RoundedGaussianLaw
    return device_table(law(answer["sigma"]))


def request_of(answer: dict[str, Any]) -> str:
    readings = zip(answer["sensors"], answer["units"], strict=True)
    lines = [answer["step_key"], answer["check_key"], law_of(answer), head_of(answer).hex()]
    lines += [str(len(answer["units"])), *(f"{sensor} {unit}" for sensor, unit in readings)]
    return "\n".join(lines) + "\n"


def test_the_package_makes_the_known_packets_and_takes_their_noise_off() -> None:
    assert json.loads(json.dumps(wire_answers.answers())) == KNOWN
    assert json.loads(json.dumps(wire_answers.refused())) == REFUSED
    assert json.loads(json.dumps(wire_answers.lattices())) == LATTICES
    for answer in REFUSED:
        law = GaussianLaw(answer["sigma"])
        with pytest.raises(NoiseExhausted):
            keyed_draws(bytes(32), bytes(12), law, first=answer["first"], size=len(answer["units"]))
    for answer in KNOWN:
        packet = decode(bytes.fromhex(answer["payload"]))
        assert encode(packet).hex() == answer["payload"]
        assert is_checked(packet, bytes.fromhex(answer["check_key"]))
        found = unseal_packets([packet], MasterKey(bytes.fromhex(answer["master_key"])))
        units = [row.value / 2.0 ** answer["exponent"] for row in found.rows]
        assert units == answer["units"]
        assert {row.status for row in found.rows} == {answer["status"]}


@pytest.fixture(scope="module")
def c_twin(tmp_path_factory: pytest.TempPathFactory) -> Path:
    program = tmp_path_factory.mktemp("twin") / "sfumato_sensor"
    source = ROOT / "devices" / "c" / "sfumato_sensor.c"
    words = ["-O1", "-std=gnu99", "-Wall", "-Wextra", "-Werror"]
    subprocess.run(["gcc", *words, "-o", str(program), str(source)], check=True)
    return program


def asked_c(
    program: Path, answer: dict[str, Any], *more: str, request: str = ""
) -> subprocess.CompletedProcess[str]:
    table = program.parent / "table"
    table.write_bytes(table_of(answer))
    return subprocess.run(
        [str(program), str(table), *more], input=request or request_of(answer), capture_output=True,
        text=True, check=False,
    )  # fmt: skip


def run_c(program: Path, answer: dict[str, Any], *more: str) -> str:
    run = asked_c(program, answer, *more)
    assert run.returncode == 0, run.stderr
    return run.stdout.strip()


def test_the_twin_in_c_gives_the_known_packets(c_twin: Path) -> None:
    for answer in KNOWN:
        assert run_c(c_twin, answer) == answer["payload"]


def lattice_lines(of: list[dict[str, Any]]) -> list[str]:
    return [
        f"{count} {one['multiplier']} {one['shift']} {one['zero']} {one['limit']}"
        for one in of for count in one["counts"]
    ]  # fmt: skip


def units_of(of: list[dict[str, Any]]) -> list[int]:
    return [unit for one in of for unit in one["units"]]


def units_in_c(program: Path, lines: list[str]) -> list[int]:
    run = subprocess.run(
        [str(program), "lattices"], input="\n".join(lines) + "\n", capture_output=True, text=True,
        check=True,
    )  # fmt: skip
    return [int(one) for one in run.stdout.split()]


def test_the_twin_in_c_has_the_lattice_of_each_sensor(c_twin: Path) -> None:
    """Known answers, and the largest numbers that 64 bits must hold."""
    assert units_in_c(c_twin, lattice_lines(LATTICES)) == units_of(LATTICES)
    wide = DeviceLattice("x", 0, "1", 2**31 - 1, 61, 2**61 - 1, 2**48, 1.0, 1.0)
    ends = [-(2**31), -1, 0, 1, 2**31 - 1]
    for one in (wide, replace(wide, zero=-(2**61) + 1), replace(wide, shift=1)):
        told = [asdict(one) | {"counts": ends, "units": [one.unit(x) for x in ends]}]
        assert units_in_c(c_twin, lattice_lines(told)) == units_of(told)


def test_a_lattice_moves_no_further_than_its_noise_is_for() -> None:
    """To a unit what the package makes of the same readings; and never steeper than the plan counts."""
    site, noise = wire_answers.weighted_site()
    assert site.level is not None
    assert site.per_source is not None
    for told in LATTICES:
        one = device_lattice(site, noise, told["sensor"])
        gain = Fraction(float(site.gains[one.place]))
        exact = gain * site.step / (site.per_source * Fraction(2) ** noise.exponent)
        slope = Fraction(one.multiplier, 2**one.shift)
        assert exact * (1 - Fraction(1, 2**30)) <= slope <= exact
        counts = told["counts"][:-2]
        ours = quantise(
            in_sources(
                np.array([float(x * site.step) for x in counts]), site,
                level=site.level.of([one.sensor] * len(counts), None), exponent=noise.exponent,
                gains=[float(gain)] * len(counts),
            ),
            noise.exponent,
        )  # fmt: skip
        assert np.abs(ours - [one.unit(x) for x in counts]).max() <= 1
        assert one.sigma == pytest.approx(noise.sigmas[one.place] * float(site.per_source))
        assert one.sigma / one.lattice == pytest.approx(float(noise.width))
    with pytest.raises(InvalidInput, match="switched off"):
        device_lattice(site, noise, "2")
    sigmas = [one["sigma"] for one in LATTICES]
    assert sigmas[0] / sigmas[1] == pytest.approx(3)
    assert sigmas[2] / sigmas[0] == pytest.approx(32 / 11)


def test_sensors_with_noise_of_their_own_from_counts_to_the_collector(
    c_twin: Path, tmp_path: Path
) -> None:
    """Counts, units and packet by the device; read by the collector and, without noise, by the key holder."""
    site, noise = wire_answers.weighted_site()
    answer = dict(KNOWN[1]) | {"sensors": [0, 1, 3], "exponent": noise.exponent}
    lattices = [device_lattice(site, noise, name) for name in ("0", "1", "3")]
    counts = [330, 342, 321]
    lines = [
        f"{count} {one.multiplier} {one.shift} {one.zero} {one.limit}"
        for count, one in zip(counts, lattices, strict=True)
    ]
    answer["units"] = units_in_c(c_twin, lines)
    head = bytearray(head_of(KNOWN[1]))
    head[12:28] = bytes.fromhex(site.digest[:32])
    head[58:60] = noise.exponent.to_bytes(2, "big", signed=True)
    answer["head"] = head.hex()
    packet = decode(bytes.fromhex(run_c(c_twin, answer)))
    assert is_checked(packet, bytes.fromhex(answer["check_key"]))
    found = unseal_packets([packet], MasterKey(bytes.fromhex(answer["master_key"])), site=site)
    assert site.level is not None
    for row, one, count in zip(found.rows, lattices, counts, strict=True):
        above = count * site.step - site.level.of([one.sensor], None)[0]
        # In multiples of what a source adds, to half a unit of its own lattice.
        per_source = float(site.per_source or 1)
        assert row.sensor == one.sensor
        assert abs(row.value * per_source - float(above)) <= one.lattice * 0.51
    # What the collector recovers from: readings times gains, all with the packet's noise.
    assert packet.deviation == packet.sigma * 2.0**noise.exponent
    gains = site.gains[list(packet.sensors)]
    assert np.array(packet.numbers()) / gains == pytest.approx(
        np.array(packet.values) * 2.0**noise.exponent / gains
    )


def test_the_twin_in_c_refuses_draws_that_would_come_again(c_twin: Path) -> None:
    for answer in REFUSED:
        run = asked_c(c_twin, answer)
        assert (run.returncode, run.stderr) == (1, "the draws of this epoch are used up\n")


def test_the_twin_in_c_refuses_what_is_longer_than_its_place(c_twin: Path) -> None:
    lines = request_of(KNOWN[0]).splitlines()
    for at, why in ((0, "step key"), (1, "check key"), (3, "head")):
        long = [*lines]
        long[at] = "a" * 4000
        run = asked_c(c_twin, KNOWN[0], request="\n".join(long) + "\n")
        assert (run.returncode, run.stderr) == (1, f"{why}\n")


def test_the_twin_in_c_publishes_and_is_accepted(c_twin: Path, tmp_path: Path) -> None:
    answer, got = KNOWN[1], queue.Queue[bytes]()
    with running_mosquitto(tmp_path) as broker:
        where = BrokerConfig("127.0.0.1", broker.plain, protocol="3.1.1")
        client = MqttClient(
            where, client_id="collector", subscribe=("sfumato/#",),
            on_message=lambda _, payload: got.put(payload),
        )  # fmt: skip
        client.start()
        assert client.connected.wait(600)
        run_c(c_twin, answer, "127.0.0.1", str(broker.plain), "sfumato/1/hall/x/readings")
        packet = decode(got.get(timeout=600))
        client.stop()
    assert is_checked(packet, bytes.fromhex(answer["check_key"]))
    assert packet.device == answer["device"]


PROGRAM = """
import sys, json
sys.path.append("/")
import sfumato_sensor as twin
for line in json.load(open("/lattices.json")):
    print(twin.unit_of(*[int(word) for word in line.split()]))
for name in json.load(open("/cases.json")):
    one = json.load(open("/" + name + ".json"))
    with open("/" + name + ".table", "rb") as file:
        table = twin.Table(file.read())
    try:
        made = twin.packet(
            bytes.fromhex(one["head"]), bytes.fromhex(one["step_key"]), bytes.fromhex(one["check_key"]),
            one["law"], table, one["readings"],
        )
    except ValueError:
        print("refused")
        continue
    print("".join("%02x" % byte for byte in made))
"""
RUNNER = """
import { readFileSync, readdirSync } from "node:fs";
const { loadMicroPython } = await import(process.argv[2]);
const mp = await loadMicroPython({ heapsize: 64 * 1024 * 1024, linebuffer: true });
const folder = process.argv[3];
for (const name of readdirSync(folder)) mp.FS.writeFile("/" + name, readFileSync(folder + "/" + name));
mp.runPython(readFileSync(folder + "/program.py", "utf8"));
"""


def test_the_twin_in_micropython_gives_the_known_packets(tmp_path: Path) -> None:
    package = Path(sys.prefix) / "micropython" / "node_modules" / "@micropython"
    module = package / "micropython-webassembly-pyscript" / "micropython.mjs"
    assert module.exists(), "make system installs it"
    folder = tmp_path / "files"
    folder.mkdir()
    shutil.copy(ROOT / "devices" / "micropython" / "sfumato_sensor.py", folder)
    names = [f"case{number}" for number in range(len(KNOWN + REFUSED))]
    (folder / "cases.json").write_text(json.dumps(names))
    (folder / "lattices.json").write_text(json.dumps(lattice_lines(LATTICES)))
    for name, answer in zip(names, KNOWN + REFUSED, strict=True):
        given = {
            "head": head_of(answer).hex(), "law": law_of(answer),
            "step_key": answer["step_key"], "check_key": answer["check_key"],
            "readings": list(zip(answer["sensors"], answer["units"], strict=True)),
        }  # fmt: skip
        (folder / f"{name}.json").write_text(json.dumps(given))
        (folder / f"{name}.table").write_bytes(table_of(answer))
    (folder / "program.py").write_text(PROGRAM)
    (tmp_path / "run.mjs").write_text(RUNNER)
    run = subprocess.run(
        ["node", str(tmp_path / "run.mjs"), str(module), str(folder)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    known = [answer["payload"] for answer in KNOWN]
    units = list(map(str, units_of(LATTICES)))
    assert run.stdout.split() == units + known + ["refused"] * len(REFUSED)
