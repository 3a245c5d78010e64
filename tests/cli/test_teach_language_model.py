"""`partly teach` with a language model: scores, ledger, dry run, caps, batch files."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from partly import Ledger
from partly.cli.main import app
from partly.errors import DataError, SettingError
from partly.teachers import Scores
from tests.teachers.chat.stub import Stub, reply_to, serve

TEXTS = {"t0": "a cat on a sofa", "t1": "dog and cat", "t2": "nothing here", "t3": "unclear thing"}
FEW = 'cat = "A living cat."\n[dog]\ntext = "A living dog."\nyes = ["a puppy"]\n'
MANY = FEW.replace("[dog]", "".join(f'label{k} = ""\n' for k in range(40)) + "[dog]")


def run(*words: str | int) -> str:
    done = CliRunner().invoke(app, list(map(str, words)), catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.stdout if "--json" in words else done.output


@pytest.fixture
def stub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stub]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PARTLY_CACHE", str(tmp_path / "cache"))
    pd.DataFrame({"item": list(TEXTS), "text": list(TEXTS.values())}).to_csv("texts.csv", index=False)
    Path("names.toml").write_text(FEW)
    Path("many.toml").write_text(MANY)
    with serve() as running:
        yield running


def teach(stub: Stub, *words: str | int, names: str = "names.toml") -> str:
    return run("teach", "texts.csv", "--labels", names, "--url", stub.url, "--model", "m", *words)


def test_scores_are_probabilities_and_the_command_resumes(stub: Stub) -> None:
    said = teach(stub, "--out", "scores.csv")
    assert "4 items, 2 labels: 3 yes, 3 no, 2 cannot tell; no opinion about the other 0 entries." in said
    assert "Confidence from log-probabilities" in said
    table = Scores("scores.csv")
    assert table.names == ("cat", "dog")
    np.testing.assert_allclose(table.matrix[0], [0.9, 0.1], atol=1e-6)
    assert np.isnan(table.matrix[3]).all()
    sent = len(stub.bodies)
    assert "0 calls" in teach(stub, "--out", "scores.csv")
    assert len(stub.bodies) == sent
    assert "A living dog." in json.dumps(stub.bodies)


def test_dry_run_shows_a_prompt_and_a_forecast(stub: Stub) -> None:
    frame = pd.DataFrame({"item": [f"t{i}" for i in range(300)], "text": [f"cat number {i}" for i in range(300)]})
    frame.to_csv("texts.csv", index=False)
    said = teach(stub, "--dry-run", "--input-price", 2, "--output-price", 10)
    assert "<item>\ncat number 0\n</item>" in said
    assert len(stub.bodies) == 21  # and the probe
    assert "Answers: " in said
    forecast = json.loads(teach(stub, "--dry-run", "--json", "--input-price", 2, "--output-price", 10))
    assert forecast["calls"] == [600, 600, 600]
    assert forecast["input_tokens"] == [6000, 6000, 6000]
    assert {word for word, count in forecast["answers"].items() if count} == {"yes", "no"}
    assert sum(forecast["answers"].values()) == 20
    assert forecast["money"][0] == pytest.approx((6000 * 2 + 1200 * 10) / 1e6)
    assert len(stub.bodies) == 21
    many = json.loads(
        run("teach", "texts.csv", "--labels", "many.toml", "--url", stub.url, "--model", "m", "--dry-run", "--json")
    )
    true_calls = 300 * 2 + 300  # two groups for each item, and one candidate
    assert many["calls"][1] <= true_calls <= many["calls"][2]
    assert not Path("scores.csv").exists()


def test_a_cap_stops_cleanly(stub: Stub) -> None:
    said = teach(stub, "--out", "scores.csv", "--max-calls", 5, "--concurrency", 1)
    assert "Stopped by the cap on calls. Repeat the command to continue" in said
    assert len(stub.bodies) == 5
    assert np.isfinite(Scores("scores.csv").matrix).sum() == 3  # one question about each item; one answer is unsure
    assert "Stopped" not in teach(stub, "--out", "scores.csv")
    assert len(stub.bodies) == 9


def test_statements_go_into_the_ledger_below_people_and_come_out_as_a_batch(stub: Stub) -> None:
    ledger = Ledger.create("labels.db", names=["cat", "dog"])
    ledger.append(["t0"], ["cat"], [0], author="anna")
    said = json.loads(teach(stub, "--ledger", "labels.db", "--json"))
    (batch,) = [batch for batch in ledger.log() if batch.kind == "model"]
    assert said["batch"] == batch.number
    assert (batch.author, batch.count) == ("m-v1", 8)
    assert batch.run.startswith("language-model ")
    assert ledger.labels().known.sum() == 1
    for policy in ("latest", "majority"):
        labels = ledger.labels(policy=policy, models=True)
        at = {(labels.ids[i], labels.names[j]): v for i, j, v in zip(*labels.entries(), strict=True)}
        assert at["t0", "cat"] == 0  # of anna, although the model says yes
        assert at["t1", "cat"] == 1
        assert not any(item == "t3" for item, _ in at)  # cannot tell
    assert json.loads(teach(stub, "--ledger", "labels.db", "--json"))["batch"] == batch.number  # once
    run("ledger", "undo", "labels.db", batch.number)
    assert ledger.labels(models=True).known.sum() == 1


@pytest.mark.parametrize("names", ["names.toml", "many.toml"])
def test_batch_files_round_trip_to_the_same_scores(names: str, stub: Stub, monkeypatch: pytest.MonkeyPatch) -> None:
    for turn in range(5):
        said = json.loads(teach(stub, "--batch", f"batch{turn}.jsonl", "--json", names=names))
        if not said["requests"]:
            break
        lines = [json.loads(line) for line in Path(f"batch{turn}.jsonl").read_text().splitlines()]
        assert len(lines) == said["requests"]
        assert {(line["method"], line["url"]) for line in lines} == {("POST", "/v1/chat/completions")}
        replies = [
            {"custom_id": line["custom_id"], "response": {"status_code": 200, "body": reply_to(stub, line["body"])}}
            for line in lines[::-1]
        ]
        foreign = {"custom_id": "0" * 64, "response": {"status_code": 200, "body": {}}}
        text = "\n".join(map(json.dumps, [*replies, foreign]))
        Path("replies.jsonl").write_text(f"{text}\nnot JSON\n[]\n")
        told = teach(stub, "--collect", "replies.jsonl", "--out", "batch.csv", names=names)
        assert f"{len(lines)} replies kept, 0 requests failed, 1 replies to requests" in told
        assert "2 damaged lines" in told
    assert turn == (1 if names == "names.toml" else 2)
    assert not stub.bodies
    assert Path(f"batch{turn}.jsonl").read_text() == ""
    monkeypatch.setenv("PARTLY_CACHE", "other")
    teach(stub, "--out", "online.csv", names=names)
    np.testing.assert_array_equal(Scores("batch.csv").matrix, Scores("online.csv").matrix)


def test_one_in_a_hundred_answers_is_asked_again(stub: Stub) -> None:
    pd.DataFrame({"item": range(400), "text": [f"cat number {i}" for i in range(400)]}).to_csv("texts.csv", index=False)
    said = json.loads(teach(stub, "--out", "scores.csv", "--json"))
    assert 1 <= said["asked_again"] <= 25
    assert said["changed"] == 0
    assert len(stub.bodies) == 1 + 800 + said["asked_again"]
    sent = len(stub.bodies)
    assert json.loads(teach(stub, "--out", "scores.csv", "--json"))["asked_again"] == said["asked_again"]
    assert len(stub.bodies) == sent  # once a day


def test_mistakes_are_told(stub: Stub) -> None:
    with pytest.raises(SettingError, match="needs both --url and --model"):
        run("teach", "texts.csv", "--labels", "names.toml", "--model", "m", "--out", "x.csv")
    with pytest.raises(SettingError, match="Nothing would be saved"):
        teach(stub)
    with pytest.raises(SettingError, match="--encoder: a language model has none"):
        teach(stub, "--out", "x.csv", "--encoder", "hf:model")
    with pytest.raises(SettingError, match="give one of them"):
        teach(stub, "--batch", "x", "--dry-run")
    with pytest.raises(SettingError, match="Give --out"):
        run("teach", "texts.csv", "--labels", "names.toml")
    Path("body.json").write_text("[1]")
    with pytest.raises(DataError, match="give an object"):
        teach(stub, "--out", "x.csv", "--body", "body.json")
    assert not stub.bodies
