"""GPT-2 of examples/gpt2_chat says what transformers' model says, however the text is cut."""

from __future__ import annotations

import io
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import tests.torchvision_operators  # noqa: F401  (transformers imports torchvision)

FOLDER = Path(__file__).parents[2] / "examples" / "gpt2_chat"
IDS = [3, 17, 200, 5, 9, 9, 41]


@pytest.fixture(scope="module")
def example() -> Any:
    """The modules ``gpt2`` and ``chat``."""
    sys.path.insert(0, str(FOLDER))
    try:
        import chat
        import gpt2

        yield gpt2, chat
    finally:
        sys.path.remove(str(FOLDER))
        for name in ("chat", "gpt2"):
            sys.modules.pop(name, None)


@pytest.fixture(scope="module")
def both(example: Any) -> tuple[Any, Any]:
    """What makes conversations, and transformers' model with the same weights."""
    from transformers import GPT2Config, GPT2LMHeadModel

    gpt2, chat = example
    sizes = {"vocab_size": 256, "n_positions": 40, "n_embd": 32, "n_layer": 2, "n_head": 4}
    torch.manual_seed(0)
    model = GPT2LMHeadModel(GPT2Config(**sizes, bos_token_id=0, eos_token_id=None)).eval()
    for param in model.parameters():
        param.data.mul_(4)  # else all texts go on alike
    weights = chat.weights_of({name: v.numpy() for name, v in model.state_dict().items()})
    config = gpt2.Config(**sizes)
    executable = gpt2.build(config, weights)
    return lambda: gpt2.Conversation(executable, config), model


def test_logits_are_those_of_transformers_however_the_text_is_cut(both: tuple[Any, Any]) -> None:
    conversation, model = both
    with torch.no_grad():
        expected = model(torch.tensor([IDS])).logits[0, -1].numpy()
    for cuts in ([], [1], [2, 3, 6]):
        talk = conversation()
        logits = [talk.read(part.tolist()) for part in np.split(np.array(IDS), cuts)]
        np.testing.assert_allclose(logits[-1], expected, rtol=0, atol=1e-5 * abs(expected).max())


def test_the_likeliest_tokens_are_those_of_transformers(both: tuple[Any, Any]) -> None:
    conversation, model = both
    expected = model.generate(
        torch.tensor([IDS]), max_new_tokens=10, do_sample=False, pad_token_id=0
    )[0, len(IDS) :]
    assert list(conversation().continue_with(IDS, 10)) == expected.tolist()


def test_a_text_ends_where_the_model_sees_no_further(both: tuple[Any, Any]) -> None:
    talk = both[0]()
    assert len(list(talk.continue_with(IDS, 100))) == 40 - len(IDS) + 1
    with pytest.raises(ValueError, match="between 1 and 0 tokens required, got 1"):
        talk.read([1])


def test_pieces_wait_for_whole_characters(example: Any) -> None:
    _, chat = example
    _, decode = chat.text_of_bytes()
    assert list(chat.pieces("aé".encode(), decode)) == ["a", "", "é"]


def test_the_program_answers_each_line(
    example: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    _, chat = example
    monkeypatch.setattr(sys, "argv", ["chat.py", "--random", "--tokens", "3"])
    monkeypatch.setattr(sys, "stdin", io.StringIO("one\ntwo\n\n"))
    assert chat.main() == 0
    assert capsys.readouterr().out.count("[3 tokens, ") == 2
