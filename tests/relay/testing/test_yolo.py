"""Images for Darknet's networks, and boxes from YOLO's layers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tvm.relay.testing import darknet
from tvm.relay.testing import yolo_detection as yolo


def test_images_are_planes_in_grey_boxes(tmp_path: Path) -> None:
    from PIL import Image

    pixels = np.zeros((2, 4, 3), "uint8")
    pixels[..., 0], pixels[:, 3, 2] = 255, 51
    Image.fromarray(pixels).save(tmp_path / "red.png")
    found = darknet.load_image_color(str(tmp_path / "red.png"))
    assert found.shape == (3, 2, 4) and (found[0] == 1).all() and found[2, 0, 3] == 0.2
    boxed = darknet.load_image(str(tmp_path / "red.png"), 8, 8)
    assert (boxed[:, :2] == 0.5).all() and (boxed[:, 6:] == 0.5).all()
    assert (boxed[0, 2:6] == 1).all() and boxed[2, 3, 7] == pytest.approx(0.2)
    assert (darknet.LAYERTYPE.YOLO, darknet.ACTIVATION.LEAKY) == (23, 7)


def layer(kind: str) -> dict[str, object]:
    """Two boxes, 7 values, 4 x 4 places; one object of the second class in place (1, 2)."""
    output = np.zeros((2, 7, 4, 4), "float32")
    output[1, :, 1, 2] = [0.5, 0.5, 0.0, 0.0, 0.9, 0.1, 0.8]
    biases = [1.0, 1.0, 16.0, 8.0] if kind == "Yolo" else [1.0, 1.0, 2.0, 1.0]
    return {"type": kind, "output": output, "biases": biases, "mask": [0, 1], "classes": 2}


@pytest.mark.parametrize("kind", ["Yolo", "Region"])
@pytest.mark.parametrize("relative", [True, False])
def test_boxes_are_found_in_the_image(kind: str, relative: bool) -> None:
    # the image fills the upper and lower quarter of the input with grey
    (found,) = yolo.fill_network_boxes((32, 32), (64, 32), 0.5, relative, [layer(kind)])
    box = np.array([0.625, (1.5 / 4 - 0.25) * 2, 0.5, 0.5])
    if not relative:
        box *= (64, 32, 64, 32)
    np.testing.assert_allclose(found["bbox"], box, rtol=1e-6)
    np.testing.assert_allclose(found["prob"], [0, 0.72], rtol=1e-6)
    assert yolo.fill_network_boxes((32, 32), (64, 32), 0.95, relative, [layer(kind)]) == []
    with pytest.raises(ValueError, match="knows Yolo and Region, got 'Softmax'"):
        yolo.fill_network_boxes((32, 32), (64, 32), 0.5, True, [{"type": "Softmax"}])


def detection(x: float, probability: float) -> dict[str, object]:
    prob = np.array([0.0, probability])
    box = yolo.Box(x, 0.5, 0.4, 0.4)
    return {"bbox": box, "classes": 2, "prob": prob, "objectness": probability, "sort_class": -1}


def test_of_overlapping_boxes_the_most_probable_stays() -> None:
    dets = [detection(0.5, 0.7), detection(0.52, 0.9), detection(0.9, 0.6)]
    yolo.do_nms_sort(dets, 2, 0.45)
    assert [d["prob"][1] for d in dets] == [0.9, 0.0, 0.6]  # type: ignore[index]
    assert yolo.nms_comparator(dets[0], dets[2]) == -1


def test_boxes_are_drawn_and_listed(capsys: pytest.CaptureFixture[str]) -> None:
    image = np.zeros((3, 100, 100), "float32")
    dets = [detection(0.5, 0.9), detection(0.1, 0.2)]
    yolo.show_detections(image, dets, 0.5, ["cat", "dog"], 2)
    assert capsys.readouterr().out == "class: dog, probability: 0.900, corners: (30, 30, 70, 70)\n"
    yolo.draw_detections(None, image, dets, 0.5, ["cat", "dog"], 2)
    color = np.array(yolo.get_detections(image, dets[0], 0.5, ["cat", "dog"], 2)[3])  # type: ignore[index]
    assert (image[:, 70, 30:71] == color[:, None].astype("float32")).all()
    assert (image[:, 40:60, 40:60] == 0).all() and image[:, 20:30].any()
