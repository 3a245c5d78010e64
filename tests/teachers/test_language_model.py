"""A language model as a teacher, against a stub server."""

from __future__ import annotations

import base64
import copy
import io
import json
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from partly import Classifier, Labels, items, read, teachers
from partly.errors import DataError, SettingError
from partly.labels.guidelines import Guideline
from partly.teachers.chat.annotator import NO_OPINION
from tests.teachers.chat.stub import Stub, serve

TEXTS = ["a cat on a sofa", "dog and cat", "nothing here", "unclear thing"]
X = items.texts(TEXTS)
PETS = ("cat", "dog")
MANY = (*(f"label{k}" for k in range(40)), *PETS)


@pytest.fixture
def stub() -> Iterator[Stub]:
    with serve() as running:
        yield running


def teacher_of(stub: Stub, folder: Path, **settings: Any) -> teachers.LanguageModel:
    return teachers.LanguageModel(stub.url, "m", cache=folder / "replies.sqlite", **settings)


def test_probabilities_are_those_of_the_answer_word(stub: Stub, tmp_path: Path) -> None:
    teacher = teacher_of(stub, tmp_path)
    opinions = teacher.opinions(X, PETS)
    np.testing.assert_allclose(opinions.chance, [[0.9, 0.1], [0.9, 0.9], [0.1, 0.1], [np.nan] * 2], atol=1e-6)
    np.testing.assert_array_equal(opinions.value, [[1, -1], [1, 1], [-1, -1], [0, 0]])
    assert teacher.annotator.mode == "logprobs"
    scores = teacher.scores(X, PETS)
    np.testing.assert_allclose(scores[0], [np.log(9), -np.log(9)], atol=1e-5)
    assert np.isnan(scores[3]).all()


def test_candidates_come_first_and_silence_is_no_opinion(stub: Stub, tmp_path: Path) -> None:
    opinions = teacher_of(stub, tmp_path).opinions(X, MANY)
    expected = np.full((4, 42), NO_OPINION)
    expected[0, 40] = expected[1, 40] = expected[1, 41] = 1
    np.testing.assert_array_equal(opinions.value, expected)
    assert len(stub.bodies) == 1 + 4 * 2 + 3  # the probe, two groups for each item, and three candidates


def test_without_logprobs_samples_are_counted(tmp_path: Path) -> None:
    said = iter(["yes", "yes", "no", "yes", "unsure"] * 10)
    with serve(Stub(logprobs=False, answer=lambda item, label: (next(said), 0.5))) as stub:
        teacher = teacher_of(stub, tmp_path, samples=5, concurrency=1)
        opinions = teacher.opinions(X[:1], ("cat",))
        assert teacher.annotator.mode == "samples"
        np.testing.assert_allclose(opinions.chance, [[3.5 / 5]])  # 3 yes, 1 no, and half of one each
        assert [body.get("seed") for body in stub.bodies] == [None, 0, 1, 2, 3, 4]
        assert {body["temperature"] for body in stub.bodies[1:]} == {1}
        single = teacher_of(stub, tmp_path, samples=1).opinions(X[:1], ("cat",))
        np.testing.assert_allclose(single.chance, [[0.75]])


def test_an_endpoint_that_refuses_logprobs_is_sampled(tmp_path: Path) -> None:
    with serve(Stub(logprobs=False, plan=["400"])) as stub:
        teacher = teacher_of(stub, tmp_path)
        teacher.opinions(X[:1], PETS)
        assert teacher.annotator.mode == "samples"
        assert not any("logprobs" in body for body in stub.bodies[1:])


@pytest.mark.parametrize(
    "said", ["yes to everything", "yes\nno", '{"cat": "yes"}', "1, 2, 3, 999", "Ignore the labels", "yes" * 1000]
)
def test_an_injected_answer_is_no_opinion(said: str, stub: Stub, tmp_path: Path) -> None:
    for names in (PETS, MANY):
        stub.plan = ["answer" if names is PETS else f"say {said}"] + [f"say {said}"] * 2
        teacher = teachers.LanguageModel(stub.url, "m", cache=tmp_path / f"{len(names)}.sqlite")
        opinions = teacher.opinions(X[:1], names)
        assert (opinions.value == NO_OPINION).all()
        assert np.isnan(opinions.chance).all()
        assert teacher.annotator.client.counts.malformed >= 1


@pytest.mark.parametrize(("names", "kind"), [(PETS, "yes, no or unsure"), (MANY, "a list of numbers")])
def test_a_model_that_cannot_answer_ends_the_run_early(
    names: tuple[str, ...], kind: str, stub: Stub, tmp_path: Path
) -> None:
    texts = items.texts([f"item {i}" for i in range(200)])
    stub.plan = ["answer", *["say Sure, I can help!"] * 1000]
    teacher = teacher_of(stub, tmp_path)
    with pytest.raises(DataError, match=f"None of the first 20 replies is {kind}"):
        teacher.opinions(texts, names)
    assert len(stub.bodies) == 21
    assert len({body["messages"][1]["content"].split("</item>")[0] for body in stub.bodies[1:]}) == 20
    stub.plan = []
    assert (teacher_of(stub, tmp_path, body={"top_p": 1}).opinions(texts, PETS).value == -1).all()


def test_some_unreadable_answers_do_not_end_the_run(stub: Stub, tmp_path: Path) -> None:
    stub.plan = ["answer", *["say Sure!"] * 19]
    texts = items.texts([f"item {i}" for i in range(100)])
    teacher = teacher_of(stub, tmp_path, concurrency=1)
    assert (teacher.opinions(texts, PETS).value == NO_OPINION).sum() == 19
    assert teacher.annotator.client.counts.malformed == 19


@pytest.mark.parametrize(("plan", "message"), [("garbage", "is no chat completion"), ("drop", "no reply to the test")])
def test_an_unusable_test_request_ends_the_run(plan: str, message: str, stub: Stub, tmp_path: Path) -> None:
    """It does not mean that there are no log-probabilities: five samples of each answer would be paid for."""
    stub.plan = [plan] * 2
    with pytest.raises(DataError, match=message):
        teacher_of(stub, tmp_path, retries=1).opinions(X, PETS)
    sent = len(stub.bodies)
    assert sent == (1 if plan == "garbage" else 2)
    stub.plan = []
    assert teacher_of(stub, tmp_path).opinions(X[:1], PETS).value.tolist() == [[1, -1]]
    assert len(stub.bodies) == sent + 3  # the test request again, and two answers


def test_a_cap_leaves_the_rest_without_opinion_and_a_later_run_goes_on(stub: Stub, tmp_path: Path) -> None:
    capped = teacher_of(stub, tmp_path, calls=4, concurrency=1)
    assert np.isfinite(capped.scores(X, PETS)).sum() == 3  # and the probe
    assert len(stub.bodies) == 4
    whole = teacher_of(stub, tmp_path).scores(X, PETS)
    assert np.isfinite(whole).sum() == 6
    assert len(stub.bodies) == 9


def test_copies_share_the_caps(stub: Stub, tmp_path: Path) -> None:
    teacher = teacher_of(stub, tmp_path, calls=4)
    assert copy.deepcopy(teacher) is teacher


def test_rows_of_a_table_are_lines(stub: Stub, tmp_path: Path) -> None:
    table = pd.DataFrame({"color": ["red", None], "weight": [1.5, 2.0], "note": ["likes a dog", "x"]})
    rows = items.frame_rows(table, "X")
    teacher_of(stub, tmp_path).scores(rows[np.array([0])], PETS)
    user = stub.bodies[-1]["messages"][1]["content"]
    assert "<item>\ncolor: red\nweight: 1.5\nnote: likes a dog\n</item>" in user
    plain = items.features(np.array([[0.0, 2.5]]), names=("a", "b"))
    teacher_of(stub, tmp_path).scores(plain, PETS)
    assert "<item>\nb: 2.5\n</item>" in stub.bodies[-1]["messages"][1]["content"]
    with pytest.raises(SettingError, match="say nothing to a language model"):
        teacher_of(stub, tmp_path).scores(items.features(np.ones((1, 2))), PETS)


def test_pictures_are_data_urls_of_bounded_size(stub: Stub, tmp_path: Path) -> None:
    (tmp_path / "photos").mkdir()
    Image.fromarray(np.zeros((300, 800, 3), np.uint8)).save(tmp_path / "photos" / "a.png")
    photos = read(tmp_path / "photos").items
    teacher_of(stub, tmp_path, max_side=128).scores(photos, PETS)
    url = stub.bodies[-1]["messages"][1]["content"][1]["image_url"]["url"]
    head, _, content = url.partition(",")
    assert head == "data:image/jpeg;base64"
    assert Image.open(io.BytesIO(base64.b64decode(content))).size == (128, 48)


def test_a_saved_teacher_contacts_no_host_that_the_environment_does_not_name(
    stub: Stub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PARTLY_CACHE", str(tmp_path))
    monkeypatch.setenv("PARTLY_LANGUAGE_MODEL_KEY", "the-key")
    teacher = teachers.LanguageModel(stub.url, "m", {"cat": Guideline("A cat.", ("kitten",))}, seed=3)
    scores = teacher.scores(X, PETS)
    identity = json.dumps(teacher.identity())
    assert "the-key" not in identity
    back = teachers.from_identity(json.loads(identity))
    assert back is not None
    sent = len(stub.bodies)
    np.testing.assert_array_equal(back.scores(X, PETS), scores)  # from the cache
    with pytest.raises(SettingError, match=r"PARTLY_LANGUAGE_MODEL_HOSTS=127\.0\.0\.1"):
        back.scores(items.texts(["new"]), PETS)
    assert len(stub.bodies) == sent
    monkeypatch.setenv("PARTLY_LANGUAGE_MODEL_HOSTS", "127.0.0.1")
    allowed = teachers.from_identity(json.loads(identity))
    assert allowed is not None
    assert np.isfinite(allowed.scores(items.texts(["new"]), PETS)).all()


@pytest.mark.parametrize(
    "change", [{"url": 5}, {"guidelines": {"a": 1}}, {"guidelines": []}, {"samples": "x"}, {"body": 3}, {"model": None}]
)
def test_a_forged_identity_is_refused(change: dict[str, Any]) -> None:
    identity = teachers.LanguageModel("http://127.0.0.1:1/v1", "m").identity()
    with pytest.raises((DataError, SettingError)):
        teachers.from_identity(identity | change)


def test_it_teaches_a_classifier(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PARTLY_CACHE", str(tmp_path))
    words = ["cat", "dog"]
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2, (60, 2))
    texts = [f"{' '.join(w for w, y in zip(words, row, strict=True) if y)} number {i}" for i, row in enumerate(truth)]
    z = np.where(rng.random((60, 2)) < 0.3, truth, np.nan)
    with serve() as stub:
        teacher = teachers.LanguageModel(stub.url, "m")
        model = Classifier("bce", head="linear", epochs=2, backbone="hashed-words", progress=False, teacher=teacher)
        model.fit(texts, Labels.from_nan(z, names=words))
        assert model.teacher_ is not None
        assert model.teacher_["used"] == ["language model m"]
        calls = len(stub.bodies)
        chance = model.predict_proba(texts)
        assert len(stub.bodies) == calls
        assert ((chance > 0.5) == (truth == 1)).mean() > 0.95
        model.save(tmp_path / "run")
    np.testing.assert_allclose(Classifier.load(tmp_path / "run").predict_proba(texts), chance, atol=1e-6)


def test_a_teacher_that_is_wrong_on_purpose_gets_no_weight(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PARTLY_CACHE", str(tmp_path))
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2, (80, 2))
    texts = [f"{' '.join(w for w, y in zip(PETS, row, strict=True) if y)} number {i}" for i, row in enumerate(truth)]

    def lie(item: str, label: str) -> tuple[str, float]:
        return ("no", 0.1) if label in item else ("yes", 0.9)

    with serve(Stub(answer=lie)) as stub:
        teacher = teachers.LanguageModel(stub.url, "m")
        model = Classifier("bce", head="linear", epochs=2, backbone="hashed-words", progress=False, teacher=teacher)
        model.fit(texts, Labels.from_nan(np.where(rng.random((80, 2)) < 0.5, truth, np.nan), names=PETS))
        assert model.teacher_ is not None
        assert model.teacher_["used"] == []
        np.testing.assert_array_equal(model.teacher_["pooled"]["teachers"], [0.0])


def test_nothing_of_items_is_logged(stub: Stub, tmp_path: Path, caplog: pytest.LogCaptureFixture, capfd: Any) -> None:
    stub.plan = ["answer", "429", "garbage", "413", "drop"]
    with caplog.at_level(logging.DEBUG):
        teacher_of(stub, tmp_path).scores(items.texts(["very-secret cat"]), PETS)
    out, err = capfd.readouterr()
    assert "very-secret" not in caplog.text + out + err


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"confidence": "logprob"}, "Did you mean 'logprobs'"),
        ({"body": {"messages": []}}, "cannot be set there"),
        ({"money": 1.0}, "needs prices"),
        ({"money": 1.0, "input_price": 1.0}, "needs prices"),
        ({"money": 1.0, "output_price": 1.0}, "needs prices"),
        ({"calls": -1}, "not negative"),
        ({"guidelines": {"cat": 1}}, "is no text"),
        ({"samples": 0}, "samples"),
    ],
)
def test_settings_are_checked_at_once(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(SettingError, match=message):
        teachers.LanguageModel("http://127.0.0.1:1/v1", "m", **settings)
